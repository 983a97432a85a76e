/** Sparse × dense in f32: our contestants and cuSPARSE's algorithms. */
import { dense } from '../../../src/node.ts'
import { CSR_ALGORITHMS } from '../../peers/cusparse.ts'
import { bindRows, checkProduct, ours, peer } from '../contestants.ts'
import { ExpectedProduct, PRECISION } from '../expected.ts'
import { nonzeros } from '../matrix.ts'
import { normals } from '../random.ts'
import type { Operation } from './matrices.ts'

/** C = A B; B is columns × width. */
export const products: Operation = {
  name: 'spmm',
  letter: 'N',
  of(A, width) {
    const { rows, columns } = A
    const values = normals(columns * width)
    const expected = new ExpectedProduct(A, values, width)
    return {
      checked: expected.checked,
      // Arrays once: the matrix, the dense operand, the result.
      least: {
        flops: 2 * nonzeros(A) * width,
        bytes: 8 * nonzeros(A) + 4 * (rows + 1) + 4 * width * (rows + columns),
      },
      ours(on, candidate, formats, label = candidate.text) {
        const operand = dense([columns, width], values, 'f32')
        const bind = () => bindRows(on, candidate, formats, A, [operand])
        return ours(label, bind, (run) => checkProduct(run, expected))
      },
      async peers(s, there) {
        const [stream, library] = [await s.stream(), await s.cusparse()]
        const B = { memory: stream.upload(values), rows: columns, columns: width }
        const C = { memory: stream.alloc(4 * rows * width), rows, columns: width }
        const algorithms = Object.keys(CSR_ALGORITHMS) as (keyof typeof CSR_ALGORITHMS)[]
        const contestants = algorithms.map((algorithm) =>
          peer(s, `cuSPARSE ${algorithm}`, () => ({
            ...library.spmm(there, B, C, algorithm),
            output: C.memory,
            check: () =>
              expected.check(stream.download(C.memory, new Float32Array(rows * width)), PRECISION.f32),
          })),
        )
        return { contestants, memory: [B.memory, C.memory] }
      },
    }
  },
}
