/**
 * Rounding to floating-point types. The 16-bit types are bit patterns: IEEE 754 binary16 and bfloat16. Widening is
 * exact; narrowing rounds once, to nearest, ties to even.
 */
import type { ExprType } from './dtype.ts'

const words = new Uint32Array(1)
const f32 = new Float32Array(words.buffer)

/**
 * The bits of a double rounded to f32 to odd: a number between two floats becomes the odd one. Rounding the result to a type with at least
 * two bits less then equals rounding the double once.
 */
export function bitsToOdd(x: number): number {
  f32[0] = x
  const isExact = f32[0] === x
  if (Math.abs(f32[0]) > Math.abs(x)) words[0]!--
  return isExact ? words[0]! : words[0]! | 1
}

/** The f16 bit pattern nearest to a double. */
export const toF16 = (x: number): number => f32BitsToF16(bitsToOdd(x))
/** The bf16 bit pattern nearest to a double. */
export const toBf16 = (x: number): number => f32BitsToBf16(bitsToOdd(x))

let table: Uint32Array | undefined
/** The f32 bits of each f16 pattern. */
export function f16ToF32Bits(): Uint32Array {
  return (table ??= Uint32Array.from({ length: 65536 }, (_, h) => {
    const sign = (h & 0x8000) << 16
    const exponent = (h >>> 10) & 31
    const fraction = h & 0x3ff
    if (exponent === 31) return sign | 0x7f800000 | (fraction << 13)
    if (exponent !== 0) return sign | ((exponent + 112) << 23) | (fraction << 13)
    // Zero or a subnormal.
    f32[0] = fraction * 2 ** -24
    return sign | words[0]!
  }))
}

export function fromF16(bits: number): number {
  words[0] = f16ToF32Bits()[bits]!
  return f32[0]!
}

export function fromBf16(bits: number): number {
  words[0] = bits << 16
  return f32[0]!
}

/** f32 bits to f16 bits; NaN payloads are kept as far as they fit. */
export function f32BitsToF16(bits: number): number {
  const sign = (bits >>> 16) & 0x8000
  const abs = bits & 0x7fffffff
  if (abs > 0x7f800000) {
    const payload = (abs >>> 13) & 0x3ff
    return sign | 0x7c00 | (payload === 0 ? 0x200 : payload)
  }
  // 65520 lies halfway between the largest f16 and the next power of two, and ties go to the even one.
  if (abs >= 0x477ff000) return sign | 0x7c00
  if (abs >= 0x38800000) {
    const rebased = abs - 0x38000000
    return sign | ((rebased + 0xfff + ((rebased >>> 13) & 1)) >>> 13)
  }
  // A subnormal: its unit is that of 0.5 in f32, so that this sum rounds it once.
  words[0] = abs
  f32[0]! += 0.5
  return sign | (words[0] - 0x3f000000)
}

/** f32 bits to bf16 bits; NaN payloads are kept as far as they fit. */
export function f32BitsToBf16(bits: number): number {
  if ((bits & 0x7fffffff) > 0x7f800000) {
    const top = bits >>> 16
    return (top & 0x7f) === 0 ? top | 0x40 : top
  }
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16
}

// Rounding to floating-point types, and their shortest decimals.

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
