/** C11. Values of half types are f32 in registers and 16 bits in memory. */
import { InternalError } from '../../../ast/diagnostic.ts'
import { type Dtype, isBeyondF32, isFloat, isHalf, isInt } from '../../../ir/dtype.ts'
import { decimal } from '../../../ir/rounding.ts'
import type { Helpers, MathCall, Spellings } from '../../spellings.ts'
import { CUDA_MEMORY as MEMORY, REGISTER } from '../cuda/elements.ts'
import { help } from './helpers.ts'

export { MEMORY }

const fromMemory = (t: Dtype, text: string, helpers: Helpers): string =>
  isHalf(t)
    ? help(helpers, `${t}_to_f32`, text)
    : t === 'bool'
      ? `(${text} != 0)`
      : t === 'i8' || t === 'u8'
        ? `(int)${text}`
        : text

const toMemory = (t: Dtype, text: string, helpers: Helpers): string =>
  isHalf(t) ? help(helpers, `f32_to_${t}`, text) : t === 'i8' || t === 'u8' ? `(${MEMORY[t]})(${text})` : text

const SYMBOL: Readonly<Record<string, string>> = { add: '+', sub: '-', mul: '*' }

/** A function of the library, which has another one for floats of 32 bits. */
const library =
  (name: string) =>
  ({ args, dtype }: MathCall): string =>
    `${name}${dtype === 'f64' ? '' : 'f'}(${args.join(', ')})`

const one = (dtype: Dtype): string => (dtype === 'f64' ? '1.0' : '1.0f')

const MATH: Spellings['math'] = {
  exp: library('exp'),
  log: library('log'),
  log1p: library('log1p'),
  sqrt: library('sqrt'),
  rsqrt: (call) => `(${one(call.dtype)} / ${library('sqrt')(call)})`,
  abs: (call) =>
    isFloat(call.dtype)
      ? library('fabs')(call)
      : call.dtype === 'u32'
        ? call.x
        : help(call.helpers, 'abs_i32', call.x),
  sin: library('sin'),
  cos: library('cos'),
  tanh: library('tanh'),
  sigmoid: ({ x, dtype }) =>
    `(${one(dtype)} / (${one(dtype)} + ${dtype === 'f64' ? 'exp' : 'expf'}(-(${x}))))`,
  floor: library('floor'),
  ceil: library('ceil'),
  round: library('rint'),
  pow: library('pow'),
  erf: library('erf'),
  sign: ({ x, dtype, helpers }) =>
    help(helpers, `sign_${dtype === 'f64' || dtype === 'u32' || dtype === 'i32' ? dtype : 'f32'}`, x),
  popcount: ({ x, helpers }) => help(helpers, 'popcount', x),
  shift_left: ({ x, y }) => `(int)((unsigned)(${x}) << ((unsigned)(${y}) & 31u))`,
  bit_xor: ({ x, y }) => `((${x}) ^ (${y}))`,
}

export const C: Spellings = {
  name: 'c',
  math: MATH,
  type: (t) => REGISTER[t],
  literal: ({ value, dtype }) => {
    if (dtype === 'bool') return value !== 0 ? 'true' : 'false'
    if (!isFloat(dtype))
      return dtype === 'u32' ? `${value}u` : value === -2147483648 ? '(-2147483647 - 1)' : String(value)
    if (Number.isNaN(value)) return 'NAN'
    if (!Number.isFinite(value)) return value < 0 ? '-INFINITY' : 'INFINITY'
    const digits = decimal(value, dtype === 'f64' ? 'f64' : 'f32')
    return `${/[.e]/.test(digits) ? digits : `${digits}.0`}${dtype === 'f64' ? '' : 'f'}`
  },
  neg: (x, dtype) => (dtype === 'i32' ? `(int)(0u - (unsigned)${x})` : null),
  binary: (op, a, b, dtype, operand, wraps, helpers) => {
    if (op === 'min' || op === 'max') return help(helpers, `${op}_${operand}`, a, b)
    // What is beyond 32 bits wraps, as the reference says; of `int` a compiler may assume that nothing is.
    if (dtype === 'i32' && wraps && SYMBOL[op]) return `(int)((unsigned)${a} ${SYMBOL[op]} (unsigned)${b})`
    if (dtype === 'i32' && wraps && (op === 'quo' || op === 'rem') && !/^\d+$/.test(b))
      return help(helpers, op, a, b)
    if (op === 'mod' && isFloat(operand))
      return `(${a} - ${b} * ${operand === 'f64' ? 'floor' : 'floorf'}(${a} / ${b}))`
    return null
  },
  select: (c, a, b) => `(${c} ? ${a} : ${b})`,
  cast: (x, from, to, helpers) => {
    if (to === 'bool') return `(${x} != 0)`
    if (isHalf(to)) {
      const value = isBeyondF32(from) ? help(helpers, 'odd', x) : from === 'bool' ? `(float)(${x})` : x
      return fromMemory(to, toMemory(to, value, helpers), helpers)
    }
    if (isFloat(from) && isInt(to)) return help(helpers, `to_${to}`, x)
    if (to === 'i8' || to === 'u8') return `(int)(${MEMORY[to]})(${x})`
    return `(${REGISTER[to]})(${x})`
  },
  load: ({ name, buffer }, index, helpers) => fromMemory(buffer.dtype, `${name}[${index}]`, helpers),
  store: ({ name, buffer }, index, value, helpers) =>
    `${name}[${index}] = ${toMemory(buffer.dtype, value, helpers)};`,
  widths: () => [],
  loadVector: () => [],
  atomicWidths: () => [],
  atomicVector: () => [],
  storeVector: () => [],
  builtin: (axis) => axis.replace('.', '_'),
  let: (name, dtype, value) => `const ${REGISTER[dtype]} ${name} = ${value};`,
  exchange: () => {
    throw new InternalError('threads take turns here: none has what another one holds')
  },
  register: (name, dtype, length) =>
    length === 1 ? `${REGISTER[dtype]} ${name};` : `${REGISTER[dtype]} ${name}[${length}];`,
  objects: (name, type, length) => (length === 1 ? `${type} ${name};` : `${type} ${name}[${length}];`),
  shared: (name, dtype, length) => `${MEMORY[dtype]} ${name}[${length}];`,
  forHeader: (name, extent) => `for (int ${name} = 0; ${name} < ${extent}; ++${name})`,
  whileHeader: (cond) => `while (${cond})`,
  barrier: ';',
  atomic: ({ name, buffer: { dtype } }, index, op, value) => {
    if (op !== '+' || !['f32', 'f64', 'i32', 'u32'].includes(dtype)) return null
    if (dtype === 'i32')
      return `_Pragma("omp atomic") ((unsigned*)${name})[${index}] += (unsigned)(${value});`
    return `_Pragma("omp atomic") ${name}[${index}] += ${value};`
  },
  // OpenMP has no atomic minimum before 5.1; an element is always updated by one reducer.
  atomicLoop: (ref, index, combine, helpers) => [
    '_Pragma("omp critical")',
    `{ ${C.store(ref, index, combine(C.load(ref, index, helpers)), helpers, false)} }`,
  ],
}
