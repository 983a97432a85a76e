/**
 * WGSL. Elements narrower than 32 bits are stored widened, a word each (the webgpu device converts at its
 * border), and rounded when they are written. Infinities cannot be literals: helpers make them at run time.
 */
import { type Dtype, INT_RANGE, isFloat, isInt } from '../../ir/dtype.ts'
import type { MathFn } from '../../ir/expr.ts'
import type { BufferRef, Helpers, Target } from '../target.ts'

const RESERVED = new Set(
  `alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if let loop override requires return struct switch true var while NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become cast catch class co_await co_return co_yield coherent column_major common compile compile_fragment concept const_cast consteval constexpr constinit crate debugger decltype delete demote demote_to_helper do dynamic_cast enum explicit export extends extern external fallthrough filter final finally friend from fxgroup get goto groupshared highp impl implements import inline instanceof interface layout lowp macro macro_rules match mediump meta mod module move mut mutable namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null nullptr of operator package packoffset partition pass patch pixelfragment precise precision premerge priv protected pub public readonly ref regardless register reinterpret_cast require resource restrict self set shared sizeof smooth snorm static static_assert static_cast std subroutine super target template this thread_local throw trait try type typedef typeid typename typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl where with writeonly yield array atomic bool f16 f32 i32 u32 mat2x2 mat2x3 mat2x4 mat3x2 mat3x3 mat3x4 mat4x2 mat4x3 mat4x4 vec2 vec3 vec4 ptr sampler texture_1d texture_2d bitcast all any select abs acos asin atan ceil clamp cos cosh cross degrees determinant distance dot exp exp2 floor fma fract inverseSqrt ldexp length log log2 max min mix modf normalize pow radians reflect refract round sign sin sinh smoothstep sqrt step tan tanh transpose trunc workgroupBarrier storageBarrier atomicAdd atomicLoad atomicStore params group local main function private storage uniform workgroup read write read_write linear groups old_word Params quantizeToF16 fwidth dpdx dpdy sinh cosh asinh acosh atanh atan2 faceForward outerProduct saturate pack4x8snorm pack4xI8 unpack4xI8 dot4I8Packed countOneBits countLeadingZeros countTrailingZeros reverseBits extractBits insertBits firstLeadingBit firstTrailingBit arrayLength workgroupUniformLoad textureBarrier atomicSub atomicMax atomicMin atomicAnd atomicOr atomicXor atomicExchange atomicCompareExchangeWeak subgroupAdd subgroupShuffleXor vec2f vec3f vec4f vec2i vec3i vec4i vec2u vec3u vec4u vec2h vec3h vec4h block_x block_y block_z`.split(
    ' ',
  ),
)

const REGISTER: Readonly<Record<Dtype, string>> = {
  f64: 'f32',
  f32: 'f32',
  f16: 'f32',
  bf16: 'f32',
  i32: 'i32',
  u32: 'u32',
  i8: 'i32',
  u8: 'i32',
  bool: 'bool',
}

/** Element type of a storage or workgroup array. */
export const WGSL_MEMORY: Readonly<Record<Dtype, string>> = {
  f64: 'f32',
  f32: 'f32',
  f16: 'f32',
  bf16: 'f32',
  i32: 'i32',
  u32: 'u32',
  i8: 'i32',
  u8: 'u32',
  bool: 'u32',
}

/** Elements of a vector: arrays that are read or written so are arrays of these. */
const VECTOR = 4

/** How an array is declared; its length, where it is known. */
export function arrayType({ buffer, atomic, vector }: BufferRef, length?: number): string {
  const element = atomic
    ? `atomic<${atomicWord(buffer.dtype)}>`
    : vector
      ? `vec4<${WGSL_MEMORY[buffer.dtype]}>`
      : WGSL_MEMORY[buffer.dtype]
  if (length === undefined) return `array<${element}>`
  return `array<${element}, ${vector ? Math.ceil(length / VECTOR) : length}>`
}

