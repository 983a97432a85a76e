/** Attention over drawn pairs, with our kernels on the CPU. */
import { expect, test } from 'vitest'
import { BlocksAndColumns, ExpectedAttention, Packed } from '../../bench/gpu/attention-draw.ts'
import { fieldOf } from '../../bench/gpu/candidates.ts'
import { PRECISION } from '../../bench/gpu/expected.ts'
import { fillNormal } from '../../bench/gpu/random.ts'
import { attentionOf, blockCase, packedCase } from '../../bench/gpu/suites/dynamic-attention.ts'
import { untimed } from './simulated-suites.ts'

const SHAPE = { tokens: 128, heads: 2, d: 64 }
const seed = Date.now() & 0xffff

test('the number of pairs is as requested, no row is empty, and shares refer to the lower triangle', () => {
  const blocks = new BlocksAndColumns(SHAPE, 16, 0.5, 0.1, seed)
  for (const pairs of [blocks, new Packed(SHAPE, 5, seed)]) {
    let count = 0
    for (let h = 0; h < SHAPE.heads; h++)
      for (let q = 0; q < SHAPE.tokens; q++) {
        expect(pairs.counts(h, q, q)).toBe(true)
        for (let k = 0; k < SHAPE.tokens; k++) if (pairs.counts(h, q, k)) count++
      }
    expect(count).toBe(pairs.count)
  }
  expect(blocks.blocks.reduce((a, b) => a + b, 0)).toBe(2 * 18)
  expect(blocks.columns.reduce((a, b) => a + b, 0)).toBe(2 * 13)
})

test('wrong results are detected', () => {
  const pairs = new Packed({ tokens: 4, heads: 1, d: 2 }, 2, seed)
  const [Q, K, V] = [0, 0, 1].map((x) => new Float32Array(8).fill(x)) as [
    Float32Array,
    Float32Array,
    Float32Array,
  ]
  const expected = new ExpectedAttention({ tokens: 4, heads: 1, d: 2 }, pairs, { Q, K, V }, 4)
  expect(expected.check(V, PRECISION.f32).ok).toBe(true)
  expect(
    expected.check(
      V.map((x, k) => (k === 7 ? 1.00001 : x)),
      PRECISION.f32,
    ).ok,
  ).toBe(false)
  expect(expected.check(fillNormal(new Float32Array(8), 1), PRECISION.f16).ok).toBe(false)
})

test('our kernels are correct on their cases', async () => {
  const shape = { ...SHAPE, d: 16 }
  const own = [
    'dynamic-attention.spt:dynamic_attention.auto',
    'dynamic-attention.spt:dynamic_attention<f16>.auto',
    'ragged-attention.spt:ragged_attention.auto',
    'ragged-attention.spt:ragged_attention<f16>.auto',
  ]
  const drawn = [
    blockCase(shape, 32, 0.5, 'f32'),
    blockCase(shape, 64, 0.5, 'f16'),
    packedCase(shape, 5, 'f32'),
    packedCase(shape, 5, 'f16'),
  ]
  const cases = await untimed(own, (s) => attentionOf(s, drawn))
  const outcome = cases.map((c) =>
    c.entries.filter((e) => e.side === 'ours').map((e) => `${e.name} ${e.result}${e.note}`),
  )
  expect(outcome).toEqual(own.map((name) => [`${name} ok`]))
})

test('fields have defaults', () => {
  for (const suite of [
    'dynamic-attention-blocks-32-f32',
    'dynamic-attention-blocks-64-f16',
    'ragged-attention-f32',
    'ragged-attention-f16',
  ]) {
    const { standard, candidates } = fieldOf(suite, [])
    expect(candidates.map((c) => c.text)).toContain(standard)
  }
})
