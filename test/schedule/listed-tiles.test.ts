/** Copies in tiles of what a list names, whatever it names: blocks lie one after the other, each of them in whole tiles. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Memory } from '../../src/api/stages/stage-check.ts'
import { LIVE } from '../properties/live-gen.ts'
import { runs } from '../support/cases.ts'
import { interpreted, interpretedPlan } from '../support/interpreted.ts'
import { integers } from '../support/kernels.ts'

const program = parseProgram(`
memory square: f32[4, 4] in shared {
  address (i, j) -> i * 4 + j
}
kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis q = dense_fixed(k)
  buffer A: f32[i, q] in
  buffer B: f32[j, q] in
  buffer C: f32[i, j] out
  iterate mul [i, j, q] as SSR { C[i, j] += A[i, q] * B[j, q] }
}
${LIVE.blocks.text.replaceAll('j', 'q')}
schedule product.tiled(each) {
  A as blocks(4, 4) live in place
  split j by 8 -> (j0, j1)
  split mul.qo by each -> (q0, q1)
  reorder (mul.io, j0, q0, q1, mul.ii, j1, mul.qi)
  cache_read B at q0 in square padded 0 -> Bs
}`)

const valuesOf = (memory: Memory): number[] => Array.from(memory.get('C')!, (x) => Number(x) + 0)

test.each([2, 3])('%i listed blocks', (each) => {
  const tiled = program.kernel().schedule('tiled', each)
  expect(tiled.show(2)).toContain(`alloc Bs: f32[${each}, 8, 4] square`)
  fc.assert(
    fc.property(
      fc.tuple(
        fc.integer({ min: 0, max: 9 }),
        fc.integer({ min: 0, max: 9 }),
        fc.integer({ min: 0, max: 21 }),
      ),
      fc.array(fc.boolean(), { minLength: 24, maxLength: 24 }),
      ([m, n, k], held) => {
        const A = integers(m * k, 1).map((a, e) => {
          const [i, q] = [Math.floor(e / k), e % k]
          return held[(i >> 2) * 6 + (q >> 2)] ? a : 0
        })
        const given = { tensors: { A: dense([m, k], A), B: dense([n, k], integers(n * k, 2)) } }
        const expected = valuesOf(interpreted(program.kernel(), given))
        expect(valuesOf(interpreted(tiled, given))).toEqual(expected)
        expect(valuesOf(interpretedPlan(tiled, given))).toEqual(expected)
      },
    ),
    { numRuns: runs(8) },
  )
})
