/** Overflow checks of a plan: of index expressions that differ by a constant, only the greatest is checked. */
import { expect, test } from 'vitest'
import { rangeChecks } from '../../src/analysis/integers/range-checks.ts'
import { load } from '../../src/node.ts'

test('an unrolled loop has one check for each index', async () => {
  const kernel = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm').schedule('cpu')
  const checks = rangeChecks(kernel.compilation.plan)
  const bases = checks.map(({ when, what, least, most }) => {
    const base = Array.isArray(most) && most[0] === 'add' && typeof most[2] === 'number' ? most[1] : most
    return JSON.stringify([when, what, least, base])
  })
  expect(new Set(bases).size).toBe(bases.length)
  // The last of the eight unrolled iterations.
  expect(checks.some(({ most }) => Array.isArray(most) && most[2] === 7)).toBe(true)
})
