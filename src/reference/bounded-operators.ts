/** Operators and functions on values with error bounds: each leaves the bound of its result in `last.error`. */
import { computeType, INT_RANGE, isFloat } from '../ir/dtype.ts'
import type { Binary, Call, Expr } from '../ir/expr.ts'
import { arithmetic, COMPARE, convert, mathOf } from '../ir/numeric.ts'
import { isCompare, type MathFn } from '../ir/ops.ts'
import { last, settled, through, UNIT } from './error.ts'
import type { Thunk } from './scope.ts'

const UNDECIDED = Number.POSITIVE_INFINITY

/** A bound that is no number says nothing. */
export const known = (error: number): number => (Number.isNaN(error) ? UNDECIDED : error)

export function binary(e: Binary, a: Thunk, b: Thunk): Thunk {
  const { op } = e
  if (op === 'and' || op === 'or') {
    const decides = op === 'and' ? 0 : 1
    return () => {
      const x = a()
      const ex = last.error
      const y = b()
      const sure = (ex === 0 && x === decides) || (last.error === 0 && y === decides)
      last.error = sure || (ex === 0 && last.error === 0) ? 0 : 1
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
      last.error = decided ? 0 : 1
      return test(x, y)
    }
  }
  const f = arithmetic(op, e.dtype)
  const t = computeType(e.dtype)
  const errorOf = isFloat(e.dtype) || op === 'min' || op === 'max' ? FLOAT_ERROR[op] : intError(e)
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

const extreme =
  (f: (a: number, b: number) => number): ErrorOf =>
  (x, ex, y, ey, v) =>
    ex === 0 && ey === 0 ? 0 : Math.max(f(x + ex, y + ey) - v, v - f(x - ex, y - ey))

const FLOAT_ERROR: Readonly<Record<Exclude<Binary['op'], 'and' | 'or' | keyof typeof COMPARE>, ErrorOf>> = {
  add: (_x, ex, _y, ey, v, t) => settled(v, ex + ey, t),
  sub: (_x, ex, _y, ey, v, t) => settled(v, ex + ey, t),
  mul: (x, ex, y, ey, v, t) => {
    if (ex === 0 && ey === 0) return settled(v, 0, t)
    if (!Number.isFinite(v) && !(Math.abs(x) > ex && Math.abs(y) > ey)) return UNDECIDED
    return settled(v, Number.isFinite(v) ? Math.abs(x) * ey + Math.abs(y) * ex + ex * ey : ex + ey, t)
  },
  // Devices divide to 2.5 units in the last place.
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

/** Integers that came from rounded numbers: sums and products within the range, anything else is undecided. */
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
  // Between integers values wrap, which is no function that never falls.
  const wraps = !isFloat(from) && !isFloat(to)
  return () => {
    const v = x()
    const y = f(v)
    const e = last.error
    if (to === 'bool') last.error = e > 0 && Math.abs(v) <= e ? 1 : 0
    else if (wraps) last.error = e === 0 || (f(v - e) === v - e && f(v + e) === v + e) ? e : UNDECIDED
    else last.error = through(f, v, e, y)
    return y
  }
}

/** Errors of devices' functions: half units in the last place, and what is added to that in f32 (WGSL, section 15.7.4). */
const OWN: Partial<
  Record<MathFn, (x: number, y: number, v: number) => readonly [units: number, absolute: number]>
> = {
  exp: (x) => [6 + 4 * Math.abs(x), 0],
  log: () => [6, 2 ** -21],
  sqrt: () => [10, 0],
  rsqrt: () => [4, 0],
  sin: (x) => [4, 2 ** -11 + 2 ** -20 * Math.abs(x)],
  cos: (x) => [4, 2 ** -11 + 2 ** -20 * Math.abs(x)],
  tanh: () => [40, 1e-5],
  sigmoid: (x) => [20 + 4 * Math.abs(x), 0],
  pow: (x, y) => [20 + 8 * Math.abs(y * Math.log2(Math.abs(x) || 1)), 0],
  erf: () => [40, 1e-6],
}

/** Those that never fall; `rsqrt` never rises. */
const MONOTONE: ReadonlySet<MathFn> = new Set([
  'exp',
  'log',
  'sqrt',
  'rsqrt',
  'tanh',
  'sigmoid',
  'erf',
  'floor',
  'ceil',
  'round',
  'sign',
])

export function call(e: Call, args: readonly Thunk[]): Thunk {
  const f = mathOf(e.fn)
  const own = OWN[e.fn]
  const t = computeType(e.dtype)
  const monotone = MONOTONE.has(e.fn)
  const steady = e.fn === 'sin' || e.fn === 'cos' || e.fn === 'abs'
  const [first, second] = args
  return () => {
    const x = first!()
    const ex = last.error
    const y = second ? second() : 0
    const ey = second ? last.error : 0
    const v = f(x, y)
    let error = 0
    if (ex > 0 || ey > 0) {
      if (steady) error = ex
      else if (monotone) error = through((z) => f(z, 0), x, ex, v)
      else if (e.fn === 'pow' && x > 2 * ex)
        error = 2 * Math.abs(v) * ((Math.abs(y) * ex) / x + Math.abs(Math.log(x)) * ey)
      else error = UNDECIDED
    }
    if (own) {
      const [units, absolute] = own(x, y, v)
      const scale = UNIT[t] / UNIT.f32
      error = settled(v, known(error) + (v === 0 && e.fn !== 'sin' ? 0 : absolute * scale), t, units)
    }
    last.error = known(error)
    return v
  }
}
