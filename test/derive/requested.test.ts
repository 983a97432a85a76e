/**
 * What a request changes: gradients at all coordinates (`dense`), temporaries that are computed again (`recomputing`), and
 * gradients that are rounded (`rounding`).
 */
import { afterAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { devices } from '../../src/node.ts'
import { type RefInputs, type RefOutputs, type RefTensor, reference } from '../../src/reference/index.ts'
import { LONG, runs, SEED } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { floatsOf, inDoubles, smooth } from '../support/gradient-check.ts'
import { generate } from '../support/program-gen.ts'
import { property } from '../support/property.ts'

const attempt = <T>(work: () => T): T | undefined => {
  try {
    return work()
  } catch (e) {
    if (e instanceof SptError) return undefined
    throw e
  }
}

const kept = ({ params, buffers, structure }: RefInputs, kernel: Kernel1): RefInputs => {
  const names = new Set([...kernel.buffers, ...kernel.params, ...kernel.axes].map((b) => b.name))
  const of = <T>(fields: Readonly<Record<string, T>> = {}): Record<string, T> =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => names.has(name)))
  return { params: of(params), buffers: of(buffers), structure: of(structure) }
}

/** Some adjoint of a result: numbers that do not cancel. */
const adjointOf = (r: RefOutputs['buffers'][string]): RefTensor => {
  const values = Array.from(r.values, (_, k) => ((k * 5) % 7) - 3)
  return r.kind === 'dense' ? values : { coords: r.coords, values }
}

/** A sparse matrix with a stored zero at each other coordinate. */
function filled(t: RefTensor, shape: readonly number[]): RefTensor {
  if (!('coords' in t)) return t
  const at = new Map(Array.from(t.values!, (v, e) => [t.coords.map((c) => c[e]).join(), v]))
  const count = shape.reduce((a, b) => a * b, 1)
  const all = Array.from({ length: count }, (_, k) =>
    shape.map((_, d) => Math.floor(k / shape.slice(d + 1).reduce((a, b) => a * b, 1)) % shape[d]!),
  )
  return { coords: shape.map((_, d) => all.map((c) => c[d]!)), values: all.map((c) => at.get(c.join()) ?? 0) }
}

const counts = { dense: 0, recomputed: 0 }

property([choiceNumbers(700)], { numRuns: runs(400), seed: SEED })('requests', (choices) => {
  const sample = generate(new Choices(choices))
  if (/nonunique|fill 1/.test(sample.text)) return
  const kernel = attempt(() => parseProgram(inDoubles(sample.text)).kernel())
  if (!kernel) return
  const inputs = smooth(kernel.source, sample.reference, choices[0]!)
  const locals = kernel.source.buffers.filter((b) => b.role === 'local').map((b) => b.name)
  for (const by of floatsOf(kernel.source, 'out'))
    for (const x of floatsOf(kernel.source, 'in')) {
      const plain = attempt(() => kernel.gradient(by, [x], { name: 'back' }).source)
      const result = attempt(() => reference(kernel.source, inputs).buffers[by]!)
      if (!plain || !result) continue
      const at: RefInputs = { ...inputs, buffers: { ...inputs.buffers, [`d_${by}`]: adjointOf(result) } }
      const recomputing = attempt(() => kernel.gradient(by, [x], { recomputing: locals, name: 'back' }))
      const run = (k: Kernel1, given: RefInputs): RefOutputs['buffers'][string] =>
        Object.values(reference(k, kept(given, k)).buffers).at(-1)!
      if (recomputing && locals.length > 0) {
        const again = parseProgram(recomputing.show(1)).kernel('back').source
        counts.recomputed += again.buffers.some((b) => b.name.endsWith('_again')) ? 1 : 0
        expect(run(again, at), sample.text).toEqual(run(plain, at))
      }
      const t = inputs.buffers[x]!
      const dense = 'coords' in t && attempt(() => kernel.gradient(by, [x], { dense: [x], name: 'back' }))
      if (!dense) continue
      const all = run(parseProgram(dense.show(1)).kernel('back').source, at)
      expect(all.kind).toBe('dense')
      const moved: RefInputs = { ...at, buffers: { ...at.buffers, [x]: filled(t, all.shape) } }
      const same = attempt(() => reference(kernel.source, kept(moved, kernel.source)).buffers[by]!)
      if (JSON.stringify(same) !== JSON.stringify(result)) continue
      const stored = attempt(() => run(plain, moved))
      if (!stored || stored.kind === 'dense') continue
      counts.dense++
      const values = new Map(Array.from(stored.values, (v, e) => [stored.coords.map((c) => c[e]).join(), v]))
      for (const [k, v] of Array.from(all.values).entries()) {
        const coords = all.shape.map(
          (n, d) => Math.floor(k / all.shape.slice(d + 1).reduce((a, b) => a * b, 1)) % n,
        )
        expect(v, `${by} by ${x} at ${coords}\n${sample.text}`).toBeCloseTo(values.get(coords.join()) ?? 0, 9)
      }
    }
})

