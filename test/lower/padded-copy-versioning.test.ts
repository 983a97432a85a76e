/** Threads ask once for what they copy where all of it is there; else each element is asked for as before. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { runPlan } from '../support/plans.ts'

const program = await load(`
kernel sums(m: size, d: size) {
  axis i = dense_fixed(m)
  axis k = dense_fixed(d)
  buffer X: f32[i, k] in
  buffer R: f32[i] in
  buffer y: f32[i] out
  buffer z: f32[k] out
  iterate rows [i, k] as SR { y[i] += X[i, k] * R[i] }
  iterate columns [k, i] as SR { z[k] += X[i, k] }
}
schedule sums.ahead(threads = 2, each = 4, wide = 2) {
  split rows.k by each * wide -> (ko, kr)
  split kr by wide -> (ku, kv)
  split rows.i by threads -> (io, it)
  bind io to block.x, it to thread.x
  cache_read X at ko in register padded 0 -> Xs
  vectorize Xs.kv
  unroll Xs.ku
  unroll rows.ku
  split columns.i by each -> (jo, ju)
  split columns.k by threads -> (co, ct)
  bind co to block.x, ct to thread.x
  cache_read X at jo in register padded 0 -> Xc
  unroll Xc.ju
}
schedule sums.reversed(threads = 2, each = 4, wide = 2) {
  use ahead(threads, each, wide)
  reverse rows.ko
  reverse columns.jo
}`)

test('full, partial and empty copies give equal results', () => {
  fc.assert(
    fc.property(
      fc.nat(19),
      fc.nat(19),
      fc.constantFrom(1, 2, 4),
      fc.constantFrom(1, 2, 4),
      fc.constantFrom('ahead', 'reversed'),
      (m, d, each, wide, schedule) => {
        const plan = program.kernel().schedule(schedule, 2, each, wide).compilation.planFor({ lanes: 1 })
        const X = Array.from({ length: m * d }, (_, k) => (k * 7) % 11)
        const R = Array.from({ length: m }, (_, k) => k % 3)
        const nothing = (n: number): number[] => new Array<number>(n).fill(Number.NaN)
        const out = runPlan(plan, { m, d }, { X, R, y: nothing(m), z: nothing(d) })
        const at = (i: number, k: number): number => X[i * d + k]!
        const y = R.map(
          (r, i) => r * Array.from({ length: d }, (_, k) => at(i, k)).reduce((a, b) => a + b, 0),
        )
        const z = Array.from({ length: d }, (_, k) => R.map((_, i) => at(i, k)).reduce((a, b) => a + b, 0))
        expect(out.y).toEqual(y)
        expect(out.z).toEqual(z)
      },
    ),
    { numRuns: runs(40) },
  )
})

test('a thread tests the last element, and then reads all without conditions', () => {
  const text = program.kernel().schedule('ahead').emit('cuda')[0]!.text
  const start = text.indexOf('+ 7 < d')
  expect(start).toBeGreaterThan(0)
  const whole = text.slice(start, text.indexOf('else', start))
  expect(whole.split('Xs_').length).toBeGreaterThan(8)
  expect(whole).not.toContain('< d)')
})
