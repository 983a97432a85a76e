/** What expressions compute with: operators and functions by name. */

/** Integer `div` and `mod` round towards minus infinity; `quo` and `rem` (Stage III) towards zero. */
export type ArithOp = 'add' | 'sub' | 'mul' | 'div' | 'mod' | 'quo' | 'rem' | 'min' | 'max'
export type LogicOp = 'and' | 'or'
export type CompareOp = 'lt' | 'le' | 'gt' | 'ge' | 'eq' | 'ne'
export type BinaryOp = ArithOp | LogicOp | CompareOp

const COMPARE: ReadonlySet<string> = new Set(['lt', 'le', 'gt', 'ge', 'eq', 'ne'])
export const isCompare = (op: BinaryOp): op is CompareOp => COMPARE.has(op)

export const MATH_FNS = [
  'exp',
  'log',
  'sqrt',
  'rsqrt',
  'abs',
  'sin',
  'cos',
  'tanh',
  'sigmoid',
  'floor',
  'ceil',
  'round',
  'pow',
  'erf',
  'sign',
  'popcount',
  'shift_left',
  'bit_xor',
] as const
export type MathFn = (typeof MATH_FNS)[number]
export const MATH_ARITY: Readonly<Record<MathFn, number>> = {
  exp: 1,
  log: 1,
  sqrt: 1,
  rsqrt: 1,
  abs: 1,
  sin: 1,
  cos: 1,
  tanh: 1,
  sigmoid: 1,
  floor: 1,
  ceil: 1,
  round: 1,
  pow: 2,
  erf: 1,
  sign: 1,
  popcount: 1,
  shift_left: 2,
  bit_xor: 2,
}
const BIT_FNS = ['popcount', 'shift_left', 'bit_xor'] as const
/** Of i32, bit by bit: how many bits are set, a shift by `n mod 32` places, exclusive or. */
export type BitFn = (typeof BIT_FNS)[number]
export const isBitFn = (fn: MathFn): fn is BitFn => (BIT_FNS as readonly string[]).includes(fn)
