/** Layers of experts from the router on, with our kernels on the CPU, and loops in the library's place. */
import { expect, test } from 'vitest'
import type { Case } from '../../bench/gpu/case.ts'
import { PRECISION } from '../../bench/gpu/expected.ts'
import { ExpectedLayers, type LayerShape } from '../../bench/gpu/expected-layers.ts'
import { expertLayersOf, Routing } from '../../bench/gpu/suites/expert-layer.ts'
import { untimed } from './simulated-suites.ts'

const SHAPE: LayerShape = { inputs: 12, hidden: 20, outputs: 9 }
const KERNELS = ['cpu', 'gpu(8,8,4,2)'].map((s) => `expert-layer.spt:expert_layer_f16.${s}`)

const layers = (top: number, factor = 1): Promise<readonly Case[]> =>
  untimed(KERNELS, (s) => expertLayersOf(s, [new Routing('routing:30', 5, top)], SHAPE), factor)

const outcomes = (c: Case): string[] => c.entries.map((e) => `${e.side} ${e.result}`)

test.each([1, 2])('top %d: the layer, and the library with all tokens at one expert', async (top) => {
  const [layer, all] = await layers(top)
  expect([layer!.suite, layer!.at]).toEqual(['expert-layer', `5 experts, top ${top}`])
  expect(outcomes(layer!)).toEqual(['ours ok', 'ours ok'])
  expect(all!.suite).toBe('expert-layer-dense')
  expect(outcomes(all!)).toEqual(['peer ok', 'ours ok', 'ours ok'])
  expect([layer!.standard, layer!.flops]).toEqual([KERNELS[0], 2 * top * 30 * 20 * (12 + 9)])
})

test('an inexact library is reported', async () => {
  expect(outcomes((await layers(1, 1 + 2 ** -6))[1]!)[0]).toBe('peer wrong')
})

test('tokens are routed to the sampled experts, by distinct logits, and gates sum to 1', () => {
  const own = new Routing('routing-steep:100:3', 8, 2)
  for (let t = 0; t < own.tokens; t++) {
    const row = Array.from(own.logits.subarray(8 * t, 8 * t + 8), (logit, expert) => ({ logit, expert }))
    row.sort((a, b) => b.logit - a.logit)
    const chosen = own.of(t)
    expect(chosen.map((c) => c.expert)).toEqual(row.slice(0, 2).map((r) => r.expert))
    expect(row[1]!.logit).toBeGreaterThan(row[2]!.logit + 1)
    expect(row[0]!.logit).toBeGreaterThan(row[1]!.logit)
    expect(chosen[0]!.gate + chosen[1]!.gate).toBeCloseTo(1, 12)
  }
})

test('expected rows: right ones pass, and inexact, missing or misrouted ones are detected', () => {
  const [x, U, D] = [4, 12, 6].map((n) => Float32Array.from({ length: n }, (_, k) => ((k * 7) % 5) - 2))
  const shape: LayerShape = { inputs: 4, hidden: 3, outputs: 2 }
  const expected = (low?: number) =>
    new ExpectedLayers(
      shape,
      2,
      Int32Array.of(1),
      () => x!,
      () => [{ gate: 0.5, U: U!, D: D! }],
      low,
    )
  const hidden = [0, 1, 2].map((q) => x!.reduce((sum, v, p) => sum + v * U![3 * p + q]!, 0))
  const row = (h: readonly number[]) =>
    [0, 1].map((o) => 0.5 * h.reduce((sum, v, q) => sum + v * D![2 * q + o]!, 0))
  const rectified = row(hidden.map((h) => Math.max(h, 0)))
  expect(rectified).not.toEqual(row(hidden))
  const ok = (low: number | undefined, ...y: number[]) =>
    expected(low).check(Float32Array.from(y), PRECISION.f32).ok
  expect(ok(undefined, 0, 0, ...rectified)).toBe(true)
  expect(ok(-Infinity, 0, 0, ...row(hidden))).toBe(true)
  expect(ok(undefined, 0, 0, ...row(hidden))).toBe(false)
  expect(ok(undefined, 0, 0, rectified[0]! + 0.1, rectified[1]!)).toBe(false)
  expect(ok(undefined, Number.NaN, 0, ...rectified)).toBe(false)
  expect(ok(undefined, 0, ...rectified)).toBe(false)
})
