/**
 * Spelling table of JavaScript over typed arrays. Numbers are doubles: f32 arithmetic has at least f32 precision and rounds when
 * stored; i32 multiplication uses `Math.imul`.
 */
import { type Dtype, INT_RANGE, isBeyondF32, isFloat, isHalf, isInt } from '../../../ir/values/dtype.ts'
import { type Helpers, helpersOf, SERIAL_THREADS, type Spellings } from '../../print/spellings.ts'

const ARRAY: Readonly<Record<Dtype, string>> = {
  f64: 'Float64Array',
  // Private and shared arrays of f32 have double precision; global memory rounds to f32. Half types are rounded everywhere.
  f32: 'Float64Array',
  f16: 'Float64Array',
  bf16: 'Float64Array',
  i32: 'Int32Array',
  u32: 'Uint32Array',
  i8: 'Int32Array',
  u8: 'Int32Array',
  bool: 'Uint8Array',
}

export const HELPERS: Readonly<Record<string, string>> = {
  f16_to_f32: `const f16_to_f32 = (h) => {
  const e = (h >> 10) & 31, m = h & 1023, s = h & 32768 ? -1 : 1
  if (e === 0) return s * m * 5.9604644775390625e-8
  return e === 31 ? (m ? NaN : s * Infinity) : s * (1 + m / 1024) * 2 ** (e - 15)
}`,
  u32_view: 'const f32_view = new Float32Array(1), u32_view = new Uint32Array(f32_view.buffer)',
  f32_to_f16: `const f32_to_f16 = (x) => {
  f32_view[0] = x
  const u = u32_view[0], s = (u >>> 16) & 32768, a = u & 0x7fffffff
  if (a >= 0x7f800000) return s | (a > 0x7f800000 ? 0x7e00 : 0x7c00)
  if (a >= 0x477ff000) return s | 0x7c00
  if (a < 0x38800000) {
    const t = Math.abs(f32_view[0]) * 16777216, r = Math.floor(t), d = t - r
    return s | (r + (d > 0.5 || (d === 0.5 && (r & 1)) ? 1 : 0))
  }
  return s | ((a - 0x38000000 + 0xfff + ((a >>> 13) & 1)) >>> 13)
}`,
  bf16_to_f32: 'const bf16_to_f32 = (h) => { u32_view[0] = h << 16; return f32_view[0] }',
  f32_to_bf16: `const f32_to_bf16 = (x) => {
  f32_view[0] = x
  const u = u32_view[0]
  return x !== x ? 0x7fc0 : ((u + 0x7fff + ((u >>> 16) & 1)) >>> 16) & 0xffff
}`,
  // Round-to-odd avoids double rounding when the f32 result is rounded to a narrower type.
  odd: `const odd = (x) => {
  f32_view[0] = x
  if (f32_view[0] !== x && !(u32_view[0] & 1)) u32_view[0] += Math.abs(f32_view[0]) < Math.abs(x) ? 1 : -1
  return f32_view[0]
}`,
  // Below 2^53, a quotient of two integers is exact after truncation.
  quo_wide: 'const quo_wide = (a, b) => (b === 0 ? 0 : Math.trunc(a / b))',
  rem_wide: 'const rem_wide = (a, b) => (b === 0 ? 0 : a % b)',
  popcount: `const popcount = (x) => {
  x -= (x >>> 1) & 0x55555555
  x = (x & 0x33333333) + ((x >>> 2) & 0x33333333)
  return Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}`,
  round_half_even: `const round_half_even = (x) => {
  const f = Math.floor(x), d = x - f
  return d < 0.5 ? f : d > 0.5 ? f + 1 : f % 2 === 0 ? f : f + 1
}`,
  // A power series and a continued fraction, accurate to f64 rounding (Abramowitz and Stegun 7.1.26 is not).
  erf: `const erf = (x) => {
  const a = Math.abs(x)
  if (a !== a) return x
  if (a > 6) return Math.sign(x)
  if (a < 2.5) {
    let term = a, sum = a
    for (let n = 1; n < 80; n++) { term *= (-a * a) / n; sum += term / (2 * n + 1) }
    return Math.sign(x) * sum * 1.1283791670955126
  }
  let f = a
  for (let k = 60; k > 0; k--) f = a + k / 2 / f
  return Math.sign(x) * (1 - Math.exp(-a * a) / (f * 1.772453850905516))
}`,
}

