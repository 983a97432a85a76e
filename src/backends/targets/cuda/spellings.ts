/** Spelling table of CUDA C++ for NVRTC and nvcc. It uses no headers, so half types are unpacked with inline assembly. */

import { directionOf, levelOf } from '../../../ir/instructions/hardware-axes.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import { DTYPE_BYTES, INT_RANGE, isBeyondF32, isFloat, isHalf, isInt } from '../../../ir/values/dtype.ts'
import type { Helpers, Spellings } from '../../print/spellings.ts'
import {
  C_FAMILY,
  C_SYMBOL,
  floorMod,
  LIBRARY_MATH,
  libraryCall,
  literalPrinter,
  MEMORY,
  memoryAccess,
  REGISTER,
  wideIndices,
} from '../c-family.ts'
import { addHelper, helperCall, helperFunction } from './helpers.ts'

/** Number of lanes of a warp. */
export const WARP = 32

const { fromMemory, toMemory, access } = memoryAccess(helperCall, (x) => `(unsigned char)(${x} ? 1 : 0)`)

/** Vector widths of one access in elements, largest first. */
const WIDTHS: Readonly<Record<Dtype, readonly number[]>> = {
  f64: [2],
  f32: [4, 2],
  i32: [4, 2],
  u32: [4, 2],
  f16: [8, 4, 2],
  bf16: [8, 4, 2],
  i8: [],
  u8: [],
  bool: [],
}

const COMPONENTS = ['x', 'y', 'z', 'w'] as const

/** Vector type of `count` elements; half types are packed in words. */
function vectorType(t: Dtype, count: number): string {
  if (isHalf(t)) return count === 2 ? 'unsigned' : `uint${count / 2}`
  return `${t === 'f32' ? 'float' : t === 'f64' ? 'double' : t === 'u32' ? 'uint' : 'int'}${count}`
}

/** Element `k` of a vector, in a register. */
function vectorElement(t: Dtype, vector: string, k: number, count: number, helpers: Helpers): string {
  if (!isHalf(t)) return `${vector}.${COMPONENTS[k]}`
  const word = count === 2 ? vector : `${vector}.${COMPONENTS[k >> 1]}`
  return fromMemory(t, `(unsigned short)(${k % 2 === 0 ? word : `${word} >> 16`})`, helpers)
}

/** Packs values in registers into a vector. */
function packVector(t: Dtype, values: readonly string[], helpers: Helpers): string {
  if (!isHalf(t)) return `make_${vectorType(t, values.length)}(${values.join(', ')})`
  const words = Array.from({ length: values.length / 2 }, (_, k) =>
    helperCall(helpers, `f32_to_${t}x2`, values[2 * k]!, values[2 * k + 1]!),
  )
  return words.length === 1 ? words[0]! : `make_uint${words.length}(${words.join(', ')})`
}

const NATIVE_ATOMIC: Readonly<Record<string, readonly [fn: string, types: readonly Dtype[]]>> = {
  '+': ['atomicAdd', ['f32', 'f64', 'i32', 'u32']],
  min: ['atomicMin', ['i32', 'u32']],
  max: ['atomicMax', ['i32', 'u32']],
}

const paren = (index: string): string => (/^\w+$/.test(index) ? index : `(${index})`)

const unsigned = (x: string): string =>
  /^\d+$/.test(x) ? `${x}u` : `(unsigned)${x.startsWith('(int)(') ? x.slice('(int)'.length) : x}`

/**
 * Wrapping 32-bit arithmetic, as in the reference. It uses `unsigned`, because signed overflow is undefined. Index expressions
 * do not use it, so that addresses of consecutive elements share a register.
 */
const wrappingOp = (symbol: string, a: string, b: string): string =>
  `(int)(${unsigned(a)} ${symbol} ${unsigned(b)})`

