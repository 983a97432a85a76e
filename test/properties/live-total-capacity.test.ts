/** Room for all lists together that a run finds: just enough of it, too little, and for what lies between two iterations. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { printedSteps } from '../../src/api/kernels/nests.ts'
import { quantity } from '../../src/ast/print/quantity.ts'
import { type Device, type Diagnostic, dense, devices, type Kernel, load, SptError } from '../../src/node.ts'
import { costly } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'

const textOf = (room: string, fused: 'none' | 'up' | 'both'): string => `
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
schedule k.s(s = 2) {
  P as live_token_groups(s) live in place capacity ${room}
${fused === 'none' ? '' : '  fuse (up.eo, up.go) -> g'}
${fused === 'both' ? '  fuse (down.eo, down.go) -> g' : ''}
}`

const D = 3

const cases = fc
  .record({
    n: fc.integer({ min: 0, max: 5 }),
    m: fc.integer({ min: 0, max: 40 }),
    s: fc.constantFrom(1, 2, 8),
    room: fc.integer({ min: -1, max: 24 }),
    fused: fc.constantFrom('none', 'up', 'both'),
  })
  .chain((c) => {
    const pattern = fc.array(fc.boolean(), { minLength: c.n * c.m, maxLength: c.n * c.m })
    return fc.record({ c: fc.constant(c), patterns: fc.array(pattern, { minLength: 1, maxLength: 3 }) })
  })

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  beforeAll(async () => {
    device = await devices[kind]()
  })
  afterAll(() => device.dispose())

  test('a run stays within the capacity, or reports the required one', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async ({ c: { n, m, s, room, fused }, patterns }) => {
        // Below 0 for these sizes.
        const text = textOf(`${room < 0 ? 'm - 41' : room} in all`, fused)
        const program = await load(text)
        const compiled = await program.kernel('k').schedule('s', s).build(device)
        const X = Int32Array.from({ length: m * D }, (_, x) => (x % 7) - 3)
        const prepared = await compiled.bind({
          P: dense([n, m], new Int32Array(n * m), 'i32'),
          X: dense([m, D], X, 'i32'),
        })
        for (const held of patterns) {
          const P = Int32Array.from(held, (is, x) => (is ? (x % 5) + 1 : 0))
          const Y = new Int32Array(n * D)
          let groups = 0
          for (let e = 0; e < n; e++) {
            let count = 0
            for (let t = 0; t < m; t++) {
              const p = P[e * m + t]!
              if (p !== 0) count++
              for (let o = 0; o < D; o++) Y[e * D + o]! += p * p * X[t * D + o]!
            }
            groups += Math.ceil(count / s)
          }
          await prepared.set('P', P)
          const run = prepared.run().then(
            () => null,
            (error: unknown) => error as SptError,
          )
          const error = await run
          if (groups > Math.max(0, room)) {
            expect(error).toBeInstanceOf(SptError)
            expect(error!.message).toContain(
              `run/overflow: k has ${quantity(groups, 'position')} of go, and the capacity is ${Math.max(0, room)} (`,
            )
            const { start, end } = error!.diagnostics[0]!.span!
            expect(text.slice(start, end)).toMatch(/^P as .* in all$/)
          } else {
            expect(error).toBeNull()
            expect((await prepared.get('Y')).values).toEqual(Y)
          }
        }
        prepared.free()
      }),
      { numRuns: costly(kind === 'cpu' ? 40 : 4) },
    )
  })
})

test.each(['', ' in all'])(
  'a capacity beyond 32 bits is rejected before anything runs: capacity%s',
  async (all) => {
    const cpu = await devices.cpu()
    const text = textOf(`3 - m * f${all}`, 'both').replace('k.s(s = 2)', 'k.s(s = 2, f = 1)')
    const program = await load(text)
    const wide = fc.record({
      m: fc.integer({ min: 2, max: 9 }),
      wraps: fc.integer({ min: 1, max: 3 }),
      more: fc.integer({ min: 0, max: 3 }),
    })
    await fc.assert(
      fc.asyncProperty(wide, async ({ m, wraps, more }) => {
        // As 32 bits have it, next to nothing.
        const factor = Math.min(Math.floor((wraps * 2 ** 32) / m) + more, 2 ** 31 - 1)
        const compiled = await program.kernel('k').schedule('s', 2, factor).build(cpu)
        const tensors = {
          P: dense([3, m], new Int32Array(3 * m).fill(2), 'i32'),
          X: dense([m, D], new Int32Array(m * D).fill(1), 'i32'),
        }
        const error = await compiled(tensors).then(
          () => null,
          (e: SptError) => e,
        )
        const [{ code, message, span }] = error!.diagnostics as [Diagnostic]
        expect([code, message]).toEqual([
          'plan/overflow',
          expect.stringMatching(`the room for go in k does not fit 32 bits: .*m \\* ${factor}`),
        ])
        expect(text.slice(span!.start, span!.end)).toContain('m * f')
      }),
      { numRuns: costly(2) },
    )
    await cpu.dispose()
  },
)

test.each(['-1', '0 - 1', 'w - 3', '-1 in all'])('a negative capacity is rejected: %s', async (room) => {
  const text = textOf(room, 'both').replace('k.s(s = 2)', 'k.s(s = 2, w = 1)')
  const program = await load(text)
  const { code, span, message, hint } = refusal(() => program.kernel('k').schedule('s').compilation)
  expect(code).toBe('schedule/live-capacity')
  expect(message).toContain(`a capacity of ${room === 'w - 3' ? -2 : -1} is below 0`)
  expect(hint).toContain('leave out')
  expect(text.slice(span!.start, span!.end)).toBe(`P as live_token_groups(s) live in place capacity ${room}`)
  for (const n of [-1, 1.5, Number.NaN, 2 ** 31])
    for (const name of ['capacity', 'total'])
      expect(refusal(() => program.kernel('k').live('P', 'live_token_groups', 2, { [name]: n })).code).toBe(
        'api/argument',
      )
})

test('a total capacity is part of the step, and buffers between iterations do not exceed it', async () => {
  const program = await load(textOf('m / 4 + n in all', 'both'))
  const kernel = program.kernel('k').schedule('s', 4)
  expect(printedSteps(kernel.compilation)[0]).toBe(
    'P as live_token_groups(4) live in place capacity m / 4 + n in all',
  )
  expect(kernel.show(2)).toContain('H: i32[min(n * ceildiv(m, 4), max(m / 4 + n, 0)), 4, d] local')
  const cpu = await devices.cpu()
  const bytes = async (total: number): Promise<number> => {
    const compiled = await program
      .kernel('k')
      .live('P', 'live_token_groups', 4, { total })
      .fuse(['up.eo', 'up.go'], 'g')
      .build(cpu)
    const [P, X] = [dense([8, 64], new Int32Array(512), 'i32'), dense([64, D], new Int32Array(64 * D), 'i32')]
    const prepared = await compiled.bind({ P, X })
    const all = prepared.executable.bytes
    prepared.free()
    return all
  }
  expect((await bytes(100)) - (await bytes(1))).toBe(99 * 4 * D * 4)
  await cpu.dispose()
  const again: Kernel = program.kernel('k').replay(kernel.toJSON())
  expect(again.show(2)).toBe(kernel.show(2))
  const given = program.kernel('k').live('P', 'live_token_groups', 4, { total: 6 })
  expect(printedSteps(given.compilation)).toEqual([
    'P as live_token_groups(4) live in place capacity 6 in all',
  ])
})

test('a capacity per list together with a total capacity is rejected', async () => {
  const kernel = (await load(textOf('3', 'none'))).kernel('k')
  const both = () => kernel.live('P', 'live_token_groups', 2, { capacity: 1, total: 2 })
  expect(both).toThrow('schedule/live-capacity: both capacity and total are given')
})

test('a listed block with more elements than 32 bits count is rejected at binding, even for a small tensor', async () => {
  const program = await load(`import "sparsetile/kernels/formats.spt"
kernel sum(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  iterate add [i, j] as SR { C[i] += A[i, j] }
}
schedule sum.blocks(b) { A as bsr(b) live in place }`)
  const tensors = { A: dense([2, 3], new Float32Array(6).fill(1)) }
  const prepared = async (b: number) =>
    (
      await program
        .kernel()
        .schedule('blocks', b)
        .build(await devices.cpu())
    ).bind(tensors)
  const largest = await prepared(46340)
  await largest.run()
  expect([...(await largest.get('C')).values!]).toEqual([3, 3])
  await expect(prepared(46341)).rejects.toThrow(
    'plan/overflow: how many elements of A each listed coordinate has',
  )
})
