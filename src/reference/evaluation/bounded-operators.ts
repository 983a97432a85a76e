/** Operators and functions on values with error bounds: each stores the bound of its result in `last.error`. */
import type { Binary, Call, Expr } from '../../ir/expressions/expr.ts'
import { SIZE_OPERATORS } from '../../ir/expressions/size-expressions.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { computeType, type Dtype, INT_RANGE, isFloat } from '../../ir/values/dtype.ts'
import { type ArithOp, isCompare, type MathFn } from '../../ir/values/math.ts'
import { arithmetic, convert, mathOf } from '../../ir/values/numeric.ts'
import {
  binaryMonotoneError,
  isExactProduct,
  last,
  monotoneError,
  roundedError,
  stepError,
  UNDECIDED,
  UNIT,
} from '../error.ts'
import type { Thunk } from '../tensors/cells.ts'

// Error bounds of functions: propagation of the operands' errors, and the devices' own errors.

interface ErrorRow {
  /**
   * Propagation of an operand's error: not increased (`steady`); determined by the results at its ends, for a monotone
   * function (`monotone`; with integer results: `steps`); unknown (`undecided`); or computed.
   */
  readonly propagation:
    | 'steady'
    | 'monotone'
    | 'steps'
    | 'undecided'
    | ((x: number, ex: number, y: number, ey: number, v: number) => number)
  /**
   * Errors of devices for a result v: half units in the last place (`settled` allows twice as many), and an absolute
   * error added in f32 (WGSL, section 15.7.4). `null`: results are exact for given operands.
   */
  readonly deviceError:
    | null
    | ((x: number, y: number, v: number) => readonly [units: number, absolute: number])
}

/** An absolute error, unless the result is exactly 0. */
const zeroIfExact = (v: number, absolute: number): number => (v === 0 ? 0 : absolute)

const INTEGER_ROW: ErrorRow = { propagation: 'steps', deviceError: null }
const BIT_ROW: ErrorRow = { propagation: 'undecided', deviceError: null }

export const FUNCTION_ERRORS: Readonly<Record<MathFn, ErrorRow>> = {
  exp: { propagation: 'monotone', deviceError: (x) => [6 + 4 * Math.abs(x), 0] },
  exp2: { propagation: 'monotone', deviceError: (x) => [8 + 4 * Math.abs(x), 0] },
  log: { propagation: 'monotone', deviceError: (_x, _y, v) => [6, zeroIfExact(v, 2 ** -21)] },
  log1p: { propagation: 'monotone', deviceError: (x) => [16, Math.abs(x) < 0.25 ? 0 : 2 ** -21 + 2 ** -22] },
  sqrt: { propagation: 'monotone', deviceError: () => [10, 0] },
  rsqrt: { propagation: 'monotone', deviceError: () => [4, 0] },
  abs: { propagation: 'steady', deviceError: null },
  sin: { propagation: 'steady', deviceError: (x) => [4, 2 ** -11 + 2 ** -20 * Math.abs(x)] },
  cos: {
    propagation: 'steady',
    deviceError: (x, _y, v) => [4, zeroIfExact(v, 2 ** -11 + 2 ** -20 * Math.abs(x))],
  },
  tanh: { propagation: 'monotone', deviceError: (_x, _y, v) => [40, zeroIfExact(v, 1e-5)] },
  sigmoid: { propagation: 'monotone', deviceError: (x) => [20 + 4 * Math.abs(x), 0] },
  floor: INTEGER_ROW,
  ceil: INTEGER_ROW,
  round: INTEGER_ROW,
  pow: {
    // Integer powers are polynomials, also of negative numbers, or their reciprocals.
    propagation: (x, ex, y, ey, v) =>
      ey === 0 && Number.isInteger(y) && (y >= 0 || Math.abs(x) > ex)
        ? y && Math.abs(y) * (Math.abs(x) + (y < 0 ? -ex : ex)) ** (y - 1) * ex
        : x > 2 * ex
          ? 2 * Math.abs(v) * ((Math.abs(y) * ex) / x + Math.abs(Math.log(x)) * ey)
          : Number.POSITIVE_INFINITY,
    // WGSL computes exp2(y * log2(x)), and log2 has an absolute error of 2^-21 between 0.5 and 2.
    deviceError: (x, y, v) => [
      20 + 8 * Math.abs(y * Math.log2(Math.abs(x) || 1)),
      x >= 0.5 && x <= 2 ? Math.abs(v * y) * Math.LN2 * 2 ** -21 : 0,
    ],
  },
  erf: { propagation: 'monotone', deviceError: (_x, _y, v) => [40, zeroIfExact(v, 1e-6)] },
  sign: { propagation: (x, ex) => (Math.abs(x) > ex ? 0 : UNDECIDED), deviceError: null },
  popcount: BIT_ROW,
  shift_left: BIT_ROW,
  shift_right: BIT_ROW,
  bit_and: BIT_ROW,
  bit_or: BIT_ROW,
  bit_xor: BIT_ROW,
}