const MATH: Spellings['math'] = {
  ...LIBRARY_MATH,
  exp2: helperFunction('exp2_of'),
  rsqrt: libraryCall('rsqrt'),
  abs: (call) => {
    if (isFloat(call.dtype)) return libraryCall('fabs')(call)
    if (call.dtype === 'u32') return call.x
    return helperFunction('abs_of')(call)
  },
  sign: helperFunction('sign_of'),
  popcount: ({ x }) => `__popc(${x})`,
  // One instruction, which shifts modulo 32. With << and & 31, ptxas 13.0 runs out of registers in loops over bits (C7600).
  shift_left: ({ x, y }) => `(int)__funnelshift_l(0u, (unsigned)(${x}), (unsigned)(${y}))`,
  shift_right: ({ x, y }) => `(int)__funnelshift_r((unsigned)(${x}), 0u, (unsigned)(${y}))`,
}

export const SPELLINGS: Spellings = {
  ...C_FAMILY,
  ...access,
  name: 'cuda',
  wideIndices: wideIndices((op, a, b) => `${op}(${a}, ${b})`),
  math: MATH,
  literal: literalPrinter(
    (wide) => (wide ? '__longlong_as_double(0x7ff8000000000000ll)' : '__int_as_float(0x7fc00000)'),
    (wide) => (wide ? '__longlong_as_double(0x7ff0000000000000ll)' : '__int_as_float(0x7f800000)'),
  ),
  neg: (x, dtype, helpers) => {
    return dtype === 'i32' ? helperCall(helpers, 'apart', wrappingOp('-', '0', x)) : null
  },
  binary: (op, a, b, dtype, operand, wraps, helpers) => {
    if (op === 'min' || op === 'max') {
      if (dtype === 'i32' && wraps === 'value') return helperCall(helpers, 'apart', `${op}(${a}, ${b})`)
      return isFloat(dtype) ? helperCall(helpers, `${op}_of`, a, b) : `${op}(${a}, ${b})`
    }
    if (dtype === 'i32' && wraps === 'value' && C_SYMBOL[op]) {
      const text = wrappingOp(C_SYMBOL[op], a, b)
      // 0 - x is a negation.
      return op === 'sub' && a === '0' ? helperCall(helpers, 'apart', text) : text
    }
    if (op === 'mod' && isFloat(operand)) return floorMod(a, b, operand)
    return null
  },
  hideCondition: (c, helpers) => helperCall(helpers, 'hidden', c),
  cast: (x, from, to, helpers) => {
    if (to === 'bool') return `(${x} != 0)`
    if (isHalf(to)) {
      const value = isBeyondF32(from) ? helperCall(helpers, 'odd', x) : x
      return fromMemory(to, toMemory(to, value, helpers), helpers)
    }
    if (isFloat(from) && isInt(to)) {
      addHelper(helpers, 'to_int')
      const [lo, hi] = INT_RANGE[to as keyof typeof INT_RANGE]
      const f = from === 'f64' ? '' : 'f'
      const boundText = (n: number): string =>
        to === 'u32' ? `${n}u` : n === -2147483648 ? '(-2147483647 - 1)' : `${n}`
      return `to_int<${REGISTER[to]}>(${x}, ${lo}.0${f}, ${hi}.0${f}, ${boundText(lo)}, ${boundText(hi)})`
    }
    if (to === 'i8' || to === 'u8') return `(int)(${MEMORY[to]})(${x})`
    return from === 'bool' ? `(${REGISTER[to]})(${x} ? 1 : 0)` : `(${REGISTER[to]})(${x})`
  },
  widths: ({ dtype }) => WIDTHS[dtype],
  loadVector: ({ ref, index, temporary }, names, helpers) => {
    const { dtype } = ref.buffer
    const type = vectorType(dtype, names.length)
    return [
      `const ${type} ${temporary} = *(const ${type}*)(${ref.name} + ${paren(index)});`,
      ...names.map(
        (n, k) =>
          `const ${REGISTER[dtype]} ${n} = ${vectorElement(dtype, temporary, k, names.length, helpers)};`,
      ),
    ]
  },
  atomicWidths: ({ dtype, scope }, op) => (dtype === 'f32' && scope === 'global' && op === '+' ? [4, 2] : []),
  atomicVector: ({ ref, index }, _op, values, helpers) => {
    const call = helperCall(helpers, `add_${values.length}`, `${ref.name} + ${paren(index)}`, ...values)
    return [`${call};`]
  },
  storeVector: ({ ref, index }, values, helpers, _exact, source) => {
    const { dtype, scope } = ref.buffer
    const value = source ?? packVector(dtype, values, helpers)
    if (scope === 'register') return [`${ref.name}[${paren(index)} / 2] = ${value};`]
    const type = vectorType(dtype, values.length)
    // Without the alignment, the compiler may store elements individually. Neighbouring addresses share their base.
    const bytes = values.length * DTYPE_BYTES[dtype]
    const address = `__builtin_assume_aligned(${ref.name} + ${paren(index)}, ${bytes})`
    return [`*(${type}*)${address} = ${value};`]
  },
  builtin: (axis) =>
    levelOf(axis) === 'thread' ? `(int)threadIdx.${directionOf(axis)}` : axis.replace('.', '_'),
  exchange: (value, _dtype, xor, among, helpers) => {
    if (among === WARP) return `__shfl_xor_sync(0xffffffffu, ${value}, ${xor})`
    addHelper(helpers, 'lanes')
    return `__shfl_xor_sync(lanes<${among}>(), ${value}, ${xor})`
  },
  instructions: {
    packed: (name, words) => `unsigned ${name}[${words}];`,
    halves: (name) => `((unsigned short*)${name})`,
    address: (name, index) => `(${name} + (${index}))`,
    // 32-bit addresses relative to the start of the array, so that differences of addresses are folded.
    shared: (name, index, dtype) =>
      `((unsigned)__cvta_generic_to_shared(${name}) + (unsigned)(${index}) * ${DTYPE_BYTES[dtype]}u)`,
  },
  // Padded to whole words, because atomics on narrow elements swap words, and the compiler assumes that accesses beyond an array
  // do not alias it.
  shared: (name, dtype, length, align) => {
    const perWord = Math.max(1, 4 / DTYPE_BYTES[dtype])
    const paddedLength = Math.ceil(length / perWord) * perWord
    return `__shared__ __align__(${align}) ${MEMORY[dtype]} ${name}[${paddedLength}];`
  },
  barrier: '__syncthreads();',
  clusterBarrier:
    'asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");',
  laneBarrier: (among, helpers) => {
    if (among === WARP) return '__syncwarp();'
    addHelper(helpers, 'lanes')
    return `__syncwarp(lanes<${among}>());`
  },
  atomic: ({ name, buffer }, index, op, value) => {
    const native = NATIVE_ATOMIC[op]
    return native?.[1].includes(buffer.dtype) ? `${native[0]}(&${name}[${index}], ${value});` : null
  },
  atomicLoop: ({ name, buffer }, index, combine, helpers) => {
    const is64Bit = buffer.dtype === 'f64'
    const word = is64Bit ? 'unsigned long long' : 'unsigned'
    const decode = (bits: string): string =>
      is64Bit
        ? `__longlong_as_double(${bits})`
        : buffer.dtype === 'f32'
          ? `__uint_as_float(${bits})`
          : buffer.dtype === 'i32'
            ? `(int)${bits}`
            : bits
    const encode = (v: string): string =>
      is64Bit
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
    // Narrow elements: swaps the word that contains the element. Its address is derived from the element's pointer, because the
    // compiler assumes that a pointer made from an integer does not alias `__restrict__` memory.
    const bytes = isHalf(buffer.dtype) ? 2 : 1
    const mask = bytes === 2 ? '0xffffu' : '0xffu'
    const type = MEMORY[buffer.dtype]
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
