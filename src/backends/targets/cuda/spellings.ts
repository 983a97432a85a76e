/** CUDA C++ for NVRTC and nvcc, with no headers: half types are unpacked by hand. */

import { DTYPE_BYTES, type Dtype, INT_RANGE, isBeyondF32, isFloat, isHalf, isInt } from '../../../ir/dtype.ts'
import { directionOf, levelOf } from '../../../ir/hardware-axes.ts'
import type { MathCall, Spellings } from '../../spellings.ts'
import { C_FAMILY, floorMod, LIBRARY_MATH, library, literalWith } from '../c-family.ts'
import {
  CUDA_MEMORY,
  fromMemory,
  lane,
  REGISTER,
  toMemory,
  vectorOf,
  vectorType,
  WIDTHS,
} from './elements.ts'
import { need } from './helpers.ts'

/** Lanes of a warp. */
export const WARP = 32

const NATIVE_ATOMIC: Readonly<Record<string, readonly [fn: string, types: readonly Dtype[]]>> = {
  '+': ['atomicAdd', ['f32', 'f64', 'i32', 'u32']],
  min: ['atomicMin', ['i32', 'u32']],
  max: ['atomicMax', ['i32', 'u32']],
}

const paren = (index: string): string => (/^\w+$/.test(index) ? index : `(${index})`)

const unsigned = (x: string): string =>
  /^\d+$/.test(x) ? `${x}u` : `(unsigned)${x.startsWith('(int)(') ? x.slice('(int)'.length) : x}`

/**
 * Wrapping 32-bit arithmetic, as the reference defines it. It goes through `unsigned` because signed overflow is undefined.
 * Index expressions do without, so that addresses of consecutive elements share a register.
 */
const wrapping = (symbol: string, a: string, b: string): string =>
  `(int)(${unsigned(a)} ${symbol} ${unsigned(b)})`

/** A function that texts define. */
const own =
  (name: string) =>
  ({ x, helpers }: MathCall): string => {
    need(helpers, name)
    return `${name}_of(${x})`
  }

const MATH: Spellings['math'] = {
  ...LIBRARY_MATH,
  exp2: own('exp2'),
  rsqrt: library('rsqrt'),
  abs: (call) => {
    if (isFloat(call.dtype)) return library('fabs')(call)
    if (call.dtype === 'u32') return call.x
    return own('abs')(call)
  },
  sign: own('sign'),
  popcount: ({ x }) => `__popc(${x})`,
  // One instruction, modulo 32 as it is. With << and & 31, ptxas 13.0 runs out of registers on loops over bits (C7600).
  shift_left: ({ x, y }) => `(int)__funnelshift_l(0u, (unsigned)(${x}), (unsigned)(${y}))`,
  shift_right: ({ x, y }) => `(int)__funnelshift_r((unsigned)(${x}), 0u, (unsigned)(${y}))`,
}

