/** What is expected of softmax and of sampled blocks: right results pass, and one wrong element is found. */
import { expect, test } from 'vitest'
import { halves, randomBlocks, widen } from '../../bench/gpu/blocks.ts'
import type { Csr } from '../../bench/gpu/matrix.ts'
import { ExpectedBlocks } from '../../bench/gpu/suites/sampled-blocks.ts'
import { ExpectedSoftmax } from '../../bench/gpu/suites/softmax.ts'

test('rows of softmax', () => {
  const values = Float32Array.of(1, 2, 3, -80, 80)
  const A: Csr = {
    name: 'small',
    rows: 4,
    columns: 3,
    indptr: Int32Array.of(0, 3, 3, 5, 5),
    indices: Int32Array.of(0, 1, 2, 0, 2),
    values,
  }
  const expected = new ExpectedSoftmax(A)
  const total = Math.exp(-2) + Math.exp(-1) + 1
  const P = Float32Array.of(Math.exp(-2) / total, Math.exp(-1) / total, 1 / total, 0, 1)
  expect(expected.check(P).problem).toBe('')
  for (let e = 0; e < P.length; e++)
    for (const wrong of [Number.NaN, P[e]! + 1e-4])
      expect(expected.check(P.map((x, k) => (k === e ? wrong : x))).ok).toBe(false)
})

test('sampled blocks', () => {
  const [b, depth] = [8, 40]
  const m = randomBlocks(64, b, 0.3, 1)
  const [X, Y] = [halves(64 * depth, 2), halves(64 * depth, 3)]
  const [x, y] = [widen(X), widen(Y)]
  const C = new Float32Array(m.values.length)
  for (let r = 0; r + 1 < m.indptr.length; r++)
    for (let e = m.indptr[r]!; e < m.indptr[r + 1]!; e++)
      for (let at = 0; at < b * b; at++) {
        const [i, j] = [r * b + Math.floor(at / b), m.indices[e]! * b + (at % b)]
        for (let k = 0; k < depth; k++) C[e * b * b + at]! += x[i * depth + k]! * y[j * depth + k]!
      }
  const expected = new ExpectedBlocks(m, { X, Y, depth })
  expect(expected.check(C).problem).toBe('')
  expect(expected.check(C.map((v, k) => (k === 100 ? Number.NaN : v))).ok).toBe(false)
  // A block in another's place.
  const moved = C.slice()
  moved.copyWithin(0, b * b, 2 * b * b)
  expect(expected.check(moved).ok).toBe(false)
  expect(expected.check(C.subarray(1)).ok).toBe(false)
})