/** A float as an integer: towards zero, at the ends of the range where it is beyond, NaN as 0. */
const saturating = (to: 'i32' | 'u32' | 'i8' | 'u8'): string => {
  const [lo, hi] = INT_RANGE[to]
  const type = REGISTER[to]
  const end = (x: number): string => (x === -2147483648 ? 'i32(-2147483648)' : `${type}(${x})`)
  // No f32 lies between the largest one that a 32-bit type holds and its end.
  return `fn to_${to}(x: f32) -> ${type} {\n  let whole = select(${type}(clamp(x, ${lo}.0, ${hi}.0)), ${end(hi)}, x >= ${hi}.0);\n  return select(select(whole, ${end(lo)}, x <= ${lo}.0), ${end(0)}, is_nan(x));\n}`
}

const HELPER: Readonly<Record<string, string>> = {
  ...Object.fromEntries((['i32', 'u32', 'i8', 'u8'] as const).map((t) => [`to_${t}`, saturating(t)])),
  inf: 'fn inf() -> f32 {\n  var bits = 0x7f800000u;\n  return bitcast<f32>(bits);\n}',
  nan: 'fn nan() -> f32 {\n  var bits = 0x7fc00000u;\n  return bitcast<f32>(bits);\n}',
  round_bf16:
    'fn round_bf16(x: f32) -> f32 {\n  let u = bitcast<u32>(x);\n  let r = (u + 0x7fffu + ((u >> 16u) & 1u)) & 0xffff0000u;\n  return bitcast<f32>(select(r, u, (u & 0x7fffffffu) > 0x7f800000u));\n}',
  // By bits: implementations may assume that no value is NaN, and then compare a value with itself at compile time.
  is_nan: 'fn is_nan(x: f32) -> bool {\n  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;\n}',
  // quantizeToF16 leaves values beyond the range undefined and may flush small ones.
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
  // What follows is exact where WGSL leaves infinities, NaN, zeros or large arguments open.
  max_f32: 'fn max_f32(a: f32, b: f32) -> f32 {\n  return select(select(b, a, a > b), a, is_nan(a));\n}',
  min_f32: 'fn min_f32(a: f32, b: f32) -> f32 {\n  return select(select(b, a, a < b), a, is_nan(a));\n}',
  exp_f32: 'fn exp_f32(x: f32) -> f32 {\n  return select(exp(x), x, is_nan(x));\n}',
  log_f32: `fn log_f32(x: f32) -> f32 {
  let y = select(log(x), -inf(), x == 0.0);
  return select(select(y, nan(), x < 0.0), x, is_nan(x) || x == inf());
}`,
  tanh_f32:
    'fn tanh_f32(x: f32) -> f32 {\n  return select(tanh(clamp(x, -10.0, 10.0)), x, is_nan(x) || abs(x) < 1e-4);\n}',
  sign_f32: 'fn sign_f32(x: f32) -> f32 {\n  return select(sign(x), x, is_nan(x));\n}',
  // 2 pi in two parts, of which the first has so few digits that its multiples are exact.
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

/** Adds a helper, after those that its text calls. */
function need(helpers: Helpers, name: string): void {
  if (helpers.has(name)) return
  const text = HELPER[name]!
  for (const other of Object.keys(HELPER))
    if (other !== name && new RegExp(`\\b${other}\\(`).test(text)) need(helpers, other)
  helpers.set(name, text)
}

const MATH: Readonly<Record<Exclude<MathFn, 'sigmoid' | 'shift_left' | 'bit_xor'>, string>> = {
  exp: 'exp_f32',
  log: 'log_f32',
  sqrt: 'sqrt',
  rsqrt: 'inverseSqrt',
  abs: 'abs',
  sin: 'sin_f32',
  cos: 'cos_f32',
  tanh: 'tanh_f32',
  floor: 'floor',
  ceil: 'ceil',
  round: 'round',
  pow: 'pow_f32',
  erf: 'erf',
  sign: 'sign_f32',
  popcount: 'countOneBits',
}

/** A call of a helper of the text. */
const help = (helpers: Helpers, name: string, ...args: readonly string[]): string => {
  need(helpers, name)
  return `${name}(${args.join(', ')})`
}

const round = (t: Dtype, x: string, helpers: Helpers): string => {
  if (t === 'f16' || t === 'bf16') return help(helpers, `round_${t}`, x)
  return t === 'i8' ? `(((${x}) << 24u) >> 24u)` : t === 'u8' ? `((${x}) & 255)` : x
}

/** An atomic buffer is an array of words; its element is the word's bits. */
export const atomicWord = (t: Dtype): 'i32' | 'u32' => (t === 'i32' || t === 'i8' ? 'i32' : 'u32')

function decode(t: Dtype, word: string): string {
  if (isFloat(t)) return `bitcast<f32>(${word})`
  return t === 'bool' ? `(${word} != 0u)` : t === 'u8' ? `i32(${word})` : word
}

function encode(t: Dtype, value: string, helpers: Helpers): string {
  const rounded = round(t, value, helpers)
  if (isFloat(t)) return `bitcast<u32>(${rounded})`
  return t === 'bool' ? `select(0u, 1u, ${rounded})` : t === 'u8' ? `u32(${rounded})` : rounded
}

const NATIVE: Readonly<Record<string, string>> = { '+': 'atomicAdd', min: 'atomicMin', max: 'atomicMax' }

const at = (b: BufferRef, index: string): string =>
  b.vector ? `${b.name}[(${index}) >> 2u][(${index}) & 3]` : `${b.name}[${index}]`

/** An element as it stands in memory, and back. */
const fromWord = (t: Dtype, word: string): string =>
  t === 'bool' ? `(${word} != 0u)` : t === 'u8' ? `i32(${word})` : word
const toWord = (t: Dtype, value: string, helpers: Helpers): string =>
  t === 'bool' || t === 'u8' ? encode(t, value, helpers) : round(t, value, helpers)

export const WGSL: Target = {
  name: 'wgsl',
  reserved: new Set([...RESERVED, ...Object.keys(HELPER)]),
  type: (t) => REGISTER[t],
  literal: ({ value, dtype }, helpers) => {
    if (dtype === 'bool') return value !== 0 ? 'true' : 'false'
    if (!isFloat(dtype))
      return dtype === 'u32' ? `${value}u` : value === -2147483648 ? '(-2147483647i - 1i)' : `${value}i`
    if (Number.isNaN(value)) {
      need(helpers, 'nan')
      return 'nan()'
    }
    // What f32 cannot hold is infinite, and what it flushes is zero; WGSL refuses either as a literal.
    const rounded = Math.fround(value)
    if (!Number.isFinite(rounded)) {
      need(helpers, 'inf')
      return value < 0 ? '-inf()' : 'inf()'
    }
    const text = Object.is(rounded, -0) ? '-0.0' : String(rounded)
    return `${/[.e]/.test(text) ? text : `${text}.0`}f`
  },
  neg: (x, dtype) => (dtype === 'u32' ? `(0u - ${x})` : null),
  binary: (op, a, b, _dtype, operand, _wraps, helpers) => {
    if (op === 'min' || op === 'max') {
      if (operand === 'bool') return null
      return isFloat(operand) ? help(helpers, `${op}_f32`, a, b) : `${op}(${a}, ${b})`
    }
    if (op === 'mod' && isFloat(operand)) return `(${a} - ${b} * floor(${a} / ${b}))`
    // A NaN differs from everything; `!=` of floats may say otherwise.
    if (op === 'ne' && isFloat(operand)) return `(!(${a} == ${b}))`
    return null
  },
  call: (fn, args, dtype, helpers) => {
    if (fn === 'sigmoid') return `(1.0 / (1.0 + ${help(helpers, 'exp_f32', `-(${args[0]})`)}))`
    if (!isFloat(dtype) && fn === 'sign') return dtype === 'u32' ? `min(${args[0]}, 1u)` : `sign(${args[0]})`
    if (fn === 'bit_xor') return `((${args[0]}) ^ (${args[1]}))`
    if (fn === 'shift_left') return `((${args[0]}) << (u32(${args[1]}) & 31u))`
    const name = MATH[fn]
    return name in HELPER ? help(helpers, name, ...args) : `${name}(${args.join(', ')})`
  },
  select: (c, a, b) => `select(${b}, ${a}, ${c})`,
  cast: (x, from, to, helpers) => {
    if (to === 'bool')
      return from === 'u32' ? `(${x} != 0u)` : isFloat(from) ? `(!(${x} == 0.0))` : `(${x} != 0)`
    if (isFloat(from) && isInt(to)) return help(helpers, `to_${to}`, x)
    if (to === 'i8' || to === 'u8') return round(to, `i32(${x})`, helpers)
    return round(to, `${REGISTER[to]}(${x})`, helpers)
  },
  load: (b, index) => {
    if (b.atomic) return decode(b.buffer.dtype, `atomicLoad(&${at(b, index)})`)
    return fromWord(b.buffer.dtype, at(b, index))
  },
  store: (b, index, value, helpers) => {
    const t = b.buffer.dtype
    if (b.atomic) return `atomicStore(&${at(b, index)}, ${encode(t, value, helpers)});`
    return `${at(b, index)} = ${toWord(t, value, helpers)};`
  },
  widths: () => [VECTOR],
  loadVector: ({ ref, index, temporary }, names) => [
    `let ${temporary} = ${ref.name}[(${index}) >> 2u];`,
    ...names.map((n, k) => `let ${n} = ${fromWord(ref.buffer.dtype, `${temporary}.${'xyzw'[k]}`)};`),
  ],
  atomicWidths: () => [],
  atomicVector: () => [],
  storeVector: ({ ref, index }, values, helpers) => {
    const t = ref.buffer.dtype
    const words = values.map((v) => toWord(t, v, helpers)).join(', ')
    return [`${ref.name}[(${index}) >> 2u] = vec4<${WGSL_MEMORY[t]}>(${words});`]
  },
  builtin: (axis) => (axis.startsWith('thread') ? `i32(local.${axis.slice(-1)})` : axis.replace('.', '_')),
  let: (name, _dtype, value) => `let ${name} = ${value};`,
  exchange: (value, dtype, xor) =>
    dtype === 'bool'
      ? `(subgroupShuffleXor(u32(${value}), ${xor}u) != 0u)`
      : `subgroupShuffleXor(${value}, ${xor}u)`,
  register: (name, dtype, length) =>
    `var ${name}: ${length === 1 ? REGISTER[dtype] : `array<${REGISTER[dtype]}, ${length}>`};`,
  shared: () => null,
  forHeader: (name, extent) => `for (var ${name} = 0i; ${name} < ${extent}; ${name}++)`,
  whileHeader: (cond) => `while (${cond})`,
  barrier: 'workgroupBarrier();',
  globalBarrier: 'storageBarrier(); workgroupBarrier();',
  atomic: (b, index, op, value) => {
    const t = b.buffer.dtype
    return (t === 'i32' || t === 'u32') && NATIVE[op] ? `${NATIVE[op]}(&${at(b, index)}, ${value});` : null
  },
  atomicLoop: (b, index, combine, helpers) => {
    const t = b.buffer.dtype
    const cell = at(b, index)
    return [
      'loop {',
      `  let old_word = atomicLoad(&${cell});`,
      `  if (atomicCompareExchangeWeak(&${cell}, old_word, ${encode(t, combine(decode(t, 'old_word')), helpers)}).exchanged) {`,
      '    break;',
      '  }',
      '}',
    ]
  },
}
