/** Sparse × vector in f32: our contestants and cuSPARSE's algorithms. */
import { dense } from '../../../src/node.ts'
import { VECTOR_ALGORITHMS } from '../../peers/cusparse.ts'
import { bindRows, checkProduct, ours, peer } from '../contestants.ts'
import { ExpectedProduct, PRECISION } from '../expected.ts'
import { nonzeros } from '../matrix.ts'
import { normals } from '../random.ts'
import type { Session } from '../session.ts'
import { type Operation, overWidths } from './matrices.ts'

/** y = A x, as a product with a matrix of one column. */
export const vectors: Operation = {
  name: 'spmv',
  letter: 'N',
  widths: [1],
  of(A) {
    const { rows, columns } = A
    const values = normals(columns)
    const expected = new ExpectedProduct(A, values, 1)
    return {
      checked: expected.checked,
      // Arrays once: the matrix, the vector, the result.
      least: { flops: 2 * nonzeros(A), bytes: 8 * nonzeros(A) + 4 * (rows + 1) + 4 * (rows + columns) },
      ours(on, candidate, formats, label = candidate.text) {
        const bind = () => bindRows(on, candidate, formats, A, [dense([columns], values, 'f32')])
        return ours(label, bind, (run) => checkProduct(run, expected))
      },
      async peers(s, there) {
        const [stream, library] = [await s.stream(), await s.cusparse()]
        const [x, y] = [stream.upload(values), stream.alloc(4 * rows)]
        const algorithms = Object.keys(VECTOR_ALGORITHMS) as (keyof typeof VECTOR_ALGORITHMS)[]
        const contestants = algorithms.map((algorithm) =>
          peer(s, `cuSPARSE ${algorithm}`, () => ({
            ...library.spmv(there, x, y, algorithm),
            output: y,
            check: () => expected.check(stream.download(y, new Float32Array(rows)), PRECISION.f32),
          })),
        )
        return { contestants, memory: [x, y] }
      },
    }
  },
}

export async function spmv(s: Session): Promise<void> {
  for await (const A of s.matrices()) await overWidths(s, vectors.name, vectors, A, [1])
}
