/** The 16-bit floating-point types as bit patterns: IEEE 754 binary16 and bfloat16, rounding to nearest even. */

const wide = new Float32Array(1)
const bits = new Uint32Array(wide.buffer)

/** bfloat16 is the upper half of binary32. Rounds from binary64 once: the step through binary32 rounds to odd. */
export function toBf16(x: number): number {
  if (Number.isNaN(x)) return 0x7fc0
  wide[0] = x
  if (wide[0] !== x && Number.isFinite(wide[0])) {
    // Truncate to binary32, then set the last bit: the second rounding then sees that something was cut off.
    if (Math.abs(wide[0]) > Math.abs(x)) bits[0]!--
    bits[0]! |= 1
  } else if (wide[0] !== x && Number.isFinite(x)) return x < 0 ? 0xff80 : 0x7f80
  const b = bits[0]!
  return ((b + 0x7fff + ((b >>> 16) & 1)) >>> 16) & 0xffff
}

export function fromBf16(b: number): number {
  bits[0] = (b << 16) >>> 0
  return wide[0]!
}

const ROUND = 2 ** 52

/** Nearest integer, ties to even, for 0 <= x < 2^52. */
const nearest = (x: number): number => x + ROUND - ROUND

export function toF16(x: number): number {
  if (Number.isNaN(x)) return 0x7e00
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0
  const a = Math.abs(x)
  if (a >= 65520) return sign | 0x7c00
  // Below 2^-14 the spacing is 2^-24; a carry out of the subnormals gives the smallest normal by itself.
  if (a < 2 ** -14) return sign | nearest(a * 2 ** 24)
  let e = Math.floor(Math.log2(a))
  if (2 ** e > a) e--
  else if (2 ** (e + 1) <= a) e++
  return sign | (((e + 15) << 10) + nearest((a * 2 ** -e - 1) * 1024))
}

export function fromF16(b: number): number {
  const sign = b & 0x8000 ? -1 : 1
  const e = (b >>> 10) & 31
  const m = b & 1023
  if (e === 0) return sign * m * 2 ** -24
  if (e === 31) return m ? Number.NaN : sign * Number.POSITIVE_INFINITY
  return sign * (1 + m / 1024) * 2 ** (e - 15)
}
