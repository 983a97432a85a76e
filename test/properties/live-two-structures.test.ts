/** Two formats that are built at run time in one layer, the gates of experts and their rectified hidden values, in either order. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { Choices } from '../support/choices.ts'
import { refusal } from '../support/refusal.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { LIVE } from './live-gen.ts'
import { asWritten, told } from './live-properties.ts'
import { numbers, parameters } from './property-cases.ts'

const TEXT = `${LIVE.blocks.text}
${LIVE.strips.text}
format groups(s) over (e, t) {
  axis eo = dense_fixed(e)
  axis go = dense_variable(eo, t)
  axis to = sparse_fixed(go, t, s)
  map (e, t) -> (e, rank(t by e) / s, t)
  inverse (eo, go, to) -> (eo, to)
}
format columns(b) over (q) {
  axis qo = dense_fixed(ceildiv(q, b))
  axis qi = sparse_variable(qo, b)
  map (q) -> (q / b, q % b)
  inverse (qo, qi) -> (qo * b + qi)
}
kernel experts(experts: size, tokens: size, k: size, h: size, n: size) {
  axis e = dense_fixed(experts)
  axis t = dense_fixed(tokens)
  axis p = dense_fixed(k)
  axis q = dense_fixed(h)
  axis o = dense_fixed(n)
  buffer G: f32[e, t] in
  buffer X: f32[t, p] in
  buffer U: f32[e, p, q] in
  buffer D: f32[e, q, o] in
  buffer P: f32[e, t] local
  buffer S: f32[e, t, q] local
  buffer H: f32[e, t, q] local
  buffer Z: f32[e, t, o] local
  buffer Y: f32[t, o] out
  iterate gate [e, t] as SS { P[e, t] = max(G[e, t], 0) }
  iterate up [e, t, p, q] as SSRS { if (P[e, t] != 0) { S[e, t, q] += X[t, p] * U[e, p, q] } }
  iterate rectify [e, t, q] as SSS { if (P[e, t] != 0) { H[e, t, q] = max(S[e, t, q], 0) } }
  iterate down [e, t, q, o] as SSRS { if (P[e, t] != 0) { Z[e, t, o] += H[e, t, q] * D[e, q, o] } }
  iterate scatter [e, t, o] as RSS { Y[t, o] += P[e, t] * Z[e, t, o] }
}`

const GATES = 'P as groups(2) live in place'
const HIDDEN = {
  columns: 'H as columns(3) live in place',
  blocks: 'H as blocks(2, 3) live in place',
  copied: 'H as strips(2, 2) live',
} as const
const FORMATS = Object.keys(HIDDEN) as (keyof typeof HIDDEN)[]
const kernelWith = (steps: string) =>
  parseProgram(`${TEXT}\nschedule experts.s { ${steps} }`).kernel().schedule('s')

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

test.each(FORMATS)('the order of the steps does not matter: %s', async (name) => {
  const before = kernelWith(`${GATES} ${HIDDEN[name]}`)
  const after = kernelWith(`${HIDDEN[name]} ${GATES}`)
  expect(before.show(1)).toBe(after.show(1))
  // The schedule stays as written.
  expect(before.trace).toEqual([...after.trace].reverse())
  expect(before.undo().show(1)).toBe(kernelWith(GATES).show(1))
  const isOverBoth = /iterate down \[eo, go, to, qo, qi, o\]/.test(before.show(1))
  expect(isOverBoth).toBe(name === 'columns')
  for (const { compilation } of [before, after])
    await fc.assert(
      fc.asyncProperty(numbers, async (n) => {
        const c = new Choices(n)
        const [experts, tokens, k, h, columns] = [
          c.pick([3, 1, 0]),
          c.pick([5, 1, 0, 33]),
          c.pick([2, 1]),
          c.pick([4, 7, 1, 0]),
          c.pick([2, 1]),
        ]
        // Values above 0 in 0, 50 or 100 of 100 cases: no token has an expert or all have, and none or all of H is zero.
        const signed = (of: number, positive: number): Float32Array =>
          Float32Array.from({ length: of }, () => (c.chance(positive) ? 1 : -1) * (1 + c.below(3)))
        const dense = (values: Float32Array, ...shape: number[]) =>
          ({ kind: 'dense', dtype: 'f32', shape, values }) as const
        const inputs = {
          tensors: {
            G: dense(signed(experts * tokens, c.pick([50, 0, 100])), experts, tokens),
            X: dense(signed(tokens * k, 100), tokens, k),
            U: dense(signed(experts * k * h, c.pick([50, 0, 100])), experts, k, h),
            D: dense(signed(experts * h * columns, 50), experts, h, columns),
          },
        }
        await told([name, [experts, tokens, k, h, columns]], async () => {
          await agreeOnAll(compilation, inputs)
          const { bound, expected } = asWritten(compilation, inputs)
          await agreeOnDevice(webgpu, compilation.parallel(), bound, expected)
        })
      }),
      parameters(6),
    )
})

test('of three steps, that of the gates is applied last', () => {
  const [hidden, products] = [HIDDEN.columns, 'Z as groups(1) live in place']
  for (const [first, second] of [
    [hidden, products],
    [products, hidden],
  ] as const) {
    const last = kernelWith(`${first} ${second} ${GATES}`).show(1)
    expect(kernelWith(`${GATES} ${first} ${second}`).show(1)).toBe(last)
    expect(kernelWith(`${first} ${GATES} ${second}`).show(1)).toBe(last)
  }
})

test('steps between them are applied again, and may need the second order', () => {
  const fused = (nests: string): string => `${GATES} fuse (${nests}).(eo, go) -> g`
  const written = kernelWith(`${fused('up, rectify, scatter')} ${HIDDEN.blocks}`)
  expect(written.show(1)).toBe(kernelWith(`${HIDDEN.blocks} ${fused('up, rectify, scatter')}`).show(1))
  // Over the lists of H, `down` has no loops over groups of tokens.
  expect(refusal(() => kernelWith(`${fused('up, down')} ${HIDDEN.blocks}`))).toMatchObject({
    code: 'schedule/live-tensor',
    hint: 'move the step of H before the step of P',
    notes: ['in that order, a later step is rejected: there is no iterator down.eo'],
  })
})