export const CUDA: Spellings = {
  ...C_FAMILY,
  name: 'cuda',
  math: MATH,
  literal: literalWith(
    (wide) => (wide ? '__longlong_as_double(0x7ff8000000000000ll)' : '__int_as_float(0x7fc00000)'),
    (wide) => (wide ? '__longlong_as_double(0x7ff0000000000000ll)' : '__int_as_float(0x7f800000)'),
  ),
  neg: (x, dtype, helpers) => {
    if (dtype !== 'i32') return null
    need(helpers, 'apart')
    return `apart(${wrapping('-', '0', x)})`
  },
  binary: (op, a, b, dtype, operand, wraps, helpers) => {
    if (op === 'min' || op === 'max') {
      if (dtype === 'i32' && wraps === 'value') {
        need(helpers, 'apart')
        return `apart(${op}(${a}, ${b}))`
      }
      if (!isFloat(dtype)) return `${op}(${a}, ${b})`
      need(helpers, `${op}_of`)
      return `${op}_of(${a}, ${b})`
    }
    if (dtype === 'i32' && wraps === 'value' && (op === 'add' || op === 'sub' || op === 'mul')) {
      const text = wrapping(op === 'add' ? '+' : op === 'sub' ? '-' : '*', a, b)
      // Nothing less a number is its negation.
      if (!(op === 'sub' && a === '0')) return text
      need(helpers, 'apart')
      return `apart(${text})`
    }
    if (op === 'mod' && isFloat(operand)) return floorMod(a, b, operand)
    return null
  },
  hidden: (c, helpers) => {
    need(helpers, 'hidden')
    return `hidden(${c})`
  },
  cast: (x, from, to, helpers) => {
    if (to === 'bool') return `(${x} != 0)`
    if (isHalf(to)) {
      const wide = isBeyondF32(from)
      if (wide) need(helpers, 'odd')
      return fromMemory(to, toMemory(to, wide ? `odd(${x})` : x, helpers), helpers)
    }
    if (isFloat(from) && isInt(to)) {
      need(helpers, 'to_int')
      const [lo, hi] = INT_RANGE[to as keyof typeof INT_RANGE]
      const f = from === 'f64' ? '' : 'f'
      const end = (n: number): string =>
        to === 'u32' ? `${n}u` : n === -2147483648 ? '(-2147483647 - 1)' : `${n}`
      return `to_int<${REGISTER[to]}>(${x}, ${lo}.0${f}, ${hi}.0${f}, ${end(lo)}, ${end(hi)})`
    }
    if (to === 'i8' || to === 'u8') return `(int)(${CUDA_MEMORY[to]})(${x})`
    return from === 'bool' ? `(${REGISTER[to]})(${x} ? 1 : 0)` : `(${REGISTER[to]})(${x})`
  },
  load: ({ name, buffer }, index, helpers) => fromMemory(buffer.dtype, `${name}[${index}]`, helpers),
  store: ({ name, buffer }, index, value, helpers) =>
    `${name}[${index}] = ${toMemory(buffer.dtype, value, helpers)};`,
  widths: ({ dtype }) => WIDTHS[dtype],
  loadVector: ({ ref, index, temporary }, names, helpers) => {
    const { dtype } = ref.buffer
    const type = vectorType(dtype, names.length)
    return [
      `const ${type} ${temporary} = *(const ${type}*)(${ref.name} + ${paren(index)});`,
      ...names.map(
        (n, k) => `const ${REGISTER[dtype]} ${n} = ${lane(dtype, temporary, k, names.length, helpers)};`,
      ),
    ]
  },
  atomicWidths: ({ dtype, scope }, op) => (dtype === 'f32' && scope === 'global' && op === '+' ? [4, 2] : []),
  atomicVector: ({ ref, index }, _op, values, helpers) => {
    need(helpers, `add_${values.length}`)
    return [`add_${values.length}(${ref.name} + ${paren(index)}, ${values.join(', ')});`]
  },
  storeVector: ({ ref, index }, values, helpers, _exact, copied) => {
    const { dtype, scope } = ref.buffer
    const value = copied ?? vectorOf(dtype, values, helpers)
    if (scope === 'register') return [`${ref.name}[${paren(index)} / 2] = ${value};`]
    const type = vectorType(dtype, values.length)
    // Said to be aligned, lest the compiler store elements one by one; neighbouring addresses share their base.
    const bytes = values.length * DTYPE_BYTES[dtype]
    const at = `__builtin_assume_aligned(${ref.name} + ${paren(index)}, ${bytes})`
    return [`*(${type}*)${at} = ${value};`]
  },
  builtin: (axis) =>
    levelOf(axis) === 'thread' ? `(int)threadIdx.${directionOf(axis)}` : axis.replace('.', '_'),
  exchange: (value, _dtype, xor, among, helpers) => {
    if (among === WARP) return `__shfl_xor_sync(0xffffffffu, ${value}, ${xor})`
    need(helpers, 'lanes')
    return `__shfl_xor_sync(lanes<${among}>(), ${value}, ${xor})`
  },
  instructions: {
    packed: (name, words) => `unsigned ${name}[${words}];`,
    halves: (name) => `((unsigned short*)${name})`,
    address: (name, index) => `(${name} + (${index}))`,
    // In 32 bits from the array's beginning on: of two of them only what differs is left.
    shared: (name, index, dtype) =>
      `((unsigned)__cvta_generic_to_shared(${name}) + (unsigned)(${index}) * ${DTYPE_BYTES[dtype]}u)`,
  },
  // Of whole words, which atomics on narrow elements swap: what goes beyond an array touches none, the compiler believes.
  shared: (name, dtype, length, align) => {
    const perWord = Math.max(1, 4 / DTYPE_BYTES[dtype])
    const whole = Math.ceil(length / perWord) * perWord
    return `__shared__ __align__(${align}) ${CUDA_MEMORY[dtype]} ${name}[${whole}];`
  },
  barrier: '__syncthreads();',
  clusterBarrier:
    'asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");',
  laneBarrier: (among, helpers) => {
    if (among === WARP) return '__syncwarp();'
    need(helpers, 'lanes')
    return `__syncwarp(lanes<${among}>());`
  },
  atomic: ({ name, buffer }, index, op, value) => {
    const native = NATIVE_ATOMIC[op]
    return native?.[1].includes(buffer.dtype) ? `${native[0]}(&${name}[${index}], ${value});` : null
  },
  atomicLoop: ({ name, buffer }, index, combine, helpers) => {
    const wide = buffer.dtype === 'f64'
    const word = wide ? 'unsigned long long' : 'unsigned'
    const decode = (bits: string): string =>
      wide
        ? `__longlong_as_double(${bits})`
        : buffer.dtype === 'f32'
          ? `__uint_as_float(${bits})`
          : buffer.dtype === 'i32'
            ? `(int)${bits}`
            : bits
    const encode = (v: string): string =>
      wide
        ? `__double_as_longlong(${v})`
        : buffer.dtype === 'f32'
          ? `__float_as_uint(${v})`
          : `(unsigned)(${v})`
    if (['f64', 'f32', 'i32', 'u32'].includes(buffer.dtype))
      return [
        '{',
        `  ${word}* cell = (${word}*)&${name}[${index}];`,
        `  ${word} old_bits = *cell, seen;`,
        `  do { seen = old_bits; old_bits = atomicCAS(cell, seen, (${word})${encode(combine(decode('seen')))}); } while (old_bits != seen);`,
        '}',
      ]
    // Elements narrower than a word: the word around the element is swapped. Its address goes on from the element's
    // pointer: of one made from an integer the compiler believes that it is not in memory that is restricted.
    const bytes = isHalf(buffer.dtype) ? 2 : 1
    const mask = bytes === 2 ? '0xffffu' : '0xffu'
    const type = CUDA_MEMORY[buffer.dtype]
    return [
      '{',
      `  unsigned char* byte = (unsigned char*)&${name}[${index}];`,
      '  const unsigned beside = (unsigned)(unsigned long long)byte & 3u;',
      '  unsigned* cell = (unsigned*)(byte - beside);',
      '  const unsigned shift = beside * 8u;',
      '  unsigned old_bits = *cell, seen;',
      `  do { seen = old_bits; const ${type} element = (${type})((seen >> shift) & ${mask}); old_bits = atomicCAS(cell, seen, (seen & ~(${mask} << shift)) | (((unsigned)(${toMemory(buffer.dtype, combine(fromMemory(buffer.dtype, 'element', helpers)), helpers)}) & ${mask}) << shift)); } while (old_bits != seen);`,
      '}',
    ]
  },
}
