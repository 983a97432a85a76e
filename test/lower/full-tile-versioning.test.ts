/** Blocks of whole tiles ask nothing; the one that is cut off asks as before. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { runPlan } from '../support/plans.ts'

const program = await load(`
kernel rows(m: size, d: size) {
  axis i = dense_fixed(m)
  axis k = dense_fixed(d)
  buffer X: f32[i, k] in
  buffer y: f32[i] out
  buffer z: f32[i, k] out
  iterate sum [i, k] as SR { y[i] += X[i, k] }
  iterate twice [i, k] as SS { z[i, k] = X[i, k] + X[i, k] }
}
schedule rows.unrolled(threads = 2, each = 2, lanes = 4) {
  split sum.i by threads * each -> (o, x)
  split x by each -> (t, u)
  split sum.k by lanes -> (ko, kl)
  reorder (o, t, u, ko, kl)
  bind o to block.x, t to thread.y, kl to thread.x
  unroll u
  tile (twice.i, twice.k) by (threads, lanes * 2) -> (a, b, c, e)
  split e by 2 -> (eo, ei)
  bind a to block.x, b to block.y, c to thread.y, eo to thread.x
  unroll ei
}
schedule rows.reversed(threads = 2, each = 2, lanes = 4) {
  use unrolled(threads, each, lanes)
  reverse o
  reverse a
  reverse b
}
schedule rows.plain(threads = 4) {
  split sum.i by threads -> (o, t)
  bind o to block.x, t to thread.x
}`)

test('full and partial tiles give equal results', () => {
  fc.assert(
    fc.property(
      fc.nat(17),
      fc.nat(17),
      fc.constantFrom(1, 3),
      fc.constantFrom(1, 8),
      fc.constantFrom('unrolled', 'reversed'),
      (m, d, threads, lanes, schedule) => {
        const plan = program.kernel().schedule(schedule, threads, 2, 4).compilation.planFor({ lanes })
        const X = Array.from({ length: m * d }, (_, k) => (k * 7) % 11)
        const poison = new Array<number>(m).fill(Number.NaN)
        const out = runPlan(plan, { m, d }, { X, y: poison, z: X.map(() => Number.NaN) })
        const sums = Array.from({ length: m }, (_, i) => X.slice(i * d, i * d + d).reduce((a, b) => a + b, 0))
        expect(out.y).toEqual(sums)
        expect(out.z).toEqual(X.map((x) => 2 * x))
      },
    ),
    { numRuns: runs(20) },
  )
})

const textOf = (schedule: string): string =>
  program
    .kernel()
    .schedule(schedule)
    .emit('cuda')
    .map((t) => t.text)
    .join('\n')

test('a block tests once for all unrolled iterations', () => {
  const text = textOf('unrolled')
  expect(text).toContain('if (block_x < m / 4) {')
  expect(text).toContain('if (block_x < m / 2 && block_y < d / 8) {')
})

test('reversed blocks have equally many tests', () => {
  const conditions = (text: string): number => text.split('if (').length
  expect(conditions(textOf('reversed'))).toBe(conditions(textOf('unrolled')))
})

test('a thread that tests once keeps its test', () => {
  const [module] = program.kernel().schedule('plain').emit('cuda')
  expect(module!.text).not.toContain('block_x < m')
})
