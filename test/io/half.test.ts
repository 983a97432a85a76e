import { test as prop } from '@fast-check/vitest'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeBf16, decodeF16, encodeBf16, encodeF16 } from '../../src/io/half.ts'

const KINDS = [
  { name: 'f16', encode: encodeF16, decode: decodeF16, infinity: 0x7c00 },
  { name: 'bf16', encode: encodeBf16, decode: decodeBf16, infinity: 0x7f80 },
]

for (const { name, encode, decode, infinity } of KINDS) {
  test(`${name}: every pattern decodes and encodes to itself`, () => {
    const wrong: number[] = []
    for (let h = 0; h < 65536; h++) {
      const nan = (h & 0x7fff) > infinity
      if (nan ? !Number.isNaN(decode(h)) : encode(decode(h)) !== h) wrong.push(h)
    }
    expect(wrong).toEqual([])
  })
  prop.prop([fc.nat(infinity - 1), fc.double({ min: 0, max: 1, noNaN: true })])(
    `${name}: numbers between two patterns go to the nearer, ties to even`,
    (h, t) => {
      const lo = decode(h)
      const hi = h + 1 === infinity ? lo + (lo - decode(h - 1)) : decode(h + 1)
      const x = lo + (hi - lo) * t
      const half = lo + (hi - lo) / 2
      const want = x < half ? h : x > half ? h + 1 : h + (h & 1)
      expect(encode(x)).toBe(want)
      expect(encode(-x)).toBe(want | 0x8000)
      expect(encode(half)).toBe(h + (h & 1))
    },
  )
}

test('known values', () => {
  expect(encodeF16(1)).toBe(0x3c00)
  expect(encodeF16(65504)).toBe(0x7bff)
  expect(encodeF16(65520)).toBe(0x7c00)
  expect(encodeBf16(1)).toBe(0x3f80)
  expect(decodeBf16(0x4049)).toBe(3.140625)
  expect(decodeF16(encodeF16(Number.NaN))).toBeNaN()
})
