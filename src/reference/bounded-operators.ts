/** Operators and functions on values with error bounds: each stores the bound of its result in `last.error`. */
import { computeType, INT_RANGE, isFloat } from '../ir/dtype.ts'
import type { Binary, Call, Expr } from '../ir/expr.ts'
import { arithmetic, COMPARE, convert, mathOf } from '../ir/numeric.ts'
import { isCompare } from '../ir/ops.ts'
import type { Thunk } from './cells.ts'
import {
  isExactProduct,
  last,
  settled,
  through,
  throughBoth,
  throughSteps,
  UNDECIDED,
  UNIT,
} from './error.ts'
import { FUNCTION_ERRORS } from './functions.ts'

/** Replaces a NaN bound by `UNDECIDED`. */
export const known = (error: number): number => (Number.isNaN(error) ? UNDECIDED : error)

/** `precision`: fraction bits kept of an f32 factor. */
export function binary(e: Binary, a: Thunk, b: Thunk, precision?: number): Thunk {
  const { op } = e
  if (op === 'and' || op === 'or') {
    const decides = op === 'and' ? 0 : 1
    return () => {
      const x = a()
      const ex = last.error
      const y = b()
      const sure = (ex === 0 && x === decides) || (last.error === 0 && y === decides)
      last.error = sure || (ex === 0 && last.error === 0) ? 0 : UNDECIDED
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
  const exact = isFloat(e.dtype) || op === 'min' || op === 'max' ? FLOAT_ERROR[op] : intError(e)
  const errorOf =
    op === 'mul' && e.dtype === 'f32' && precision !== undefined ? truncated(exact, precision) : exact
  return () => {
    const x = a()
    const ex = last.error
    const y = b()
    const v = f(x, y)
    last.error = known(errorOf(x, ex, y, last.error, v, t))
    return v
  }
}

type ErrorOf = (x: number, ex: number, y: number, ey: number, v: number, t: Expr['dtype']) => number

const single = new Float32Array(1)
const word = new Uint32Array(single.buffer)

/** The error of products whose factors are truncated to a number of fraction bits. */
function truncated(errorOf: ErrorOf, bits: number): ErrorOf {
  const rest = (1 << (23 - bits)) - 1
  const loses = (x: number, ex: number): number => {
    single[0] = x
    return ex === 0 && (word[0]! & rest) === 0 ? 0 : 2 ** -bits
  }
  return (x, ex, y, ey, v, t) => {
    const lost = loses(x, ex) + loses(y, ey)
    const error = errorOf(x, ex, y, ey, v, t)
    return lost === 0 || !Number.isFinite(v) ? error : error + lost * (1 + lost) * (Math.abs(v) + error)
  }
}

const extreme =
  (f: (a: number, b: number) => number): ErrorOf =>
  (x, ex, y, ey, v) =>
    ex === 0 && ey === 0 ? 0 : throughBoth(f, x, ex, y, ey, v)

const FLOAT_ERROR: Readonly<Record<Exclude<Binary['op'], 'and' | 'or' | keyof typeof COMPARE>, ErrorOf>> = {
  add: (_x, ex, _y, ey, v, t) => settled(v, ex + ey, t),
  sub: (_x, ex, _y, ey, v, t) => settled(v, ex + ey, t),
  mul: (x, ex, y, ey, v, t) => {
    if (ex === 0 && ey === 0)
      return t === 'f64' && Number.isFinite(v) && !isExactProduct(x, y, v)
        ? UNIT.f64 * Math.abs(v)
        : settled(v, 0, t)
    if (!Number.isFinite(v) && !(Math.abs(x) > ex && Math.abs(y) > ey)) return UNDECIDED
    return settled(v, Number.isFinite(v) ? Math.abs(x) * ey + Math.abs(y) * ex + ex * ey : ex + ey, t)
  },
  // Devices divide with an error of up to 2.5 units in the last place.
  div: (_x, ex, y, ey, v, t) => {
    if (ex === 0 && ey === 0) return settled(v, 0, t, 5)
    return Math.abs(y) > ey ? settled(v, (ex + Math.abs(v) * ey) / (Math.abs(y) - ey), t, 5) : UNDECIDED
  },
  mod: (x, ex, y, ey, v, t) => {
    const q = x / y
    const eq = (ex + Math.abs(q) * ey) / (Math.abs(y) - ey) + 6 * UNIT[t] * Math.abs(q)
    const k = Math.floor(q)
    if (!(Math.abs(y) > ey) || Math.floor(q - eq) !== k || Math.floor(q + eq) !== k) return UNDECIDED
    return settled(v, ex + Math.abs(k) * ey + 2 * UNIT[t] * (Math.abs(x) + Math.abs(k * y)), t)
  },
  quo: () => UNDECIDED,
  rem: () => UNDECIDED,
  min: extreme(Math.min),
  max: extreme(Math.max),
}

/**
 * Errors of integers that depend on rounded numbers: bounded for sums and products within the range, otherwise
 * undecided.
 */
function intError({ op, dtype }: Binary): ErrorOf {
  const [low, high] = INT_RANGE[dtype as keyof typeof INT_RANGE] ?? [0, 1]
  return (x, ex, y, ey, v) => {
    if (ex === 0 && ey === 0) return 0
    const error =
      op === 'add' || op === 'sub'
        ? ex + ey
        : op === 'mul'
          ? Math.abs(x) * ey + Math.abs(y) * ex + ex * ey
          : UNDECIDED
    const exact = op === 'mul' ? x * y : op === 'sub' ? x - y : x + y
    return exact === v && v - error >= low && v + error <= high ? error : UNDECIDED
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
    else last.error = isFloat(to) ? through(f, v, e, y) : throughSteps(f, v, e, y)
    return y
  }
}

export function call(e: Call, args: readonly Thunk[]): Thunk {
  const f = mathOf(e.fn)
  const { carries, own } = FUNCTION_ERRORS[e.fn]
  const t = computeType(e.dtype)
  const carried = (x: number, ex: number, y: number, ey: number, v: number): number => {
    if (carries === 'steady') return ex
    if (carries === 'monotone') return through((z) => f(z, 0), x, ex, v)
    if (carries === 'steps') return throughSteps((z) => f(z, 0), x, ex, v)
    return carries === 'undecided' ? UNDECIDED : carries(x, ex, y, ey, v)
  }
  const [first, second] = args
  return () => {
    const x = first!()
    const ex = last.error
    const y = second ? second() : 0
    const ey = second ? last.error : 0
    const v = f(x, y)
    let error = ex > 0 || ey > 0 ? carried(x, ex, y, ey, v) : 0
    if (own) {
      const [units, absolute] = own(x, y, v)
      error = settled(v, known(error) + absolute * (UNIT[t] / UNIT.f32), t, units)
    }
    last.error = known(error)
    return v
  }
}