afterAll(() => {
  if (!LONG) return
  expect(counts.dense, JSON.stringify(counts)).toBeGreaterThan(0)
  expect(counts.recomputed, JSON.stringify(counts)).toBeGreaterThan(0)
})

const LAYER = (value: string) => `kernel layer(n: size, m: size, l: size) {
  axis t = dense_fixed(n)
  axis p = dense_fixed(m)
  axis o = sparse_variable(p, l)
  axis q = dense_fixed(l)
  buffer X: f32[t, p] in
  buffer W: f32[p, o] in
  buffer V: f32[p, o] in
  buffer S: f32[t, q] local
  buffer Y: f32[t, q] out
  iterate sum [t, p, o] as SRS { S[t, o] += ${value} }
  iterate gate [t, q] as SS { Y[t, q] = tanh(S[t, q]) }
}
`

test('the gradient at all coordinates runs over a dense axis', () => {
  const program = parseProgram(
    `${LAYER('X[t, p] * W[p, o]')}gradient back of layer by Y wrt (X, dense W) recomputing (S)`,
  )
  const text = program.kernel('back').show(1)
  expect(text).toContain('buffer d_W: f32[p, o_all] out')
  expect(text).toContain(
    'iterate sum_d_W [t, p, o_all] as RSS {\n    d_W[p, o_all] += d_S[t, o_all] * X[t, p]',
  )
  expect(text).toContain('iterate sum_again [t, p, o] as SRS {\n    S_again[t, o] += X[t, p] * W[p, o]')
  expect(parseProgram(text).kernel('back').show(1)).toBe(text)
})

test('gradients of temporaries are f32, and rounded to the type of the temporary by request', async () => {
  const half = LAYER('f16(X[t, p] * W[p, o])').replace('S: f32', 'S: f16')
  const asked = (more: string) =>
    parseProgram(`${half}gradient back of layer by Y wrt (W)${more}`).kernel('back')
  expect(asked('').show(1)).toContain('buffer d_S: f32[t, q] local')
  expect(asked(' rounding (S)').show(1)).toContain('buffer d_S: f16[t, q] local accumulate f32')
  const built = await asked(' rounding (S)').build(await devices.cpu())
  expect((await (await built.bind({ n: 5, m: 6, l: 4 }, { seed: 7 })).verify()).verdict).toBe('agrees')
})

test('results of both requests', () => {
  const program = parseProgram(
    inDoubles(
      `${LAYER('X[t, p] * W[p, o]')}gradient plain of layer by Y wrt (W)\n` +
        'gradient back of layer by Y wrt (dense W) recomputing (S)',
    ),
  )
  const W = {
    coords: [
      [0, 1, 1],
      [1, 0, 1],
    ],
    values: [2, 3, 5],
  }
  const given = { X: [0.1, 0.2, -0.3, 0.4], W, V: W, d_Y: [1, 2, 3, 4] }
  const run = (name: string) => {
    const { source } = program.kernel(name)
    const inputs = { params: { n: 2, m: 2, l: 2 }, buffers: given, structure: {} }
    return Array.from(reference(source, kept(inputs, source)).buffers.d_W!.values)
  }
  const dense = run('back')
  expect(dense.length).toBe(4)
  expect(dense[0]).not.toBe(0)
  expect(dense.slice(1)).toEqual(run('plain'))
})

test.each([
  ['X[t, p] * W[p, o]', { dense: ['W'] }, undefined],
  ['X[t, p] * (W[p, o] + 1)', { dense: ['W'] }, 'derive/not-dense'],
  ['X[t, p] * W[p, o] * V[p, o]', { dense: ['W'] }, 'derive/not-dense'],
  ['X[t, p] * W[p, o]', { recomputing: ['Y'] }, 'derive/not-temporary'],
  ['X[t, p] * W[p, o]', { recomputing: ['Z'] }, 'derive/unknown-tensor'],
  ['X[t, p] * W[p, o]', { rounding: ['S'] }, 'derive/not-temporary'],
  ['X[t, p] * W[p, o]', { rounding: ['Z'] }, 'derive/unknown-tensor'],
])('%s %j', (value, request, code) => {
  const { kernel } = { kernel: parseProgram(LAYER(value)).kernel() }
  const made = (): unknown => kernel.gradient('Y', ['W'], request)
  if (code === undefined) made()
  else expect(made).toThrow(code)
})

test('`stopping` makes every version of a tensor a constant', () => {
  const { source } = parseProgram(`kernel f(m: size) {
  axis i = dense_fixed(m)
  buffer X: f64[i] in
  buffer T: f64[i] local
  buffer L: f64[] out
  iterate a [i] as S { T[i] = X[i] * 2.0 }
  iterate b [i] as R { L[] += T[i] * 3.0 }
  iterate c [i] as S { T[i] = T[i] * X[i] }
  iterate d [i] as R { L[] += T[i] * X[i] }
}
gradient g of f by L wrt (X) stopping (T)`).kernel('g')
  const inputs = { params: { m: 2 }, buffers: { X: [3, 5] }, structure: {} }
  const { d_X } = reference(source, kept(inputs, source)).buffers
  expect(Array.from(d_X!.values)).toEqual([18, 50])
})
