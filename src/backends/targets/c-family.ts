/** Spellings shared by C and CUDA C++. */
import { type Dtype, isFloat, isHalf, scalarType } from '../../ir/values/dtype.ts'
import { decimal } from '../../ir/values/half.ts'
import type { HelperCall, Helpers, MathCall, Spellings, WideIndices } from '../print/spellings.ts'

/** Element types in memory and in parameter lists. */
export const MEMORY: Readonly<Record<Dtype, string>> = {
  f64: 'double',
  f32: 'float',
  f16: 'unsigned short',
  bf16: 'unsigned short',
  i32: 'int',
  u32: 'unsigned',
  i8: 'signed char',
  u8: 'unsigned char',
  bool: 'unsigned char',
}

/** Element types in registers. */
export const REGISTER: Readonly<Record<Dtype, string>> = {
  ...MEMORY,
  f16: 'float',
  bf16: 'float',
  i8: 'int',
  u8: 'int',
  bool: 'bool',
}

/** Elements in memory and their values in registers. `storeBool`: a bool in a register as an element. */
export function memoryAccess(helperCall: HelperCall, storeBool: (x: string) => string) {
  const fromMemory = (t: Dtype, text: string, helpers: Helpers): string => {
    if (isHalf(t)) return helperCall(helpers, `${t}_to_f32`, text)
    return t === 'bool' ? `(${text} != 0)` : t === 'i8' || t === 'u8' ? `(int)${text}` : text
  }
  const toMemory = (t: Dtype, text: string, helpers: Helpers): string => {
    if (isHalf(t)) return helperCall(helpers, `f32_to_${t}`, text)
    if (t === 'bool') return storeBool(text)
    return t === 'i8' || t === 'u8' ? `(${MEMORY[t]})(${text})` : text
  }
  const access: Pick<Spellings, 'load' | 'store'> = {
    load: ({ name, buffer }, index, helpers) => fromMemory(buffer.dtype, `${name}[${index}]`, helpers),
    store: ({ name, buffer }, index, value, helpers) =>
      `${name}[${index}] = ${toMemory(buffer.dtype, value, helpers)};`,
  }
  return { fromMemory, toMemory, access }
}

const suffix = (dtype: Dtype): string => (dtype === 'f64' ? '' : 'f')

/** Call of a function of the C library, with the suffix `f` for 32-bit floats. */
export const libraryCall =
  (name: string) =>
  ({ args, dtype }: Pick<MathCall, 'args' | 'dtype'>): string =>
    `${name}${suffix(dtype)}(${args.join(', ')})`

export const oneLiteral = (dtype: Dtype): string => `1.0${suffix(dtype)}`

export const LIBRARY_MATH = {
  exp: libraryCall('exp'),
  exp2: libraryCall('exp2'),
  log: libraryCall('log'),
  log1p: libraryCall('log1p'),
  sqrt: libraryCall('sqrt'),
  sin: libraryCall('sin'),
  cos: libraryCall('cos'),
  tanh: libraryCall('tanh'),
  sigmoid: ({ x, dtype }: MathCall) =>
    `(${oneLiteral(dtype)} / (${oneLiteral(dtype)} + ${libraryCall('exp')({ args: [`-(${x})`], dtype })}))`,
  floor: libraryCall('floor'),
  ceil: libraryCall('ceil'),
  round: libraryCall('rint'),
  pow: libraryCall('pow'),
  erf: libraryCall('erf'),
  bit_and: ({ x, y }: MathCall) => `((${x}) & (${y}))`,
  bit_or: ({ x, y }: MathCall) => `((${x}) | (${y}))`,
  bit_xor: ({ x, y }: MathCall) => `((${x}) ^ (${y}))`,
} satisfies Partial<Spellings['math']>

/** Floating-point modulo with the sign of the divisor. */
export const floorMod = (a: string, b: string, dtype: Dtype): string =>
  `(${a} - ${b} * ${libraryCall('floor')({ args: [`${a} / ${b}`], dtype })})`

/** Prints literals, with these spellings of NaN and infinity; `is64Bit`: f64, otherwise f32. */
export const literalPrinter =
  (nan: (is64Bit: boolean) => string, infinity: (is64Bit: boolean) => string): Spellings['literal'] =>
  ({ value, dtype: type }) => {
    const dtype = scalarType(type)
    if (dtype === 'bool') return value !== 0 ? 'true' : 'false'
    if (!isFloat(dtype))
      return dtype === 'u32' ? `${value}u` : value === -2147483648 ? '(-2147483647 - 1)' : String(value)
    const is64Bit = dtype === 'f64'
    if (Number.isNaN(value)) return nan(is64Bit)
    if (!Number.isFinite(value)) return `${value < 0 ? '-' : ''}${infinity(is64Bit)}`
    const digits = decimal(value, is64Bit ? 'f64' : 'f32')
    return `${/[.e]/.test(digits) ? digits : `${digits}.0`}${suffix(dtype)}`
  }

const declaration = (type: string, name: string, length: number): string =>
  length === 1 ? `${type} ${name};` : `${type} ${name}[${length}];`

/** Operators that wrap as unsigned integers. */
export const C_SYMBOL: Readonly<Record<string, string>> = { add: '+', sub: '-', mul: '*' }

/** 64-bit indices of C and CUDA C++. `long long` has 64 bits on every platform. */
export const wideIndices = (extremum: WideIndices['binary']): WideIndices => ({
  literal: (value) => `${value}ll`,
  fromWord: (x) => `(long long)${/^\w+$/.test(x) ? x : `(${x})`}`,
  toWord: (x) => `(int)(${x})`,
  binary: (op, a, b, wraps, helpers) => {
    if (op === 'min' || op === 'max') return extremum(op, a, b, wraps, helpers)
    // Addresses computed from data may overflow in iterations that a guard excludes.
    return wraps && C_SYMBOL[op]
      ? `(long long)((unsigned long long)${a} ${C_SYMBOL[op]} (unsigned long long)${b})`
      : null
  },
  let: (name, value) => `const long long ${name} = ${value};`,
  register: (name, length) => declaration('long long', name, length),
  forHeader: (name, extent) => `for (long long ${name} = 0; ${name} < ${extent}; ++${name})`,
})

export const C_FAMILY = {
  type: (t) => REGISTER[t],
  select: (c, a, b) => `(${c} ? ${a} : ${b})`,
  let: (name, dtype, value) => `const ${REGISTER[dtype]} ${name} = ${value};`,
  register: (name, dtype, length) => declaration(REGISTER[dtype], name, length),
  objects: (name, type, length) => declaration(type, name, length),
  forHeader: (name, extent) => `for (int ${name} = 0; ${name} < ${extent}; ++${name})`,
  whileHeader: (cond) => `while (${cond})`,
} satisfies Partial<Spellings>