const { helperCall, helperFunction } = helpersOf(HELPERS)

const loadHalf = (t: 'f16' | 'bf16', bits: string, helpers: Helpers): string =>
  helperCall(helpers, `${t}_to_f32`, bits)

const storeHalf = (t: 'f16' | 'bf16', value: string, helpers: Helpers): string =>
  helperCall(helpers, `f32_to_${t}`, value)

/** Converts a float to an integer: rounds towards zero, saturates, and maps NaN to 0. */
const saturatingCast = (x: string, to: Dtype): string => {
  const [lo, hi] = INT_RANGE[to as keyof typeof INT_RANGE]
  return `(Math.trunc(Math.min(${hi}, Math.max(${lo}, ${x}))) || 0)`
}

const MATH: Spellings['math'] = {
  exp: ({ x }) => `Math.exp(${x})`,
  exp2: ({ x }) => `Math.pow(2, ${x})`,
  log: ({ x }) => `Math.log(${x})`,
  log1p: ({ x }) => `Math.log1p(${x})`,
  sqrt: ({ x }) => `Math.sqrt(${x})`,
  rsqrt: ({ x }) => `(1 / Math.sqrt(${x}))`,
  // |-2^31| overflows to itself.
  abs: ({ x, dtype }) => (dtype === 'i32' ? `(Math.abs(${x}) | 0)` : `Math.abs(${x})`),
  sin: ({ x }) => `Math.sin(${x})`,
  cos: ({ x }) => `Math.cos(${x})`,
  tanh: ({ x }) => `Math.tanh(${x})`,
  sigmoid: ({ x }) => `(1 / (1 + Math.exp(-(${x}))))`,
  floor: ({ x }) => `Math.floor(${x})`,
  ceil: ({ x }) => `Math.ceil(${x})`,
  round: helperFunction('round_half_even'),
  pow: ({ x, y }) => `Math.pow(${x}, ${y})`,
  erf: helperFunction('erf'),
  sign: ({ x }) => `Math.sign(${x})`,
  popcount: helperFunction('popcount'),
  shift_left: ({ x, y }) => `((${x}) << (${y}))`,
  shift_right: ({ x, y }) => `(((${x}) >>> (${y})) | 0)`,
  bit_and: ({ x, y }) => `((${x}) & (${y}))`,
  bit_or: ({ x, y }) => `((${x}) | (${y}))`,
  bit_xor: ({ x, y }) => `((${x}) ^ (${y}))`,
}

