/** Helper functions that C code defines on demand, for operations that the language leaves undefined or lacks. */
import { INT_RANGE } from '../../../ir/values/dtype.ts'
import { helpersOf } from '../../print/spellings.ts'

const inline = (text: string): string => `static inline ${text}`

/** Converts a float to an integer: rounds towards zero, saturates, and maps NaN to 0. */
const saturatingCast = (to: 'i32' | 'u32' | 'i8' | 'u8'): string => {
  const [lo, hi] = INT_RANGE[to]
  const type = to === 'u32' ? 'unsigned' : 'int'
  return inline(
    `${type} to_${to}(double x) { return x != x ? 0 : (${type})(x < ${lo}.0 ? ${lo}.0 : x > ${hi}.0 ? ${hi}.0 : x); }`,
  )
}

const perType = (
  types: Readonly<Record<string, string>>,
  name: string,
  text: (type: string, fn: string) => string,
): readonly (readonly [string, string])[] =>
  Object.entries(types).map(([t, type]) => [`${name}_${t}`, inline(text(type, `${name}_${t}`))])

const FLOATS = { f32: 'float', f64: 'double' }
const INTEGERS = { i32: 'int', i64: 'long long', u32: 'unsigned', bool: 'bool' }
const NUMBERS = { ...FLOATS, i32: 'int', u32: 'unsigned' }

export const HELPERS: Readonly<Record<string, string>> = {
  ...Object.fromEntries((['i32', 'u32', 'i8', 'u8'] as const).map((t) => [`to_${t}`, saturatingCast(t)])),
  // fmin and fmax drop NaN.
  ...Object.fromEntries([
    ...perType(FLOATS, 'min', (t, f) => `${t} ${f}(${t} a, ${t} b) { return a != a || a < b ? a : b; }`),
    ...perType(FLOATS, 'max', (t, f) => `${t} ${f}(${t} a, ${t} b) { return a != a || a > b ? a : b; }`),
    ...perType(INTEGERS, 'min', (t, f) => `${t} ${f}(${t} a, ${t} b) { return a < b ? a : b; }`),
    ...perType(INTEGERS, 'max', (t, f) => `${t} ${f}(${t} a, ${t} b) { return a > b ? a : b; }`),
    ...perType(NUMBERS, 'sign', (t, f) => `${t} ${f}(${t} x) { return x > 0 ? 1 : x < 0 ? -1 : x; }`),
  ]),
  // INT_MIN / -1 overflows.
  quo: inline('int quo(int a, int b) { return b == -1 ? (int)(0u - (unsigned)a) : a / b; }'),
  rem: inline('int rem(int a, int b) { return b == -1 ? 0 : a % b; }'),
  abs_i32: inline('int abs_i32(int x) { return x < 0 ? (int)(0u - (unsigned)x) : x; }'),
  popcount: inline(
    'int popcount(int x) { int n = 0; for (unsigned rest = (unsigned)x; rest; rest &= rest - 1u) n++; return n; }',
  ),
  bits_of: inline('unsigned bits_of(float x) { union { float f; unsigned u; } v = {x}; return v.u; }'),
  float_of: inline('float float_of(unsigned x) { union { unsigned u; float f; } v = {x}; return v.f; }'),
  bf16_to_f32: inline('float bf16_to_f32(unsigned short h) { return float_of((unsigned)h << 16); }'),
  f32_to_bf16: inline(`unsigned short f32_to_bf16(float x) {
  const unsigned u = bits_of(x);
  return x != x ? 0x7fc0 : (unsigned short)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}`),
  f16_to_f32: inline(`float f16_to_f32(unsigned short h) {
  const unsigned sign = (h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 1023u;
  if (e == 0) return float_of(sign | bits_of((float)m * 5.9604644775390625e-8f));
  return float_of(sign | (e == 31 ? 0x7f800000u : (e + 112u) << 23) | m << 13);
}`),
  f32_to_f16: inline(`unsigned short f32_to_f16(float x) {
  const unsigned u = bits_of(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  if (a >= 0x7f800000u) return (unsigned short)(sign | (a > 0x7f800000u ? 0x7e00u : 0x7c00u));
  if (a >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);
  if (a < 0x38800000u) return (unsigned short)(sign | (unsigned)rintf(float_of(a) * 16777216.0f));
  return (unsigned short)(sign | ((a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13));
}`),
  // Round-to-odd avoids double rounding when the f32 result is rounded to a narrower type.
  odd: inline(`float odd(double x) {
  const float f = (float)x;
  if (x != x || (double)f == x) return f;
  return float_of((bits_of(f) - (fabs((double)f) > fabs(x) ? 1u : 0u)) | 1u);
}`),
}

export const { helperCall, helperFunction } = helpersOf(HELPERS)
