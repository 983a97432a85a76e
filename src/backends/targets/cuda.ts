/** CUDA C++ for NVRTC and nvcc, with no headers: half types are unpacked by hand. */
import { DTYPE_BYTES, type Dtype, INT_RANGE, isBeyondF32, isFloat, isHalf, isInt } from '../../ir/dtype.ts'
import type { MathFn } from '../../ir/ops.ts'
import { decimal } from '../../ir/rounding.ts'
import type { Target } from '../target.ts'
import {
  CUDA_MEMORY,
  fromMemory,
  lane,
  REGISTER,
  toMemory,
  vectorOf,
  vectorType,
  WIDTHS,
} from './cuda-elements.ts'
import { HELPER, MATRIX, need, OVERLAP } from './cuda-helpers.ts'

const RESERVED = new Set(
  `alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq blockIdx blockDim threadIdx gridDim warpSize main expf logf sqrtf rsqrtf fabsf sinf cosf tanhf floorf ceilf rintf powf erff exp log sqrt rsqrt fabs sin cos tanh floor ceil rint pow erf min max abs atomicAdd atomicMin atomicMax atomicCAS linux unix block_x block_y block_z old_bits seen cell byte beside shift element shared_memory NULL NAN EOF INFINITY BUFSIZ MAXFLOAT NZERO NFDBITS SNAN SNANF SNANL HUGE_VAL RAND_MAX M_PI M_E FP_NAN FP_ZERO FP_NORMAL INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN ULONG_MAX CHAR_MAX CHAR_MIN CHAR_BIT SHRT_MAX SHRT_MIN SEEK_SET SEEK_CUR SEEK_END BIG_ENDIAN LITTLE_ENDIAN BYTE_ORDER PATH_MAX NAME_MAX TMP_MAX EXIT_SUCCESS EXIT_FAILURE stdin stdout stderr errno assert math_errhandling`.split(
    ' ',
  ),
)

/** Lanes of a warp. */
export const WARP = 32

const MATH: Readonly<Record<MathFn, string>> = {
  exp: 'exp',
  log: 'log',
  sqrt: 'sqrt',
  rsqrt: 'rsqrt',
  abs: 'fabs',
  sin: 'sin',
  cos: 'cos',
  tanh: 'tanh',
  sigmoid: '',
  floor: 'floor',
  ceil: 'ceil',
  round: 'rint',
  pow: 'pow',
  erf: 'erf',
  sign: '',
  popcount: '',
  shift_left: '',
  bit_xor: '',
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
 * What is beyond 32 bits wraps, as the reference says; of `int` a compiler may assume that nothing is. Places do without:
 * addresses of consecutive elements are one register then.
 */
const wrapping = (symbol: string, a: string, b: string): string =>
  `(int)(${unsigned(a)} ${symbol} ${unsigned(b)})`

export const CUDA: Target = {
  name: 'cuda',
  reserved: new Set([
    ...RESERVED,
    ...Object.keys(HELPER),
    'sign_of',
    'abs_of',
    OVERLAP.begin.name,
    OVERLAP.wait.name,
    MATRIX.name,
  ]),
  type: (t) => REGISTER[t],
  literal: ({ value, dtype }) => {
    if (dtype === 'bool') return value !== 0 ? 'true' : 'false'
    if (!isFloat(dtype))
      return dtype === 'u32' ? `${value}u` : value === -2147483648 ? '(-2147483647 - 1)' : String(value)
    const wide = dtype === 'f64'
    if (Number.isNaN(value))
      return wide ? '__longlong_as_double(0x7ff8000000000000ll)' : '__int_as_float(0x7fc00000)'
    if (!Number.isFinite(value))
      return `${value < 0 ? '-' : ''}${wide ? '__longlong_as_double(0x7ff0000000000000ll)' : '__int_as_float(0x7f800000)'}`
    const digits = decimal(value, wide ? 'f64' : 'f32')
    const text = /[.e]/.test(digits) ? digits : `${digits}.0`
    return wide ? text : `${text}f`
  },
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
    if (op === 'mod' && isFloat(operand))
      return operand === 'f64' ? `(${a} - ${b} * floor(${a} / ${b}))` : `(${a} - ${b} * floorf(${a} / ${b}))`
    return null
  },
  call: (fn, args, dtype, helpers) => {
    const f = dtype === 'f64' ? '' : 'f'
    if (fn === 'sigmoid')
      return dtype === 'f64' ? `(1.0 / (1.0 + exp(-(${args[0]}))))` : `(1.0f / (1.0f + expf(-(${args[0]}))))`
    if (fn === 'sign') {
      need(helpers, 'sign')
      return `sign_of(${args[0]})`
    }
    if (fn === 'popcount') return `__popc(${args[0]})`
    if (fn === 'bit_xor') return `((${args[0]}) ^ (${args[1]}))`
    // One instruction, modulo 32 as it is. With << and & 31, ptxas 13.0 runs out of registers on loops over bits (C7600).
    if (fn === 'shift_left') return `(int)__funnelshift_l(0u, (unsigned)(${args[0]}), (unsigned)(${args[1]}))`
    if (fn === 'abs' && dtype === 'u32') return args[0]!
    if (fn === 'abs' && !isFloat(dtype)) {
      need(helpers, 'abs')
      return `abs_of(${args[0]})`
    }
    return `${MATH[fn]}${f}(${args.join(', ')})`
  },
  select: (c, a, b) => `(${c} ? ${a} : ${b})`,
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
    const { dtype } = ref.buffer
    const type = vectorType(dtype, values.length)
    // Said to be aligned, lest the compiler store elements one by one; neighbouring addresses share their base.
    const bytes = values.length * DTYPE_BYTES[dtype]
    const at = `__builtin_assume_aligned(${ref.name} + ${paren(index)}, ${bytes})`
    return [`*(${type}*)${at} = ${copied ?? vectorOf(dtype, values, helpers)};`]
  },
  builtin: (axis) =>
    axis.startsWith('thread') ? `(int)threadIdx.${axis.slice(-1)}` : axis.replace('.', '_'),
  let: (name, dtype, value) => `const ${REGISTER[dtype]} ${name} = ${value};`,
  exchange: (value, _dtype, xor, among, helpers) => {
    if (among === WARP) return `__shfl_xor_sync(0xffffffffu, ${value}, ${xor})`
    need(helpers, 'lanes')
    return `__shfl_xor_sync(lanes<${among}>(), ${value}, ${xor})`
  },
  register: (name, dtype, length) =>
    length === 1 ? `${REGISTER[dtype]} ${name};` : `${REGISTER[dtype]} ${name}[${length}];`,
  objects: (name, type, length) => (length === 1 ? `${type} ${name};` : `${type} ${name}[${length}];`),
  instructions: {
    packed: (name, words) => `unsigned ${name}[${words}];`,
    half: (name, index, dtype, helpers) =>
      fromMemory(dtype, `((const unsigned short*)${name})[${index}]`, helpers),
    setHalf: (name, index, value, dtype, helpers) =>
      `((unsigned short*)${name})[${index}] = ${toMemory(dtype, value, helpers)};`,
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
  forHeader: (name, extent) => `for (int ${name} = 0; ${name} < ${extent}; ++${name})`,
  whileHeader: (cond) => `while (${cond})`,
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
