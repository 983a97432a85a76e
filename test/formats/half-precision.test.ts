import fc from 'fast-check'
import { expect, it } from 'vitest'
import { fromBf16, fromF16, toBf16, toF16 } from '../../src/ir/values/half.ts'
import { runs } from '../support/cases.ts'

const types = [
  { name: 'f16', to: toF16, from: fromF16, inf: 0x7c00, max: 65504 },
  { name: 'bf16', to: toBf16, from: fromBf16, inf: 0x7f80, max: fromBf16(0x7f7f) },
]

for (const { name, to, from, inf, max } of types) {
  it(`${name}: every bit pattern round-trips`, () => {
    const wrong = Array.from({ length: 65536 }, (_, b) => b).filter((b) => {
      const x = from(b)
      return Number.isNaN(x) ? !Number.isNaN(from(to(x))) : to(x) !== b
    })
    expect(wrong).toEqual([])
  })

  it(`${name}: rounds once, to the nearest, ties to even`, () => {
    // Between neighbours a < b: what is nearer to a gives a, the middle gives the even pattern.
    fc.assert(
      fc.property(fc.integer({ min: 0, max: inf - 2 }), fc.boolean(), (b, negative) => {
        const s = negative ? -1 : 1
        const sign = negative ? 0x8000 : 0
        const [lo, hi] = [from(b), from(b + 1)]
        const middle = lo + (hi - lo) / 2
        expect(to(s * middle)).toBe(sign | (b % 2 === 0 ? b : b + 1))
        // Nearer to the middle than float32 can tell apart.
        const slight = (hi - lo) * 2 ** -30
        expect(to(s * (middle - slight))).toBe(sign | b)
        expect(to(s * (middle + slight))).toBe(sign | (b + 1))
      }),
      { numRuns: runs(1500) },
    )
  })

  it(`${name}: overflow, infinities and NaN`, () => {
    const ulp = max - from(inf - 2)
    expect(to(max + ulp / 2)).toBe(inf)
    expect(to(max + ulp / 2.01)).toBe(inf - 1)
    expect(to(1e300)).toBe(inf)
    expect(to(-1e300)).toBe(0x8000 | inf)
    expect(to(Number.NEGATIVE_INFINITY)).toBe(0x8000 | inf)
    expect(to(1e-300)).toBe(0)
    expect(to(-1e-300)).toBe(0x8000)
    expect(Number.isNaN(from(to(Number.NaN)))).toBe(true)
  })
}
