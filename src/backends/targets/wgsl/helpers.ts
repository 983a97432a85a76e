/** Helper functions that WGSL code defines on demand, for operations that the language leaves undefined or lacks. */
import { INT_RANGE } from '../../../ir/values/dtype.ts'
import { helpersOf } from '../../print/spellings.ts'

/** Converts a float to an integer: rounds towards zero, saturates, and maps NaN to 0. */
const saturatingCast = (to: 'i32' | 'u32' | 'i8' | 'u8'): string => {
  const [lo, hi] = INT_RANGE[to]
  const type = to === 'u32' ? 'u32' : 'i32'
  const boundText = (x: number): string => (x === -2147483648 ? 'i32(-2147483648)' : `${type}(${x})`)
  // No f32 exists between the largest f32 that fits a 32-bit integer type and the bound.
  return `fn to_${to}(x: f32) -> ${type} {\n  let whole = select(${type}(clamp(x, ${lo}.0, ${hi}.0)), ${boundText(hi)}, x >= ${hi}.0);\n  return select(select(whole, ${boundText(lo)}, x <= ${lo}.0), ${boundText(0)}, is_nan(x));\n}`
}

export const HELPERS: Readonly<Record<string, string>> = {
  ...Object.fromEntries((['i32', 'u32', 'i8', 'u8'] as const).map((t) => [`to_${t}`, saturatingCast(t)])),
  inf: 'fn inf() -> f32 {\n  var bits = 0x7f800000u;\n  return bitcast<f32>(bits);\n}',
  nan: 'fn nan() -> f32 {\n  var bits = 0x7fc00000u;\n  return bitcast<f32>(bits);\n}',
  round_bf16:
    'fn round_bf16(x: f32) -> f32 {\n  let u = bitcast<u32>(x);\n  let r = (u + 0x7fffu + ((u >> 16u) & 1u)) & 0xffff0000u;\n  return bitcast<f32>(select(r, u, (u & 0x7fffffffu) > 0x7f800000u));\n}',
  // Tests bits, because implementations may assume that no value is NaN, and fold `x != x`.
  is_nan: 'fn is_nan(x: f32) -> bool {\n  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;\n}',
  // Round-to-odd avoids double rounding when the f32 result is rounded to a narrower type.
  odd_u32:
    'fn odd_u32(x: u32) -> f32 {\n  let high = (x >> 8u) | u32((x & 255u) != 0u);\n  return select(f32(x), f32(high) * 256.0, x >= 16777216u);\n}',
  odd_i32:
    'fn odd_i32(x: i32) -> f32 {\n  let size = odd_u32(u32(select(x, -x, x < 0i)));\n  return select(size, -size, x < 0i);\n}',
  // quantizeToF16 is undefined for values out of range, and may flush subnormals.
  round_f16: `fn round_f16(x: f32) -> f32 {
  let u = bitcast<u32>(x);
  let s = u & 0x80000000u;
  let a = u & 0x7fffffffu;
  if (a > 0x7f800000u) {
    return x;
  }
  if (a >= 0x477ff000u) {
    return bitcast<f32>(s | 0x7f800000u);
  }
  if (a < 0x38800000u) {
    return bitcast<f32>(s | bitcast<u32>(round(bitcast<f32>(a) * 16777216.0) / 16777216.0));
  }
  return bitcast<f32>((u + 0xfffu + ((u >> 13u) & 1u)) & 0xffffe000u);
}`,
  // Nearest f16 (ties to even) by bits, because WGSL does not define the rounding of conversions and subnormals.
  half_bits: `fn half_bits(x: f32) -> u32 {
  let u = bitcast<u32>(x);
  let a = u & 0x7fffffffu;
  var h = ((a + 0xfffu + ((a >> 13u) & 1u)) >> 13u) - 0x1c000u;
  if (a < 0x38800000u) {
    h = u32(round(bitcast<f32>(a) * 16777216.0));
  }
  if (a >= 0x477ff000u) {
    h = select(0x7c00u, 0x7e00u, a > 0x7f800000u);
  }
  return ((u >> 16u) & 0x8000u) | h;
}`,
  to_f16: 'fn to_f16(x: f32) -> f16 {\n  return bitcast<vec2<f16>>(half_bits(x)).x;\n}',
  // For atomic updates, two f16 elements share a word.
  half_of: 'fn half_of(word: u32, at: i32) -> f32 {\n  return f32(bitcast<vec2<f16>>(word)[at & 1]);\n}',
  with_half:
    'fn with_half(word: u32, at: i32, x: f32) -> u32 {\n  let h = half_bits(x);\n  return select((word & 0xffff0000u) | h, (word & 0xffffu) | (h << 16u), (at & 1) == 1);\n}',
  // From compute capability 9.0 on, NVIDIA's drivers (580.159) fuse nested minima into one instruction, and lose the sign of a
  // negated operand (`abs` counts as one). Unsigned numbers with a flipped sign bit are not affected.
  min_i32:
    'fn min_i32(a: i32, b: i32) -> i32 {\n  return i32(min(u32(a) ^ 0x80000000u, u32(b) ^ 0x80000000u) ^ 0x80000000u);\n}',
  max_i32:
    'fn max_i32(a: i32, b: i32) -> i32 {\n  return i32(max(u32(a) ^ 0x80000000u, u32(b) ^ 0x80000000u) ^ 0x80000000u);\n}',
  abs_i32: 'fn abs_i32(x: i32) -> i32 {\n  return select(x, -x, x < 0i);\n}',
  // The following functions define results for infinities, NaN, zeros and large arguments, which WGSL leaves undefined.
  max_f32: 'fn max_f32(a: f32, b: f32) -> f32 {\n  return select(select(b, a, a > b), a, is_nan(a));\n}',
  min_f32: 'fn min_f32(a: f32, b: f32) -> f32 {\n  return select(select(b, a, a < b), a, is_nan(a));\n}',
  exp_f32: 'fn exp_f32(x: f32) -> f32 {\n  return select(exp(x), x, is_nan(x));\n}',
  exp2_f32: 'fn exp2_f32(x: f32) -> f32 {\n  return select(exp2(x), x, is_nan(x));\n}',
  log_f32: `fn log_f32(x: f32) -> f32 {
  let y = select(log(x), -inf(), x == 0.0);
  return select(select(y, nan(), x < 0.0), x, is_nan(x) || x == inf());
}`,
  // WGSL has no log1p, and 1 + x loses small x. Near 0: 2 artanh(x / (2 + x)), with the factor x kept until the end.
  log1p_f32: `fn log1p_f32(x: f32) -> f32 {
  if (abs(x) >= 0.25) {
    return log_f32(1.0 + x);
  }
  let t = 2.0 / (2.0 + x);
  let z = 0.25 * (x * t) * (x * t);
  return x * (t * (1.0 + z * (0.33333333 + z * (0.2 + z * (0.14285714 + z * 0.11111111)))));
}`,
  tanh_f32:
    'fn tanh_f32(x: f32) -> f32 {\n  return select(tanh(clamp(x, -10.0, 10.0)), x, is_nan(x) || abs(x) < 1e-4);\n}',
  sign_f32: 'fn sign_f32(x: f32) -> f32 {\n  return select(sign(x), x, is_nan(x));\n}',
  // 2π in two parts (Cody and Waite); the first has few digits, so its multiples are exact.
  turn: 'fn turn(x: f32) -> f32 {\n  let k = round(x * 0.15915494);\n  return (x - k * 6.28125) - k * 0.0019353072;\n}',
  sin_f32: 'fn sin_f32(x: f32) -> f32 {\n  return sin(turn(x));\n}',
  cos_f32: 'fn cos_f32(x: f32) -> f32 {\n  return cos(turn(x));\n}',
  pow_f32: `fn pow_f32(x: f32, y: f32) -> f32 {
  if (y == 0.0) {
    return 1.0;
  }
  if (is_nan(x) || is_nan(y)) {
    return nan();
  }
  let a = abs(x);
  if (abs(y) == inf()) {
    return select(select(0.0, inf(), (a > 1.0) == (y > 0.0)), nan(), a == 1.0);
  }
  let odd = floor(y) == y && floor(y * 0.5) * 2.0 != y;
  let zero = a == 0.0 || a == inf();
  let far = select(0.0, inf(), (a == 0.0) == (y < 0.0));
  let p = select(pow(select(a, 1.0, zero), y), far, zero);
  if (x < 0.0 && floor(y) != y && !zero) {
    return nan();
  }
  return select(p, -p, x < 0.0 && odd);
}`,
  erf: `fn erf(x: f32) -> f32 {
  let a = abs(x);
  if (a < 1.0) {
    let s = x * x;
    return x * (1.1283791671 + s * (-0.3761263890 + s * (0.1128379165 + s * (-0.0268661706 + s * (0.0052239776 + s * (-0.0008548327 + s * (0.0001205533 - s * 0.0000149257)))))));
  }
  let t = 1.0 / (1.0 + 0.5 * a);
  let p = -1.26551223 + t * (1.00002368 + t * (0.37409196 + t * (0.09678418 + t * (-0.18628806 + t * (0.27886807 + t * (-1.13520398 + t * (1.48851587 + t * (-0.82215223 + t * 0.17087277))))))));
  return sign(x) * (1.0 - t * exp(-a * a + p));
}`,
}

/** A call. Comparisons are parenthesised if WGSL would parse `<` and `>` of two operands as template arguments. */
export function functionCall(name: string, ...args: readonly string[]): string {
  const opens = args.findIndex((x) => / < /.test(x))
  const closes = args.findLastIndex((x) => / >[>=]? /.test(x))
  const isAmbiguous = opens >= 0 && closes > opens
  return `${name}(${args.map((x) => (isAmbiguous && / [<>]/.test(x) ? `(${x})` : x)).join(', ')})`
}

export const { helperCall, helperFunction } = helpersOf(HELPERS, functionCall)