/** Replaces a NaN bound by `UNDECIDED`. */
export const boundOrUndecided = (error: number): number => (Number.isNaN(error) ? UNDECIDED : error)

/** `precision`: fraction bits kept of an f32 factor. */
export function binary(e: Binary, a: Thunk, b: Thunk, precision?: number): Thunk {
  const { op } = e
  if (op === 'and' || op === 'or') {
    const absorbing = op === 'and' ? 0 : 1
    return () => {
      const x = a()
      const ex = last.error
      const y = b()
      const isDecided = (ex === 0 && x === absorbing) || (last.error === 0 && y === absorbing)
      last.error = isDecided || (ex === 0 && last.error === 0) ? 0 : UNDECIDED
      return op === 'and' ? Math.min(x, y) : Math.max(x, y)
    }
  }
  if (isCompare(op)) {
    const test = SIZE_OPERATORS[op]
    // The comparison of a value with itself recognises NaN, which rounding does not change.
    const isSelf = sameExpr(e.a, e.b)
    return () => {
      const x = a()
      const ex = last.error
      const y = b()
      const error = ex + last.error
      const decided =
        error === 0 ||
        (isSelf && error < UNDECIDED) ||
        Math.abs(x - y) > error ||
        (error < UNDECIDED && Number.isNaN(x + y))
      last.error = decided ? 0 : UNDECIDED
      return test(x, y)
    }
  }
  const f = arithmetic(op, e.dtype)
  const t = computeType(e.dtype)
  const exactError = isFloat(e.dtype) || op === 'min' || op === 'max' ? FLOAT_ERROR[op] : integerError(e)
  const errorOf =
    op === 'mul' && e.dtype === 'f32' && precision !== undefined
      ? truncateFactors(exactError, precision)
      : exactError
  return () => {
    const x = a()
    const ex = last.error
    const y = b()
    const v = f(x, y)
    last.error = boundOrUndecided(errorOf(x, ex, y, last.error, v, t))
    return v
  }
}

type ErrorOf = (x: number, ex: number, y: number, ey: number, v: number, t: Dtype) => number

const single = new Float32Array(1)
const word = new Uint32Array(single.buffer)

/** The error of products whose factors are truncated to a number of fraction bits. */
function truncateFactors(errorOf: ErrorOf, bits: number): ErrorOf {
  const droppedBits = (1 << (23 - bits)) - 1
  const lossOf = (x: number, ex: number): number => {
    single[0] = x
    return ex === 0 && (word[0]! & droppedBits) === 0 ? 0 : 2 ** -bits
  }
  return (x, ex, y, ey, v, t) => {
    const loss = lossOf(x, ex) + lossOf(y, ey)
    const error = errorOf(x, ex, y, ey, v, t)
    return loss === 0 || !Number.isFinite(v) ? error : error + loss * (1 + loss) * (Math.abs(v) + error)
  }
}

const extremeError =
  (f: (a: number, b: number) => number): ErrorOf =>
  (x, ex, y, ey, v) =>
    ex === 0 && ey === 0 ? 0 : binaryMonotoneError(f, x, ex, y, ey, v)

