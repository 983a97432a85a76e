/** Sampled dense × dense in f32: our contestants and cuSPARSE's, which leaves the sparse values out. */
import { dense } from '../../../src/node.ts'
import { bindRows, elementsOf, ours, peer } from '../contestants.ts'
import { ExpectedSamples, PRECISION } from '../expected.ts'
import { nonzeros } from '../matrix.ts'
import { normals } from '../random.ts'
import type { Operation } from './matrices.ts'

/** C = A ∘ X Yᵀ; X is rows × depth, Y columns × depth. */
export const samples: Operation = {
  name: 'sddmm',
  letter: 'K',
  of(A, depth) {
    const { rows, columns } = A
    const count = nonzeros(A)
    // Both from one list of numbers, a row and a column never the same ones.
    const X = normals(rows * depth)
    const Y = normals(columns * depth, rows * depth + 1)
    const expected = new ExpectedSamples(A, X, Y, depth)
    return {
      checked: expected.checked,
      // Arrays once: the pattern with values, both factors, the result.
      least: {
        flops: 2 * count * depth,
        bytes: 12 * count + 4 * (rows + 1) + 4 * depth * (rows + columns),
      },
      ours(on, candidate, formats, label = candidate.text) {
        const factors = [dense([rows, depth], X, 'f32'), dense([columns, depth], Y, 'f32')]
        const bind = () => bindRows(on, candidate, formats, A, factors)
        return ours(label, bind, async (run) =>
          expected.check(await elementsOf(run, on, formats, A), PRECISION.f32, true),
        )
      },
      async peers(s, there) {
        const [stream, library] = [await s.stream(), await s.cusparse()]
        const x = { memory: stream.upload(X), rows, columns: depth }
        const y = { memory: stream.upload(Y), rows: columns, columns: depth }
        const contestants = (['transposed', 'by columns'] as const).map((how) =>
          peer(s, `cuSPARSE, Y ${how}`, () => {
            const output = stream.alloc(4 * count)
            const call = library.sddmm(x, y, { ...there, values: output }, how)
            return {
              ...call,
              output,
              // Numbers, and wrong ones: the library multiplies what is there by zero.
              poison: 0x41,
              check: () =>
                expected.check(stream.download(output, new Float32Array(count)), PRECISION.f32, false),
              free() {
                call.free()
                stream.free(output)
              },
            }
          }),
        )
        return { contestants, memory: [x.memory, y.memory] }
      },
    }
  },
}
