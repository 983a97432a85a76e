/** Spellings shared by C and CUDA C++. */
import { type Dtype, isFloat } from '../../ir/dtype.ts'
import { decimal } from '../../ir/rounding.ts'
import type { MathCall, Spellings } from '../spellings.ts'
import { REGISTER } from './cuda/elements.ts'

const suffix = (dtype: Dtype): string => (dtype === 'f64' ? '' : 'f')

/** A function of the C library, which has another one for floats of 32 bits. */
export const library =
  (name: string) =>
  ({ args, dtype }: Pick<MathCall, 'args' | 'dtype'>): string =>
    `${name}${suffix(dtype)}(${args.join(', ')})`

export const one = (dtype: Dtype): string => `1.0${suffix(dtype)}`

export const LIBRARY_MATH = {
  exp: library('exp'),
  exp2: library('exp2'),
  log: library('log'),
  log1p: library('log1p'),
  sqrt: library('sqrt'),
  sin: library('sin'),
  cos: library('cos'),
  tanh: library('tanh'),
  sigmoid: ({ x, dtype }: MathCall) =>
    `(${one(dtype)} / (${one(dtype)} + ${library('exp')({ args: [`-(${x})`], dtype })}))`,
  floor: library('floor'),
  ceil: library('ceil'),
  round: library('rint'),
  pow: library('pow'),
  erf: library('erf'),
  bit_and: ({ x, y }: MathCall) => `((${x}) & (${y}))`,
  bit_or: ({ x, y }: MathCall) => `((${x}) | (${y}))`,
  bit_xor: ({ x, y }: MathCall) => `((${x}) ^ (${y}))`,
} satisfies Partial<Spellings['math']>

/** The remainder of floats that has the divisor's sign. */
export const floorMod = (a: string, b: string, dtype: Dtype): string =>
  `(${a} - ${b} * ${library('floor')({ args: [`${a} / ${b}`], dtype })})`

/** Literals with the given spellings of NaN and infinity; `wide`: 64 bits. */
export const literalWith =
  (nan: (wide: boolean) => string, infinity: (wide: boolean) => string): Spellings['literal'] =>
  ({ value, dtype }) => {
    if (dtype === 'bool') return value !== 0 ? 'true' : 'false'
    if (!isFloat(dtype))
      return dtype === 'u32' ? `${value}u` : value === -2147483648 ? '(-2147483647 - 1)' : String(value)
    const wide = dtype === 'f64'
    if (Number.isNaN(value)) return nan(wide)
    if (!Number.isFinite(value)) return `${value < 0 ? '-' : ''}${infinity(wide)}`
    const digits = decimal(value, wide ? 'f64' : 'f32')
    return `${/[.e]/.test(digits) ? digits : `${digits}.0`}${suffix(dtype)}`
  }

const declared = (type: string, name: string, length: number): string =>
  length === 1 ? `${type} ${name};` : `${type} ${name}[${length}];`

export const C_FAMILY = {
  type: (t) => REGISTER[t],
  select: (c, a, b) => `(${c} ? ${a} : ${b})`,
  let: (name, dtype, value) => `const ${REGISTER[dtype]} ${name} = ${value};`,
  register: (name, dtype, length) => declared(REGISTER[dtype], name, length),
  objects: (name, type, length) => declared(type, name, length),
  forHeader: (name, extent) => `for (int ${name} = 0; ${name} < ${extent}; ++${name})`,
  whileHeader: (cond) => `while (${cond})`,
} satisfies Partial<Spellings>
