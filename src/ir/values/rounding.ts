/** Rounding to floating-point types, and their shortest decimals. */
import type { ExprType } from './dtype.ts'
import { fromBf16, fromF16, toBf16, toF16 } from './half.ts'

/**
 * A function that rounds to the nearest number of a floating-point type, ties to even, infinite on overflow. It is the
 * identity for other types.
 */
export function rounding(t: ExprType): (x: number) => number {
  if (t === 'f32') return Math.fround
  if (t === 'f16') return (x) => fromF16(toF16(x))
  if (t === 'bf16') return (x) => fromBf16(toBf16(x))
  return (x) => x
}

/** The shortest decimal that rounds to this finite number of the type: 0.1, instead of 0.10000000149011612 in f32. */
export function decimal(x: number, t: ExprType): string {
  if (Object.is(x, -0)) return '-0'
  const round = rounding(t)
  if (!Number.isSafeInteger(x))
    for (let digits = 1; digits < 17; digits++) {
      const short = Number(x.toPrecision(digits))
      if (round(short) === x) return String(short)
    }
  return String(x)
}
