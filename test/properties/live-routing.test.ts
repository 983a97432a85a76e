/** Tokens that go to experts by their numbers: what no expert has is told or goes nowhere, as the text says, and a gate that is no number stays with its token. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Built, type Device, dense, devices, load, type SptError } from '../../src/node.ts'
import { sample } from '../support/cases.ts'
import { Choices } from '../support/choices.ts'
import { type Guarded, guarded } from '../support/guarded-device.ts'
import { numbers, parameters } from './property-cases.ts'

/** How P is written, and whether a number that no expert has is an element that is missing. */
const GATES = {
  selected: ['iterate gate [e, t, x] as SSR { P[e, t] += select(R[t, x] == e, G[t, x], 0) }', false],
  asked: ['iterate gate [e, t, x] as SSR { if (R[t, x] == e) { P[e, t] += G[t, x] } }', false],
  added: ['iterate gate [t, x] as SR { P[R[t, x], t] += G[t, x] }', true],
  assigned: ['iterate gate [t] as S { P[R[t, 0], t] = G[t, 0] }', true],
} as const

const FUSED = 'fuse (product.eo, product.go) -> g fuse (scatter.eo, scatter.go) -> g'
const STEPS = { apart: '', fused: FUSED } as const

const textOf = (gate: keyof typeof GATES): string => `
import { live_token_groups } from "sparsetile/kernels/mixture-of-experts.spt"
kernel routed(experts: size, tokens: size, k: size, n: size, top: size) {
  axis e = dense_fixed(experts)
  axis t = dense_fixed(tokens)
  axis x = dense_fixed(top)
  axis p = dense_fixed(k)
  axis o = dense_fixed(n)
  buffer R: i32[t, x] in
  buffer G: f32[t, x] in
  buffer P: f32[e, t] local
  buffer X: f32[t, p] in
  buffer W: f32[e, p, o] in
  buffer H: f32[e, t, o] local
  buffer Y: f32[t, o] out
  ${GATES[gate][0]}
  iterate product [e, t, p, o] as SSRS { if (P[e, t] != 0) { H[e, t, o] += X[t, p] * W[e, p, o] } }
  iterate scatter [e, t, o] as RSS { Y[t, o] += P[e, t] * H[e, t, o] }
}
${Object.entries(STEPS)
  .map(([name, steps]) => `schedule routed.${name} { P as live_token_groups(2) live in place ${steps} }`)
  .join('\n')}`

const ALL = (Object.keys(GATES) as (keyof typeof GATES)[]).flatMap((gate) =>
  (Object.keys(STEPS) as (keyof typeof STEPS)[]).map((schedule) => [gate, schedule] as const),
)

/** Routes and gates; `wrong`: how many in a hundred numbers no expert has. */
function routes(c: Choices, experts: number, tokens: number, top: number, wrong: number) {
  const numbers = [-1, experts, 2 ** 31 - 1, -(2 ** 31), experts + 70]
  const R = Int32Array.from({ length: tokens * top }, () =>
    c.chance(wrong) || experts === 0 ? c.pick(numbers) : c.below(experts),
  )
  const lost = c.pick([5, 0])
  const G = Float32Array.from(R, () => (c.chance(lost) ? Number.NaN : c.pick([1, 2, 3, 0, -0, -1])))
  return { R, G }
}

/** Y and whether something is written that there is no element for. */
function byHand(
  gate: keyof typeof GATES,
  sizes: readonly number[],
  data: readonly Float32Array[],
  R: Int32Array,
) {
  const [experts, tokens, k, n, top] = sizes as [number, number, number, number, number]
  const [G, X, W] = data as [Float32Array, Float32Array, Float32Array]
  const [, isScattered] = GATES[gate]
  const P = new Float32Array(experts * tokens)
  let lost = false
  for (let t = 0; t < tokens; t++)
    for (let x = 0; x < (gate === 'assigned' ? Math.min(1, top) : top); x++) {
      const [e, g] = [R[t * top + x]!, G[t * top + x]!]
      if (e >= 0 && e < experts) P[e * tokens + t]! += g
      else if (isScattered && (gate === 'assigned' || g !== 0)) lost = true
    }
  const Y = Array.from({ length: tokens * n }, (_, at) => {
    const [t, o] = [Math.floor(at / n), at % n]
    let sum = 0
    for (let e = 0; e < experts; e++) {
      const g = P[e * tokens + t]!
      let h = 0
      for (let p = 0; p < k; p++) h += X[t * k + p]! * W[(e * k + p) * n + o]!
      if (g !== 0) sum += g * h
    }
    return sum + 0
  })
  return { Y, lost }
}

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let own: Device
  let on: Guarded
  beforeAll(async () => {
    own = await devices[kind]()
    on = guarded(own)
  })
  afterAll(() => own.dispose())

  // Software compiles each for a second.
  test.each(kind === 'cpu' ? ALL : sample(ALL, 2))('gates that are %s, lists %s', async (gate, schedule) => {
    const program = await load(textOf(gate))
    const compiled: Built = await program.kernel('routed').schedule(schedule).build(on.device)
    const whole = (c: Choices, of: number): Float32Array =>
      Float32Array.from({ length: of }, () => c.below(5) - 2)
    await fc.assert(
      fc.asyncProperty(numbers, async (n) => {
        const c = new Choices(n)
        const top = gate === 'assigned' ? c.pick([1, 2]) : c.pick([2, 1, 3])
        const sizes = [
          c.pick([3, 1, 0, 5]),
          c.pick([5, 1, 0, 33]),
          c.pick([2, 1]),
          c.pick([1, 3]),
          top,
        ] as const
        const [experts, tokens, k, columns] = sizes
        const [X, W] = [whole(c, tokens * k), whole(c, experts * k * columns)]
        const first = routes(c, experts, tokens, top, 0)
        const prepared = await compiled.bind({
          R: dense([tokens, top], first.R, 'i32'),
          G: dense([tokens, top], first.G),
          X: dense([tokens, k], X),
          W: dense([experts, k, columns], W),
        })
        try {
          for (const wrong of [0, 30, 0, 3]) {
            const { R, G } = routes(c, experts, tokens, top, wrong)
            await prepared.set('R', R)
            await prepared.set('G', G)
            await prepared.executable.poison()
            const end = await prepared.run().then(
              () => 'right',
              (e: SptError) => e.diagnostics[0]!,
            )
            const { Y, lost } = byHand(gate, sizes, [G, X, W], R)
            const told = `${gate}, ${schedule}, ${sizes}: ${R} by ${G}`
            if (lost) expect(end, told).toMatchObject({ code: 'run/lost-writes', hint: expect.any(String) })
            else expect(end, told).toBe('right')
            // What there is an element for is there.
            const got = Array.from((await prepared.get('Y')).values!, (y) => Number(y) + 0)
            expect(got, told).toEqual(Y)
            expect(await on.broken(), told).toEqual([])
          }
        } finally {
          prepared.free()
        }
      }),
      parameters(kind === 'cpu' ? 12 : 6),
    )
    compiled.release()
  })
})
