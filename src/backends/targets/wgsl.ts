/** WGSL. Values are of 32 bits in registers. Infinities cannot be literals: helpers make them at run time. */
import { type Dtype, isBeyondF32, isFloat, isHalf, isInt } from '../../ir/dtype.ts'
import type { MathFn } from '../../ir/ops.ts'
import { decimal } from '../../ir/rounding.ts'
import type { BufferRef, Helpers, Target } from '../target.ts'
import { type AtomicElement, Elements, round, VECTOR } from './wgsl-elements.ts'
import { called, HELPER, help, need } from './wgsl-helpers.ts'

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

const NEGATION = /^\(*(-[^\d]|abs_i32)/

const NATIVE: Readonly<Record<string, string>> = { '+': 'atomicAdd', min: 'atomicMin', max: 'atomicMax' }

const at = (b: BufferRef, index: string): string =>
  b.vector ? `${b.name}[(${index}) >> 2u][(${index}) & 3]` : `${b.name}[${index}]`

/** One with a combination of what the element was, in words. */
const exchange = (e: AtomicElement, value: string, helpers: Helpers): string =>
  `atomicCompareExchangeWeak(&${e.cell}, old_word, ${e.replaced('old_word', value, helpers)}).exchanged`

/** The table, and how arrays are declared. */
export interface Wgsl extends Target {
  readonly elements: Elements
  readonly storesVectors: true
}

const table = (elements: Elements): Wgsl => ({
  elements,
  name: 'wgsl',
  eager: { and: '&', or: '|' },
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
    // No literal: WGSL refuses constants that overflow.
    if (!Number.isFinite(value)) {
      need(helpers, 'inf')
      return value < 0 ? '-inf()' : 'inf()'
    }
    const text = decimal(value, 'f32')
    return `${/[.e]/.test(text) ? text : `${text}.0`}f`
  },
  neg: (x, dtype) => (dtype === 'u32' ? `(0u - ${x})` : null),
  binary: (op, a, b, _dtype, operand, wraps, helpers) => {
    if (op === 'min' || op === 'max') {
      if (operand === 'bool') return null
      // Places mention no negation but one that is written.
      if (operand === 'i32' && (wraps === 'value' || NEGATION.test(a) || NEGATION.test(b)))
        return help(helpers, `${op}_i32`, a, b)
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
    if (fn === 'abs' && dtype === 'i32') return help(helpers, 'abs_i32', ...args)
    const name = MATH[fn]
    return name in HELPER ? help(helpers, name, ...args) : called(name, ...args)
  },
  select: (c, a, b) => called('select', b, a, c),
  cast: (x, from, to, helpers) => {
    if (to === 'bool')
      return from === 'u32' ? `(${x} != 0u)` : isFloat(from) ? `(!(${x} == 0.0))` : `(${x} != 0)`
    if (isFloat(from) && isInt(to)) return help(helpers, `to_${to}`, x)
    if (isHalf(to) && isBeyondF32(from)) return round(to, help(helpers, `odd_${from}`, x), helpers)
    if (to === 'i8' || to === 'u8') return round(to, `i32(${x})`, helpers)
    return round(to, `${REGISTER[to]}(${x})`, helpers)
  },
  load: (b, index, helpers) => {
    if (!b.atomic) return elements.decode(b.buffer.dtype, at(b, index))
    const e = elements.atomic(b, index)
    return e.value(`atomicLoad(&${e.cell})`, helpers)
  },
  store: (b, index, value, helpers, exact) => {
    if (!b.atomic) return `${at(b, index)} = ${elements.encode(b.buffer.dtype, value, helpers, exact)};`
    const e = elements.atomic(b, index)
    if (e.alone) return `atomicStore(&${e.cell}, ${e.replaced('0u', value, helpers)});`
    return `loop { let old_word = atomicLoad(&${e.cell}); if (${exchange(e, value, helpers)}) { break; } }`
  },
  widths: () => [VECTOR],
  storesVectors: true,
  loadVector: ({ ref, index, temporary }, names) => [
    `let ${temporary} = ${ref.name}[(${index}) >> 2u];`,
    ...names.map((n, k) => `let ${n} = ${elements.decode(ref.buffer.dtype, `${temporary}.${'xyzw'[k]}`)};`),
  ],
  atomicWidths: () => [],
  atomicVector: () => [],
  storeVector: ({ ref, index }, values, helpers, exact, copied) => {
    const t = ref.buffer.dtype
    const encoded = (): string =>
      `vec4<${elements.type(t)}>(${values.map((v, k) => elements.encode(t, v, helpers, exact[k])).join(', ')})`
    return [`${ref.name}[(${index}) >> 2u] = ${copied ?? encoded()};`]
  },
  builtin: (axis) => (axis.startsWith('thread') ? `i32(local.${axis.slice(-1)})` : axis.replace('.', '_')),
  let: (name, _dtype, value) => `let ${name} = ${value};`,
  uniform: (element) => `workgroupUniformLoad(&${element})`,
  exchange: (value, dtype, xor) =>
    dtype === 'bool'
      ? `(subgroupShuffleXor(u32(${value}), ${xor}u) != 0u)`
      : `subgroupShuffleXor(${value}, ${xor}u)`,
  register: (name, dtype, length) =>
    `var ${name}: ${length === 1 ? REGISTER[dtype] : `array<${REGISTER[dtype]}, ${length}>`};`,
  objects: (name, type, length) => `var ${name}: ${length === 1 ? type : `array<${type}, ${length}>`};`,
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
    const e = elements.atomic(b, index)
    return [
      'loop {',
      `  let old_word = atomicLoad(&${e.cell});`,
      `  if (${exchange(e, combine(e.value('old_word', helpers)), helpers)}) {`,
      '    break;',
      '  }',
      '}',
    ]
  },
})

const WORDS = table(new Elements(false))
const HALVES = table(new Elements(true))

/** For devices with or without f16. */
export const wgsl = (f16: boolean): Wgsl => (f16 ? HALVES : WORDS)
