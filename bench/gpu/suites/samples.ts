/** Sampled dense × dense in f32: our contestants and cuSPARSE's, which leaves the sparse values out. */
import { dense } from '../../../src/node.ts'
import { ours, peer } from '../contestants.ts'
import { ExpectedSamples, PRECISION } from '../expected.ts'
import { nonzeros } from '../matrix.ts'
import { inputs, slotsOf, structured } from '../ours.ts'
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
        const bind = async () => {
          const ready = await on.ready(candidate)
          const { source } = ready
          const [weights, x, y] = inputs(source)
          if (!weights || !x || !y) throw new Error(`${source.name} has too few inputs`)
          const tensor = structured(source, [rows, columns], A, A.values, 'f32')
          const built = await formats.of(candidate.text, () => on.build(ready, tensor))
          return on.prepare(ready, built, tensor, {
            [x.name]: dense([rows, depth], X, 'f32'),
            [y.name]: dense([columns, depth], Y, 'f32'),
          })
        }
        return ours(label, bind, async (run) => {
          const { ready, built, output } = run
          const tensor = structured(ready.source, [rows, columns], A, A.values, 'f32')
          const slots = built.parts
            ? await formats.slots(candidate.text, () => slotsOf(on, ready, tensor, count))
            : null
          return expected.check(await run.elements(output.name, count, slots), PRECISION.f32, true)
        })
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
