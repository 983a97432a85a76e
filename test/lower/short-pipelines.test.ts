/**
 * Loops that are pipelined and may have no iteration, or fewer than there are stages: nothing is read beyond arrays. How often
 * one runs may follow from where loops around it are, and from that how long arrays are: what copies for its first iterations
 * read, at constant places of a row, stays in the condition that there are any.
 */
import fc from 'fast-check'
import { test } from 'vitest'
import { dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { agreeOnAll } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'

// For each chunk of a row the words of those before it, of which the first chunk has none, are counted.
const programOf = (depth: number, stages: number, where: string): string => `
kernel t(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(k)
  buffer W: f32[i, p] in
  buffer B: f32[p, j] in
  buffer C: f32[i, j] out
  iterate s [i, p, j] as SRS { C[i, j] += W[i, p] * B[p, j] }
}
format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
schedule t.s {
  W as csr live in place
  split base_W.jo_earlier by ${depth} -> (ahead, within)
  cache_read marks_W at ahead in shared${depth > 1 ? ` stride ${depth} by ${depth}` : ''}
  pipeline ahead by ${stages}
  ${where}
}`

const WHERE = [
  '',
  'bind place_W.io to block.x',
  'bind place_W.io to block.x, jo_chunk to block.y',
  'reorder (jo_chunk, place_W.io)\n  bind jo_chunk to block.x',
]

const values = (length: number): Float32Array =>
  Float32Array.from({ length }, (_, e) => (e % 3 === 0 ? (e % 5) - 2 : 0))

test.each(WHERE)('rows of zero, one and two chunks: %s', async (where) => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(1, 2, 4),
      fc.constantFrom(2, 3),
      fc.integer({ min: 0, max: 2 }),
      fc.integer({ min: 1, max: 99 }),
      async (depth, stages, m, k) => {
        const { compilation } = parseProgram(programOf(depth, stages, where))
          .kernel()
          .schedule('s')
        for (const length of [0, 1, k, 1024 + k]) {
          const tensors = {
            W: dense([m, length], values(m * length)),
            B: dense([length, 2], values(2 * length)),
          }
          await agreeOnAll(compilation, { tensors })
        }
      },
    ),
    { numRuns: runs(3) },
  )
})
