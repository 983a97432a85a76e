/** What `as` makes of a dense tensor whose axes others use: copies of its own, and elements at coordinates. */
import { expect, test } from 'vitest'
import { print1 } from '../../../src/ir/print/print-stage1.ts'
import { verify1 } from '../../../src/verifiers/stage1.ts'
import { diagnosticOf } from '../../support/refusal.ts'
import { compilationOf } from './apply.ts'
import { FORMATS } from './formats.ts'

const TILES = `format tiles(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = dense_fixed(ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}`

const kernel = (buffers: string, body: string): string => `${FORMATS}${TILES}
kernel k(m: size, n: size, o: size) {
  axis i = dense_fixed(m)
  axis p = dense_fixed(n)
  axis j = dense_fixed(o)
  ${buffers}
  ${body}
}`

const PRODUCT = kernel(
  'buffer A: f32[i, p] in\nbuffer B: f32[p, j] in\nbuffer C: f32[i, j] out',
  'iterate mm [i, p, j] as SRS { C[i, j] += A[i, p] * B[p, j] }',
)

/** What stands after the axes. */
const applied = (text: string, steps: string): string => {
  const { kernel: k } = compilationOf(text, steps)
  verify1(k)
  const lines = print1(k).split('\n')
  return lines.slice(lines.findIndex((l) => l.startsWith('  buffer'))).join('\n')
}

const refusal = (text: string, steps: string): string | undefined =>
  diagnosticOf(() => compilationOf(text, steps))?.code

test('the other factor and the result keep their axes', () => {
  expect(applied(PRODUCT, 'A as bsr(4)')).toBe(`  buffer A: f32[io, jo, ii, ji] in
  buffer B: f32[p, j] in
  buffer C: f32[i, j] out
  iterate mm [io, jo, ii, ji, j] as SRSRS where (io * 4 + ii < m and jo * 4 + ji < n) {
    C[io * 4 + ii, j] += A[io, jo, ii, ji] * B[jo * 4 + ji, j]
  }
}`)
})

test('sequential formats: the second is read at coordinates of the first, within bounds', () => {
  expect(applied(PRODUCT, 'A as bsr(2)\nB as bsr(4)')).toContain(
    'C[io * 2 + ii, j] += A[io, jo, ii, ji] * B[(jo * 2 + ji) / 4, j / 4, (jo * 2 + ji) % 4, j % 4]',
  )
  expect(applied(PRODUCT, 'B as csr\nA as ell')).toContain(`  iterate mm [i, io, jo] as SRS {
    C[i, jo] += A[i, io] * B[io, jo]`)
})

test('a result in tiles is written at coordinates that a format of a factor computes', () => {
  expect(applied(PRODUCT, 'A as bsr(2)\nC as tiles(4)')).toContain(
    'C[(io * 2 + ii) / 4, j / 4, (io * 2 + ii) % 4, j % 4] +=',
  )
  expect(refusal(PRODUCT, 'C as bsr(2)')).toBe('schedule/format-output')
})

test('unbounded coordinates cannot be written', () => {
  const text = kernel(
    'buffer A: f32[i, p] in\nbuffer C: f32[i, p] out',
    'iterate shift [i, p] as SS where (i + 1 < m) { C[i + 1, p] = A[i, p] }',
  )
  expect(refusal(text, 'C as tiles(4)')).toBeUndefined()
  expect(refusal(text.replace('where (i + 1 < m)', ''), 'C as tiles(4)')).toBe('schedule/format-lookup')
})

test('tensors over the same axes are stored separately', () => {
  const text = kernel(
    'buffer A: f32[i, p] in\nbuffer D: f32[i, p] in\nbuffer C: f32[i, p] out',
    'iterate times [i, p] as SS { C[i, p] += A[i, p] * D[i, p] }',
  )
  expect(applied(text, 'A as csr')).toBe(`  buffer A: f32[io, jo] in
  buffer D: f32[i, p] in
  buffer C: f32[i, p] out
  iterate times [io, jo] as SS {
    C[io, jo] += A[io, jo] * D[io, jo]
  }
}`)
  expect(applied(text, 'A as csr\nD as dcsr')).toContain('C[io, jo] += A[io, jo] * D[io, jo]')
})

test('an iteration without the tensor is unchanged, and so is a second one over an axis', () => {
  const text = kernel(
    'buffer A: f32[i, p] in\nbuffer y: f32[i] out\nbuffer z: f32[p] out',
    `iterate ones [i, p] as SR { y[i] += 1.0 }
     iterate gram [i, p, q in p] as RSR { z[p] += A[i, p] * A[i, q] }`,
  )
  expect(applied(text, 'A as csr')).toContain(`  iterate ones [i, p] as SR {
    y[i] += 1
  }
  iterate gram [io, jo, q in p] as RSR {
    z[jo] += A[io, jo] * A[io, q]
  }`)
})

test('iterators that enter another axis are kept: the tensor is read at their coordinates', () => {
  const text = kernel(
    'axis s = sparse_variable(i, n)\nbuffer S: f32[i, s] in\nbuffer B: f32[i, j] in\nbuffer C: f32[j] out',
    'iterate sum [i, s, j] as RRS { C[j] += S[i, s] * B[i, j] }',
  )
  expect(applied(text, 'B as bsr(4)')).toContain(`  iterate sum [i, s, j] as RRS {
    C[j] += S[i, s] * B[i / 4, j / 4, i % 4, j % 4]`)
  expect(refusal(text, 'B as sell(2, 4)')).toBe('schedule/format-lookup')
})