export const SPELLINGS: Spellings = {
  ...SERIAL_THREADS,
  name: 'js',
  math: MATH,
  type: () => '',
  literal: (c) =>
    c.dtype === 'bool' ? (c.value !== 0 ? 'true' : 'false') : Object.is(c.value, -0) ? '-0' : String(c.value),
  neg: (x, dtype) => (dtype === 'i32' ? `(-${x} | 0)` : dtype === 'u32' ? `(-${x} >>> 0)` : null),
  binary: (op, a, b, dtype, operand, wraps) => {
    if (op === 'min' || op === 'max') return `Math.${op}(${a}, ${b})`
    if (op === 'eq') return `(${a} === ${b})`
    if (op === 'ne') return `(${a} !== ${b})`
    if (isFloat(operand)) return op === 'mod' ? `(${a} - ${b} * Math.floor(${a} / ${b}))` : null
    const wrapSuffix = dtype === 'u32' ? '>>> 0' : '| 0'
    if (op === 'mul') return dtype === 'u32' ? `(Math.imul(${a}, ${b}) >>> 0)` : `Math.imul(${a}, ${b})`
    if (op === 'quo') return `((${a} / ${b}) ${wrapSuffix})`
    if (op === 'rem') return `(${a} % ${b} ${wrapSuffix})`
    if ((op === 'add' || op === 'sub') && wraps && wraps !== 'unused')
      return `((${a} ${op === 'add' ? '+' : '-'} ${b}) ${wrapSuffix})`
    return null
  },
  wideIndices: {
    literal: String,
    fromWord: (x) => x,
    toWord: (x) => `(${x} | 0)`,
    binary: (op, a, b, _wraps, helpers) => {
      if (op === 'min' || op === 'max') return `Math.${op}(${a}, ${b})`
      return op === 'quo' || op === 'rem' ? helperCall(helpers, `${op}_wide`, a, b) : null
    },
    let: (name, value) => `const ${name} = ${value};`,
    register: (name, length) => SPELLINGS.register(name, 'f64', length),
    forHeader: (name, extent) => SPELLINGS.forHeader(name, extent),
  },
  roundRegister: (x, dtype) => (dtype === 'f32' ? `Math.fround(${x})` : x),
  select: (c, a, b) => `(${c} ? ${a} : ${b})`,
  cast: (x, from, to, helpers) => {
    if (to === 'bool') return `(${x} !== 0)`
    if (from === 'bool') return `(${x} ? 1 : 0)`
    if (to === 'f32') return isFloat(from) && from !== 'f64' ? x : `Math.fround(${x})`
    if (isHalf(to)) {
      const value = isBeyondF32(from) ? helperCall(helpers, 'odd', x) : x
      return loadHalf(to, storeHalf(to, value, helpers), helpers)
    }
    if (to === 'f64') return x
    if (isFloat(from) && isInt(to)) return saturatingCast(x, to)
    if (to === 'i8') return `((${x}) << 24 >> 24)`
    if (to === 'u8') return `((${x}) & 255)`
    return to === 'u32' ? `((${x}) >>> 0)` : `((${x}) | 0)`
  },
  load: ({ name, buffer }, index, helpers) => {
    if (buffer.dtype === 'bool') return `(${name}[${index}] !== 0)`
    if (isHalf(buffer.dtype) && buffer.scope === 'global')
      return loadHalf(buffer.dtype, `${name}[${index}]`, helpers)
    return `${name}[${index}]`
  },
  // Zeros have no bits except the sign; NaN has other bits.
  magnitudeBits: ({ name, buffer }, index) =>
    isHalf(buffer.dtype) && buffer.scope === 'global' ? `(${name}[${index}] & 0x7fff)` : null,
  store: ({ name, buffer }, index, value, helpers, exact) => {
    const { dtype } = buffer
    if (isHalf(dtype) && buffer.scope === 'global')
      return `${name}[${index}] = ${storeHalf(dtype, value, helpers)};`
    if (isHalf(dtype) && !exact) return `${name}[${index}] = ${SPELLINGS.cast(value, 'f32', dtype, helpers)};`
    return `${name}[${index}] = ${buffer.dtype === 'bool' ? `${value} ? 1 : 0` : value};`
  },
  let: (name, _dtype, value) => `const ${name} = ${value};`,
  arraysAtHead: true,
  register: (name, dtype, length) =>
    length === 1
      ? `let ${name} = ${dtype === 'bool' ? 'false' : '0'};`
      : `const ${name} = new ${ARRAY[dtype]}(${length});`,
  objects: (name, type, length) =>
    `let ${name} = ${length === 1 ? type : `Array.from({ length: ${length} }, () => ${type})`};`,
  shared: () => null,
  forHeader: (name, extent) => `for (let ${name} = 0; ${name} < ${extent}; ${name}++)`,
  whileHeader: (cond) => `while (${cond})`,
  barrier: 'yield;',
  // Threads take turns only at barriers, so a plain update is atomic.
  atomic: () => null,
  atomicLoop: (ref, index, combine, helpers) => [
    SPELLINGS.store(ref, index, combine(SPELLINGS.load(ref, index, helpers)), helpers, false),
  ],
}

/** Typed array for shared memory of `dtype`; floats have double precision. */
export const sharedArray = (dtype: Dtype): string =>
  dtype === 'u8' ? 'Uint8Array' : dtype === 'i8' ? 'Int8Array' : ARRAY[dtype]
