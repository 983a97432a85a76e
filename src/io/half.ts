/** 16-bit floats as bit patterns: IEEE binary16 (f16) and bfloat16 (bf16), rounded to nearest even. */

interface Layout {
  readonly mantissa: number
  readonly bias: number
}
const F16: Layout = { mantissa: 10, bias: 15 }
const BF16: Layout = { mantissa: 7, bias: 127 }

const bits = new DataView(new ArrayBuffer(8))
/** Adding and taking away 2^52 rounds a smaller non-negative double to an integer, ties to even. */
const ROUND = 2 ** 52

function encode(x: number, { mantissa, bias }: Layout): number {
  const infinity = (2 * bias + 1) << mantissa
  if (Number.isNaN(x)) return infinity | (1 << (mantissa - 1))
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0
  const a = Math.abs(x)
  bits.setFloat64(0, a)
  const exponent = Math.max((bits.getUint16(0) >> 4) - 1023, 1 - bias)
  if (exponent > bias) return sign | infinity
  const scaled = a * 2 ** (mantissa - exponent) + ROUND - ROUND
  // A significand that rounds up to the next power of two carries into the exponent, and from there to infinity.
  return sign | (((exponent + bias - 1) << mantissa) + scaled)
}

function decode(h: number, { mantissa, bias }: Layout): number {
  const sign = h & 0x8000 ? -1 : 1
  const exponent = (h & 0x7fff) >> mantissa
  const fraction = h & ((1 << mantissa) - 1)
  if (exponent === 2 * bias + 1) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY
  if (exponent === 0) return sign * fraction * 2 ** (1 - bias - mantissa)
  return sign * (fraction + (1 << mantissa)) * 2 ** (exponent - bias - mantissa)
}

export const encodeF16 = (x: number): number => encode(x, F16)
export const decodeF16 = (h: number): number => decode(h, F16)
export const encodeBf16 = (x: number): number => encode(x, BF16)
export const decodeBf16 = (h: number): number => decode(h, BF16)
