/** Operators and functions on values with error bounds: each stores the bound of its result in `last.error`. */

import type { Binary, Call, Expr } from '../../ir/expressions/expr.ts'
import { computeType, type Dtype, INT_RANGE, isFloat } from '../../ir/values/dtype.ts'
import { isCompare } from '../../ir/values/math.ts'
import { arithmetic, COMPARE, convert, mathOf } from '../../ir/values/numeric.ts'
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
import { FUNCTION_ERRORS } from './functions.ts'

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
    const test = COMPARE[op]
    return () => {
      const x = a()
      const ex = last.error
      const y = b()
      const error = ex + last.error
      const decided = error === 0 || Math.abs(x - y) > error || (error < UNDECIDED && Number.isNaN(x + y))
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

const FLOAT_ERROR: Readonly<Record<Exclude<Binary['op'], 'and' | 'or' | keyof typeof COMPARE>, ErrorOf>> = {
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
