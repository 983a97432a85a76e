/** Numbers of each element type as docs/reference/language/kernels.md describes them, in float64 and big integers. */

export type Type = 'f64' | 'f32' | 'f16' | 'bf16' | 'i32' | 'u32' | 'i8' | 'u8' | 'bool'

export const isFloat = (t: Type): boolean => t === 'f64' || t === 'f32' || t === 'f16' || t === 'bf16'

/** The type that arithmetic on a type is done in. */
export const computed = (t: Type): Type =>
  t === 'f16' || t === 'bf16' ? 'f32' : t === 'i8' || t === 'u8' ? 'i32' : t

const RANGE = {
  i32: [-(2 ** 31), 2 ** 31 - 1],
  u32: [0, 2 ** 32 - 1],
  i8: [-128, 127],
  u8: [0, 255],
} as const
const BITS = { i32: 32, u32: 32, i8: 8, u8: 8 } as const
type Int = keyof typeof RANGE

export const range = (t: Type): readonly [number, number] => RANGE[t as Int]

/** An integer of any size, wrapped to a type. */
export function wrap(t: Type, x: bigint): number {
  const bits = BITS[t as Int]
  return Number(t === 'i32' || t === 'i8' ? BigInt.asIntN(bits, x) : BigInt.asUintN(bits, x))
}

/** To a float of `digits` significant binary digits, ties to even; subnormal below 2^`least`. */
function toDigits(x: number, digits: number, least: number, largest: number): number {
  if (x === 0 || !Number.isFinite(x)) return x
  let e = Math.floor(Math.log2(Math.abs(x)))
  if (2 ** e > Math.abs(x)) e--
  const unit = 2 ** (Math.max(e, least) - digits + 1)
  const q = Math.abs(x) / unit
  const low = Math.floor(q)
  const up = q - low > 0.5 || (q - low === 0.5 && low % 2 === 1)
  const r = (low + (up ? 1 : 0)) * unit
  return Math.sign(x) * (r > largest ? Infinity : r)
}

/** A real number as an element of a floating-point type. */
export function rounded(t: Type, x: number): number {
  if (t === 'f32') return Math.fround(x)
  if (t === 'f16') return toDigits(x, 11, -14, 65504)
  if (t === 'bf16') return toDigits(x, 8, -126, 255 * 2 ** 120)
  return x
}

/** `to(x)`: floats are rounded; from floats to integers truncated, saturated, and 0 for NaN; integers wrap. */
export function cast(from: Type, to: Type, x: number): number {
  if (to === 'bool') return x !== 0 ? 1 : 0
  if (isFloat(to)) return rounded(to, x)
  if (!isFloat(from)) return wrap(to, BigInt(x))
  const [low, high] = range(to)
  return Number.isNaN(x) ? 0 : Math.min(high, Math.max(low, Math.trunc(x)))
}

/** What 16 bits of a floating-point type stand for. */
export function fromBits(t: 'f16' | 'bf16', bits: number): number {
  const digits = t === 'f16' ? 10 : 7
  const bias = t === 'f16' ? 15 : 127
  const exponents = t === 'f16' ? 31 : 255
  const sign = bits >> 15 ? -1 : 1
  const e = (bits >> digits) & exponents
  const fraction = (bits & (2 ** digits - 1)) / 2 ** digits
  if (e === exponents) return fraction === 0 ? sign * Infinity : NaN
  return sign * (e === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (e - bias))
}

/** A number as the language writes a literal of that type. */
export function literal(t: Type, x: number): string {
  if (t === 'bool') return x ? 'true' : 'false'
  if (Number.isNaN(x)) return 'nan'
  if (x === Infinity) return 'inf'
  if (x === -Infinity) return '(-inf)'
  const digits =
    isFloat(t) && Number.isInteger(x) && Math.abs(x) < 1e15 ? `${Math.abs(x)}.0` : String(Math.abs(x))
  return x < 0 ? `(-${digits})` : digits
}
