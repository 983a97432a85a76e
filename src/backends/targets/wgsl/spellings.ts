/** Spelling table of WGSL. Registers hold 32-bit values. Infinities are not literals, so helpers compute them at run time. */

import { directionOf, levelOf } from '../../../ir/instructions/hardware-axes.ts'
import { type Dtype, isBeyondF32, isFloat, isHalf, isInt } from '../../../ir/values/dtype.ts'
import { decimal } from '../../../ir/values/half.ts'
import type { BufferRef, Helpers, MathCall, Spellings, VectorRef } from '../../print/spellings.ts'
import { type AtomicElement, type Elements, elementsOf, round, VECTOR } from './elements.ts'
import { functionCall, helperCall, helperFunction } from './helpers.ts'

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

const NEGATION = /^\(*(-[^\d]|abs_i32)/

const NATIVE: Readonly<Record<string, string>> = { '+': 'atomicAdd', min: 'atomicMin', max: 'atomicMax' }

const elementAt = (b: BufferRef, index: string): string =>
  b.vector ? `${b.name}[(${index}) >> 2u][(${index}) & 3]` : `${b.name}[${index}]`

const vectorAt = ({ ref, index, number }: VectorRef): string => `${ref.name}[${number ?? `(${index}) >> 2u`}]`

/** Compare-and-exchange loop that combines the element's old value, as a word. */
const compareExchange = (e: AtomicElement, value: string, helpers: Helpers): string =>
  `atomicCompareExchangeWeak(&${e.cell}, old_word, ${e.replace('old_word', value, helpers)}).exchanged`

/** Call of a built-in function. */
const builtin =
  (name: string) =>
  ({ args }: MathCall): string =>
    functionCall(name, ...args)

const MATH: Spellings['math'] = {
  exp: helperFunction('exp_f32'),
  exp2: helperFunction('exp2_f32'),
  log: helperFunction('log_f32'),
  log1p: helperFunction('log1p_f32'),
  sqrt: builtin('sqrt'),
  rsqrt: builtin('inverseSqrt'),
  abs: (call) => (call.dtype === 'i32' ? helperFunction('abs_i32') : builtin('abs'))(call),
  sin: helperFunction('sin_f32'),
  cos: helperFunction('cos_f32'),
  tanh: helperFunction('tanh_f32'),
  sigmoid: ({ x, helpers }) => `(1.0 / (1.0 + ${helperCall(helpers, 'exp_f32', `-(${x})`)}))`,
  floor: builtin('floor'),
  ceil: builtin('ceil'),
  round: builtin('round'),
  pow: helperFunction('pow_f32'),
  erf: helperFunction('erf'),
  sign: (call) =>
    isFloat(call.dtype)
      ? helperFunction('sign_f32')(call)
      : call.dtype === 'u32'
        ? `min(${call.x}, 1u)`
        : `sign(${call.x})`,
  popcount: builtin('countOneBits'),
  shift_left: ({ x, y }) => `((${x}) << (u32(${y}) & 31u))`,
  shift_right: ({ x, y }) => `i32(u32(${x}) >> (u32(${y}) & 31u))`,
  bit_and: ({ x, y }) => `((${x}) & (${y}))`,
  bit_or: ({ x, y }) => `((${x}) | (${y}))`,
  bit_xor: ({ x, y }) => `((${x}) ^ (${y}))`,
}

/** The spelling table with the element types of arrays. */
export interface Wgsl extends Spellings {
  readonly elements: Elements
  readonly storesVectors: true
}

const createSpellings = (elements: Elements): Wgsl => ({
  elements,
  name: 'wgsl',
  eagerOps: { and: '&', or: '|' },
  math: MATH,
  type: (t) => REGISTER[t],
  literal: ({ value, dtype }, helpers) => {
    if (dtype === 'bool') return value !== 0 ? 'true' : 'false'
    if (!isFloat(dtype))
      return dtype === 'u32' ? `${value}u` : value === -2147483648 ? '(-2147483647i - 1i)' : `${value}i`
    if (Number.isNaN(value)) return helperCall(helpers, 'nan')
    // WGSL rejects constants that overflow.
    if (!Number.isFinite(value)) return `${value < 0 ? '-' : ''}${helperCall(helpers, 'inf')}`
    const text = decimal(value, 'f32')
    return `${/[.e]/.test(text) ? text : `${text}.0`}f`
  },
  neg: (x, dtype) => (dtype === 'u32' ? `(0u - ${x})` : null),
  binary: (op, a, b, _dtype, operand, wraps, helpers) => {
    if (op === 'min' || op === 'max') {
      if (operand === 'bool') return null
      // Operands of addresses contain only negations that appear in their text.
      if (operand === 'i32' && (wraps === 'value' || NEGATION.test(a) || NEGATION.test(b)))
        return helperCall(helpers, `${op}_i32`, a, b)
      return isFloat(operand) ? helperCall(helpers, `${op}_f32`, a, b) : `${op}(${a}, ${b})`
    }
    if (op === 'mod' && isFloat(operand)) return `(${a} - ${b} * floor(${a} / ${b}))`
    // `!=` and `x == x` may be wrong for NaN, because implementations may assume that no value is NaN.
    if (a === b && (op === 'eq' || op === 'ne') && isFloat(operand))
      return `${op === 'eq' ? '!' : ''}${helperCall(helpers, 'is_nan', a)}`
    if (op === 'ne' && isFloat(operand)) return `(!(${a} == ${b}))`
    return null
  },
  select: (c, a, b) => functionCall('select', b, a, c),
  cast: (x, from, to, helpers) => {
    if (to === 'bool')
      return from === 'u32' ? `(${x} != 0u)` : isFloat(from) ? `(!(${x} == 0.0))` : `(${x} != 0)`
    if (isFloat(from) && isInt(to)) return helperCall(helpers, `to_${to}`, x)
    if (isHalf(to) && isBeyondF32(from)) return round(to, helperCall(helpers, `odd_${from}`, x), helpers)
    if (to === 'i8' || to === 'u8') return round(to, `i32(${x})`, helpers)
    return round(to, `${REGISTER[to]}(${x})`, helpers)
  },
  load: (b, index, helpers) => {
    if (!b.atomic) return elements.decode(b.buffer.dtype, elementAt(b, index))
    const e = elements.atomic(b, index)
    return e.decode(`atomicLoad(&${e.cell})`, helpers)
  },
  store: (b, index, value, helpers, exact) => {
    if (!b.atomic)
      return `${elementAt(b, index)} = ${elements.encode(b.buffer.dtype, value, helpers, exact)};`
    const e = elements.atomic(b, index)
    if (e.isWholeWord) return `atomicStore(&${e.cell}, ${e.replace('0u', value, helpers)});`
    return `loop { let old_word = atomicLoad(&${e.cell}); if (${compareExchange(e, value, helpers)}) { break; } }`
  },
  widths: () => [VECTOR],
  storesVectors: true,
  loadVector: (v, names) => [
    `let ${v.temporary} = ${vectorAt(v)};`,
    ...names.map(
      (n, k) => `let ${n} = ${elements.decode(v.ref.buffer.dtype, `${v.temporary}.${'xyzw'[k]}`)};`,
    ),
  ],
  atomicWidths: () => [],
  atomicVector: () => [],
  storeVector: (v, values, helpers, exact, source) => {
    const t = v.ref.buffer.dtype
    const encoded = (): string =>
      `vec4<${elements.type(t)}>(${values.map((x, k) => elements.encode(t, x, helpers, exact[k])).join(', ')})`
    return [`${vectorAt(v)} = ${source ?? encoded()};`]
  },
  builtin: (axis) =>
    levelOf(axis) === 'thread' ? `i32(local.${directionOf(axis)})` : axis.replace('.', '_'),
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
    return (t === 'i32' || t === 'u32') && NATIVE[op]
      ? `${NATIVE[op]}(&${elementAt(b, index)}, ${value});`
      : null
  },
  atomicLoop: (b, index, combine, helpers) => {
    const e = elements.atomic(b, index)
    return [
      'loop {',
      `  let old_word = atomicLoad(&${e.cell});`,
      `  if (${compareExchange(e, combine(e.decode('old_word', helpers)), helpers)}) {`,
      '    break;',
      '  }',
      '}',
    ]
  },
})

const WORDS = createSpellings(elementsOf(false))
const HALVES = createSpellings(elementsOf(true))

/** Spelling table for devices with or without f16. */
export const wgsl = (f16: boolean): Wgsl => (f16 ? HALVES : WORDS)
