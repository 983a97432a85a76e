/** Fused loops on grids: loops over dense axes as the first step, and worst-case grids over lists that a run counts. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { load } from '../../src/node.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { agreeOnAll } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'

const DENSE = `
kernel k(n: size, m: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(m)
  axis p = dense_fixed(3)
  buffer X: i32[i, j] in
  buffer Y: i32[i, j] out
  buffer Z: i32[i, j] out
  iterate e [i, j] as SS { Y[i, j] = X[i, j] * 2 }
  iterate s [i, p, j] as SRS { Z[i, j] += X[i, j] * p }
}`
const scheduled = (steps: string) =>
  parseProgram(`${DENSE}\nschedule k.s { ${steps} }`).kernel().schedule('s')

test.each([
  'fuse (e.i, e.j) -> q  split q by 32 -> (a, b)  bind a to block.x, b to thread.x',
  'fuse (e.i, e.j) -> q  reorder (s.j, s.p)  fuse (s.i, s.j) -> r',
  'reorder (s.i, s.j, s.p)  fuse (s.i, s.j) -> r  bind r to block.x',
])('%s', async (steps) => {
  const { compilation } = scheduled(steps)
  for (const [n, m] of [
    [5, 7],
    [1, 64],
    [0, 3],
    [9, 1],
  ] as const) {
    const X = dense(
      [n, m],
      Int32Array.from({ length: n * m }, (_, e) => e - 9),
    )
    await agreeOnAll(compilation, { tensors: { X }, params: { n, m } })
  }
})

test('a trace of fused loops replays the schedule', () => {
  const k = scheduled('fuse (e.i, e.j) -> q  split q by 8')
  const again = scheduled(k.trace.join('\n'))
  expect(print2(again.compilation.loops)).toBe(print2(k.compilation.loops))
  const called = parseProgram(DENSE).kernel().fuse(['e.i', 'e.j'], 'q').split('q', 8)
  expect(print2(called.compilation.loops)).toBe(print2(k.compilation.loops))
})

test('loops that are not perfectly nested', () => {
  expect(refusal(() => scheduled('fuse (s.i, s.j) -> q'))).toMatchObject({
    code: 'schedule/not-a-chain',
    hint: 'the loops must be perfectly nested: reorder the loops first',
  })
})

const LIVE = (capacity: string, steps: string): string => `
import { live_token_groups } from "sparsetile/kernels/mixture-of-experts.spt"
kernel k(n: size, m: size, d: size) {
  axis e = dense_fixed(n)
  axis t = dense_fixed(m)
  axis o = dense_fixed(d)
  buffer P: i32[e, t] in
  buffer X: i32[t, o] in
  buffer H: i32[e, t, o] local
  buffer Y: i32[e, o] out
  iterate up [e, t, o] as SSS { if (P[e, t] != 0) { H[e, t, o] = P[e, t] * X[t, o] } }
  iterate down [e, t, o] as SRS { Y[e, o] += P[e, t] * H[e, t, o] }
}
schedule k.s(s = 2, by = 4) {
  P as live_token_groups(s) live in place ${capacity}
  ${steps}
}`
const GRIDS = [
  ['', 'fuse (up.eo, up.go) -> g  split g by by -> (a, b)  bind a to block.x, b to thread.x'],
  [
    'capacity n * m in all',
    'fuse (up.eo, up.go) -> g  split g by by -> (a, b)  bind a to block.x, b to thread.x',
  ],
  [
    '',
    'fuse (up.eo, up.go) -> g  fuse (g, up.to, up.o) -> q  split q by by -> (a, b)  bind a to block.x, b to thread.x',
  ],
  ['', 'split up.go by by -> (a, b)  bind up.eo to block.y, a to block.x, b to thread.x'],
  ['', 'bind up.eo to block.y, up.go to block.x'],
] as const

const data = fc.record({
  n: fc.integer({ min: 0, max: 4 }),
  m: fc.integer({ min: 0, max: 19 }),
  s: fc.constantFrom(1, 2, 8),
  by: fc.constantFrom(1, 3, 32),
  held: fc.array(fc.boolean(), { minLength: 76, maxLength: 76 }),
})
const webgpu = await createNodeWebGpu().catch(() => undefined)

test.each(GRIDS)('%s %s: a worst-case grid processes live lists', async (capacity, steps) => {
  const program = await load(LIVE(capacity, steps))
  await fc.assert(
    fc.asyncProperty(data, async ({ n, m, s, by, held }) => {
      const k = program.kernel('k').schedule('s', s, by)
      const P = Int32Array.from({ length: n * m }, (_, x) => (held[x] ? (x % 5) + 1 : 0))
      const X = Int32Array.from({ length: m * 3 }, (_, x) => (x % 7) - 3)
      const tensors = { P: dense([n, m], P), X: dense([m, 3], X) }
      await agreeOnAll(k.compilation, { tensors, params: { n, m, d: 3 } })
    }),
    { numRuns: runs(6) },
  )
})

test.skipIf(!webgpu)('worst-case grids on webgpu', async () => {
  for (const [capacity, steps] of GRIDS) {
    const compiled = await (await load(LIVE(capacity, steps))).kernel('k').schedule('s').build(webgpu!)
    const P = Int32Array.from({ length: 3 * 70 }, (_, x) => (x % 3 === 0 ? x % 5 : 0))
    const X = Int32Array.from({ length: 70 * 3 }, (_, x) => (x % 7) - 3)
    const prepared = await compiled.bind({ P: dense([3, 70], P), X: dense([70, 3], X) })
    await prepared.run()
    expect((await prepared.verify()).ok, steps).toBe(true)
  }
  await webgpu!.dispose()
})