const FLOAT_ERROR: Readonly<Record<ArithOp, ErrorOf>> = {
  add: (_x, ex, _y, ey, v, t) => roundedError(v, ex + ey, t),
  sub: (_x, ex, _y, ey, v, t) => roundedError(v, ex + ey, t),
  mul: (x, ex, y, ey, v, t) => {
    if (ex === 0 && ey === 0)
      return t === 'f64' && Number.isFinite(v) && !isExactProduct(x, y, v)
        ? UNIT.f64 * Math.abs(v)
        : roundedError(v, 0, t)
    if (!Number.isFinite(v) && !(Math.abs(x) > ex && Math.abs(y) > ey)) return UNDECIDED
    return roundedError(v, Number.isFinite(v) ? Math.abs(x) * ey + Math.abs(y) * ex + ex * ey : ex + ey, t)
  },
  // Devices divide with an error of up to 2.5 units in the last place.
  div: (_x, ex, y, ey, v, t) => {
    if (ex === 0 && ey === 0) return roundedError(v, 0, t, 5)
    return Math.abs(y) > ey ? roundedError(v, (ex + Math.abs(v) * ey) / (Math.abs(y) - ey), t, 5) : UNDECIDED
  },
  mod: (x, ex, y, ey, v, t) => {
    const q = x / y
    const eq = (ex + Math.abs(q) * ey) / (Math.abs(y) - ey) + 6 * UNIT[t] * Math.abs(q)
    const k = Math.floor(q)
    if (!(Math.abs(y) > ey) || Math.floor(q - eq) !== k || Math.floor(q + eq) !== k) return UNDECIDED
    return roundedError(v, ex + Math.abs(k) * ey + 2 * UNIT[t] * (Math.abs(x) + Math.abs(k * y)), t)
  },
  quo: () => UNDECIDED,
  rem: () => UNDECIDED,
  min: extremeError(Math.min),
  max: extremeError(Math.max),
}

/**
 * Errors of integers that depend on rounded numbers: bounded for sums and products within the range, otherwise
 * undecided.
 */
function integerError({ op, dtype }: Binary): ErrorOf {
  const [low, high] = INT_RANGE[dtype as keyof typeof INT_RANGE] ?? [0, 1]
  return (x, ex, y, ey, v) => {
    if (ex === 0 && ey === 0) return 0
    const error =
      op === 'add' || op === 'sub'
        ? ex + ey
        : op === 'mul'
          ? Math.abs(x) * ey + Math.abs(y) * ex + ex * ey
          : UNDECIDED
    const exactError = op === 'mul' ? x * y : op === 'sub' ? x - y : x + y
    return exactError === v && v - error >= low && v + error <= high ? error : UNDECIDED
  }
}

export function cast(x: Thunk, from: Expr['dtype'], to: Expr['dtype']): Thunk {
  const f = convert(from, to)
  // Values between integers wrap, which is not monotone.
  const wraps = !isFloat(from) && !isFloat(to)
  return () => {
    const v = x()
    const y = f(v)
    const e = last.error
    if (to === 'bool') last.error = e > 0 && Math.abs(v) <= e ? UNDECIDED : 0
    else if (wraps) last.error = e === 0 || (f(v - e) === v - e && f(v + e) === v + e) ? e : UNDECIDED
    else last.error = isFloat(to) ? monotoneError(f, v, e, y) : stepError(f, v, e, y)
    return y
  }
}

export function call(e: Call, args: readonly Thunk[]): Thunk {
  const f = mathOf(e.fn)
  const { propagation, deviceError } = FUNCTION_ERRORS[e.fn]
  const t = computeType(e.dtype)
  const propagate = (x: number, ex: number, y: number, ey: number, v: number): number => {
    if (propagation === 'steady') return ex
    if (propagation === 'monotone') return monotoneError((z) => f(z, 0), x, ex, v)
    if (propagation === 'steps') return stepError((z) => f(z, 0), x, ex, v)
    return propagation === 'undecided' ? UNDECIDED : propagation(x, ex, y, ey, v)
  }
  const [first, second] = args
  return () => {
    const x = first!()
    const ex = last.error
    const y = second ? second() : 0
    const ey = second ? last.error : 0
    const v = f(x, y)
    let error = ex > 0 || ey > 0 ? propagate(x, ex, y, ey, v) : 0
    if (deviceError) {
      const [units, absolute] = deviceError(x, y, v)
      error = roundedError(v, boundOrUndecided(error) + absolute * (UNIT[t] / UNIT.f32), t, units)
    }
    last.error = boundOrUndecided(error)
    return v
  }
}
