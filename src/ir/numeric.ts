/**
 * Arithmetic of the reference: floats in float64, rounded by casts; integers exact, wrapping
 * to their type. Division and modulo of integers floor, and give 0 where the divisor is 0; `%` of floats floors
 * too. Casts from float to integer truncate and saturate, NaN gives 0. `round` takes ties to even.
 */
import { InternalError } from '../ast/diagnostic.ts'
import { type Dtype, INT_RANGE, isFloat } from './dtype.ts'
import type { ArithOp, CompareOp, MathFn } from './ops.ts'
import { rounding } from './rounding.ts'

export type Binary = (a: number, b: number) => number

/** Brings an exact integer into the type's range, modulo 2^bits; floats pass. */
export function wrap(dtype: Dtype): (x: number) => number {
  switch (dtype) {
    case 'i32':
      return (x) => x | 0
    case 'u32':
      return (x) => x >>> 0
    case 'i8':
      return (x) => (x << 24) >> 24
    case 'u8':
      return (x) => x & 255
    case 'bool':
      return (x) => (x !== 0 ? 1 : 0)
    default:
      return (x) => x
  }
}

/** Converts a value of type `from` to type `to`. */
export function convert(from: Dtype, to: Dtype): (x: number) => number {
  if (isFloat(to)) return rounding(to)
  if (to === 'bool' || !isFloat(from)) return wrap(to)
  const [lo, hi] = INT_RANGE[to as 'i32' | 'u32' | 'i8' | 'u8']
  return (x) => (Number.isNaN(x) ? 0 : Math.min(hi, Math.max(lo, Math.trunc(x))) + 0)
}

const FLOAT: Readonly<Record<ArithOp, Binary>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  mod: (a, b) => a - b * Math.floor(a / b),
  quo: (a, b) => Math.trunc(a / b),
  rem: (a, b) => a % b,
  min: Math.min,
  max: Math.max,
}

/** On integers of at most 32 bits every result below is exact in float64, except `mul`. */
const INT: Readonly<Record<ArithOp, Binary>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: Math.imul,
  div: (a, b) => (b === 0 ? 0 : Math.floor(a / b)),
  mod: (a, b) => (b === 0 ? 0 : a - b * Math.floor(a / b)),
  quo: (a, b) => Math.trunc(a / divisor(b)),
  rem: (a, b) => a % divisor(b),
  min: Math.min,
  max: Math.max,
}

/** What targets divide by, which C defines for other divisors than 0 alone: compilers take it for proof of that. */
function divisor(b: number): number {
  if (b === 0) throw new InternalError('a division by 0 is computed outside of the condition that skips it')
  return b
}

export function arithmetic(op: ArithOp, dtype: Dtype): Binary {
  if (isFloat(dtype)) return FLOAT[op]
  const exact = INT[op]
  const toType = wrap(dtype)
  return op === 'min' || op === 'max' ? exact : (a, b) => toType(exact(a, b))
}

export const COMPARE: Readonly<Record<CompareOp, Binary>> = {
  lt: (a, b) => (a < b ? 1 : 0),
  le: (a, b) => (a <= b ? 1 : 0),
  gt: (a, b) => (a > b ? 1 : 0),
  ge: (a, b) => (a >= b ? 1 : 0),
  eq: (a, b) => (a === b ? 1 : 0),
  ne: (a, b) => (a !== b ? 1 : 0),
}

/** erf(x) = 2/√π · e^(-x²) · Σ 2^n x^(2n+1) / (2n+1)!!: positive terms only, so no cancellation. */
function erf(x: number): number {
  if (Number.isNaN(x)) return x
  const a = Math.abs(x)
  if (a > 6) return Math.sign(x)
  let term = a
  let sum = a
  for (let n = 1; term > sum * 1e-17; n++) {
    term *= (2 * a * a) / (2 * n + 1)
    sum += term
  }
  return Math.sign(x) * Math.min(1, (2 / Math.sqrt(Math.PI)) * Math.exp(-a * a) * sum)
}

function roundEven(x: number): number {
  const f = Math.floor(x)
  const d = x - f
  return d < 0.5 || (d === 0.5 && f % 2 === 0) ? f : f + 1
}

/** The bits that are set in an i32; each step clears the lowest (Kernighan). */
function popcount(x: number): number {
  let count = 0
  for (let rest = x; rest !== 0; rest &= rest - 1) count++
  return count
}

const MATH: Readonly<Record<MathFn, Binary>> = {
  exp: Math.exp,
  log: Math.log,
  sqrt: Math.sqrt,
  rsqrt: (x) => 1 / Math.sqrt(x),
  abs: Math.abs,
  sin: Math.sin,
  cos: Math.cos,
  tanh: Math.tanh,
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
  floor: Math.floor,
  ceil: Math.ceil,
  round: roundEven,
  pow: (x, y) => x ** y,
  erf,
  sign: Math.sign,
  popcount,
  shift_left: (x, n) => x << n,
  bit_xor: (x, n) => x ^ n,
}

/** A function of one argument ignores the second. */
export const mathOf = (fn: MathFn): Binary => MATH[fn]
