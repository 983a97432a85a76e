/** Products of sparse blocks with the rows of B that each meets, which arrive by counted copies. */

import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Kernel } from '../../src/node.ts'
import type { Inputs } from '../../src/run/bind/index.ts'
import { DECLARED } from '../support/asynchronous.ts'

const GATHER = `
kernel gather(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_fixed(i, n, 3)
  axis jd = dense_fixed(n)
  axis bi = dense_fixed(4)
  axis k = dense_fixed(2)
  axis f = dense_fixed(d)
  buffer A: f32[i, j, bi, k] in
  buffer B: f32[jd, k, f] in
  buffer C: f32[i, bi, f] out
  iterate sum [i, j, bi, k, f] as SRSRS { C[i, bi, f] += A[i, j, bi, k] * B[j, k, f] }
}`

/** Some schedule of the product; of blocks that `where` leaves, where it is given. */
export const gatherBy = (steps: string, where = ''): Kernel =>
  parseProgram(
    `${DECLARED}${GATHER.replace('SRSRS {', `SRSRS ${where} {`)}
    schedule gather.tested {${steps}}`,
  )
    .kernel('gather')
    .schedule('tested')

/** Rows of blocks on thread.y, with the rows of B that each meets: threads of another row need others. */
export const gather = (rows: number, onX: boolean, stages = 2): Kernel =>
  gatherBy(`
      require m % ${rows} == 0
      require d % 4 == 0
      split i by ${rows} -> (io, ii)
      split f by 4 -> (fo, fi)
      reorder (io, fo, ii, ${onX ? 'bi, j' : 'j, bi'}, k, fi)
      bind io to block.y, fo to block.x, ii to thread.y${onX ? ', bi to thread.x' : ''}
      cache_write C at ${onX ? 'bi' : 'ii'} in register
      cache_read B at j in tile -> Bs
      tensorize Bs.k with bulk
      ${stages > 0 ? `pipeline j by ${stages}` : ''}
  `)

/** Rows of blocks, as many as given of up to three; those that are missing are padding, whose blocks nobody copies. */
export const gatherInputs = (lengths: readonly number[]): Inputs => {
  const at = lengths.flatMap((count, i) =>
    Array.from({ length: count * 8 }, (_, e) => [i, Math.floor(e / 8) + i, Math.floor(e / 2) % 4, e % 2]),
  )
  const whole = (length: number): Float32Array => Float32Array.from({ length }, (_, e) => ((e * 5) % 7) - 3)
  const [m, n, d] = [lengths.length, 4, 4]
  const indices = [0, 1, 2, 3].map((k) => at.map((c) => c[k]!))
  const A = coords([m, n, 4, 2], indices, whole(at.length))
  return { tensors: { A, B: dense([n, 2, d], whole(n * 2 * d)) }, params: { m, n, d } }
}
