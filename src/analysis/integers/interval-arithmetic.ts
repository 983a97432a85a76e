/**
 * Interval arithmetic: bounds of integer expressions, and whether each follows from facts. The ends of a range are
 * numbers (`interval.ts`), or expressions over sizes with constant bounds that hold for all sizes
 * (`symbolic-interval.ts`).
 */
import type { Expr } from '../../ir/expressions/expr.ts'
import { matcher } from '../../ir/expressions/patterns.ts'
import { SIZE_OPERATORS } from '../../ir/expressions/size-expressions.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { type ExprType, INT_RANGE, isFloat, isWord, scalarType } from '../../ir/values/dtype.ts'
import { type BinaryOp, MATH, type MathFn } from '../../ir/values/math.ts'
import { endsOfBits } from './bit-ranges.ts'

const [LOWEST, HIGHEST] = INT_RANGE.i32

/** A range, ends included. Each end follows from facts (`known`), or is that of the type, for example for data. */
export interface Range<E> {
  readonly lo: E
  readonly hi: E
  readonly knownLo: boolean
  readonly knownHi: boolean
}

/** Arithmetic on the ends of ranges. */
interface Ends<E, R extends Range<E>> {
  readonly range: (lo: E, hi: E, knownLo?: boolean, knownHi?: boolean) => R
  readonly constant: (value: number) => E
  readonly combine: (op: BinaryOp, a: E, b: E) => E
  readonly select: (cond: E, a: E, b: E) => E
  readonly same: (a: E, b: E) => boolean
  /** The least and the greatest value of an end, for any sizes. */
  readonly least: (e: E) => number
  readonly most: (e: E) => number
}

/** An end, and whether it follows from facts. */
interface Corner<E> {
  readonly end: E
  readonly known: boolean
}

export function intervalsOver<E, R extends Range<E>>(ends: Ends<E, R>) {
  const { range, constant, combine, same, least, most } = ends
  const [zero, one] = [constant(0), constant(1)]
  const lower = (a: E, b: E): E => combine('min', a, b)
  const upper = (a: E, b: E): E => combine('max', a, b)
  const negated = (e: E): E => combine('sub', zero, e)
  const shifted = (e: E, by: number): E => combine('add', e, constant(by))
  const between = (lo: number, hi: number, knownLo = true, knownHi = knownLo): R =>
    range(constant(lo), constant(hi), knownLo, knownHi)
  const point = (e: E): R => range(e, e)
  const isKnown = (x: R): boolean => x.knownLo && x.knownHi
  const isPoint = (x: R): boolean => isKnown(x) && same(x.lo, x.hi)
  const isFixed = (x: R): boolean => least(x.lo) === most(x.lo) && least(x.hi) === most(x.hi)
  const either = between(0, 1)

  /** Returns the range of a type, which is all that is known of data. */
  const wholeOf = (dtype: ExprType): R => {
    if (isFloat(dtype)) return between(-Infinity, Infinity, false)
    if (dtype === 'bool') return either
    const [lo, hi] = INT_RANGE[scalarType(dtype) as 'u32' | 'i8' | 'u8']
    return between(lo, hi, !isWord(dtype), !isWord(dtype) && dtype !== 'u32')
  }

  /**
   * Returns the bounds of `e` from those of its operands, in the order of `children`. `defined` returns the expression
   * that a name stands for.
   */
  const rangeOf = (e: Expr, operands: readonly R[], defined: (e: Expr) => Expr = (x) => x): R => {
    if (isFloat(e.dtype)) return wholeOf(e.dtype)
    const [a, b, c] = operands
    switch (e.kind) {
      case 'const':
        return between(e.value, e.value)
      case 'unary':
        if (e.op === 'not') return isPoint(a!) ? point(combine('eq', a!.lo, zero)) : either
        return range(negated(a!.hi), negated(a!.lo), a!.knownHi, a!.knownLo)
      case 'binary': {
        const by = e.op === 'add' ? addedBelowZero(defined(e.a), defined(e.b), defined) : 0
        if (by === 0) return binary(e.op, a!, b!)
        // A select adds c to negative values only: a remainder as `%` computes it.
        const lo = lower(zero, shifted(a!.lo, by))
        return range(lo, upper(constant(by - 1), a!.hi), a!.knownLo, a!.knownHi)
      }
      case 'select':
        return selected(a!, b!, c!)
      case 'cast':
        if (e.dtype === 'bool') return isPoint(a!) ? point(combine('ne', a!.lo, zero)) : either
        return least(a!.lo) === -Infinity ? wholeOf(e.dtype) : a!
      case 'call':
        return called(e.fn, e.dtype, a!, b)
      // A search returns its start, or a position up to its end.
      case 'search':
        return range(a!.lo, upper(a!.hi, b!.hi), a!.knownLo, a!.knownHi && b!.knownHi)
      default:
        return wholeOf(e.dtype)
    }
  }

  const selected = (cond: R, a: R, b: R): R => {
    if (least(cond.lo) > 0) return a
    if (most(cond.hi) === 0) return b
    const [knownLo, knownHi] = [a.knownLo && b.knownLo, a.knownHi && b.knownHi]
    if (!isPoint(cond)) return range(lower(a.lo, b.lo), upper(a.hi, b.hi), knownLo, knownHi)
    const pick = (x: E, y: E): E => (same(x, y) ? x : ends.select(cond.lo, x, y))
    return range(pick(a.lo, b.lo), pick(a.hi, b.hi), knownLo, knownHi)
  }

  const called = (fn: MathFn, dtype: ExprType, a: R, b: R | undefined): R => {
    if (fn === 'abs') {
      const positive = upper(zero, upper(a.lo, negated(a.hi)))
      return range(positive, upper(negated(a.lo), a.hi), true, isKnown(a))
    }
    if (fn === 'sign') return between(-1, 1)
    return MATH[fn].type === 'bits' ? ofBits(fn, a, b) : wholeOf(dtype)
  }

  /**
   * Returns the range of a bit operation. An end is known if it is not the end of the range of all words, or if the
   * result has no sign while the operand has one. Ends that depend on sizes are those for the greatest sizes, which
   * prove no overflow; a shift of such a range is a quotient.
   */
  const ofBits = (fn: MathFn, a: R, b: R | undefined): R => {
    const fixed = isFixed(a) && (!b || isFixed(b))
    const by = b && isPoint(b) && isFixed(b) ? least(b.lo) : -1
    if (!fixed && fn === 'shift_right' && least(a.lo) >= 0 && most(a.hi) <= HIGHEST && by >= 0 && by < 32) {
      const part = (e: E): E => combine('div', e, constant(2 ** by))
      return range(part(a.lo), part(a.hi), a.knownLo, a.knownHi)
    }
    const [lo, hi] = endsOfBits(fn, [least(a.lo), most(a.hi)], b && [least(b.lo), most(b.hi)])
    const knownHi = hi < HIGHEST || (lo >= 0 && least(a.lo) < 0)
    return between(lo, hi, lo > LOWEST && (fixed || lo >= 0), knownHi && fixed)
  }

  const binary = (op: BinaryOp, a: R, b: R): R => {
    const both = [a.knownLo && b.knownLo, a.knownHi && b.knownHi] as const
    switch (op) {
      case 'add':
        return range(combine(op, a.lo, b.lo), combine(op, a.hi, b.hi), ...both)
      case 'sub':
        return range(
          combine(op, a.lo, b.hi),
          combine(op, a.hi, b.lo),
          a.knownLo && b.knownHi,
          a.knownHi && b.knownLo,
        )
      case 'mul':
        return product(a, b)
      // One operand with a known bound bounds the result on one side, even if the other is unknown.
      case 'min':
        return range(lower(a.lo, b.lo), lower(a.hi, b.hi), both[0], a.knownHi || b.knownHi)
      case 'max':
        return range(upper(a.lo, b.lo), upper(a.hi, b.hi), a.knownLo || b.knownLo, both[1])
      case 'div':
      case 'quo':
        return quotient(op, a, b)
      case 'mod':
      case 'rem':
        return remainder(op, a, b)
      case 'eq':
      case 'ne': {
        if (isPoint(a) && isPoint(b)) return point(combine(op, a.lo, b.lo))
        const apart = most(a.hi) < least(b.lo) || most(b.hi) < least(a.lo)
        return apart ? point(constant(op === 'ne' ? 1 : 0)) : either
      }
      // Other comparisons are decided by the corners.
      default: {
        if (isPoint(a) && isPoint(b)) return point(combine(op, a.lo, b.lo))
        const values = [least(a.lo), most(a.hi)].flatMap((x) =>
          [least(b.lo), most(b.hi)].map((y) => SIZE_OPERATORS[op](x, y)),
        )
        return new Set(values).size === 1 ? point(constant(values[0]!)) : either
      }
    }
  }

  /** Returns the corner whose end `f` selects; an end of neither corner is known if both are. */
  const chosen =
    (f: (a: E, b: E) => E) =>
    (x: Corner<E>, y: Corner<E>): Corner<E> => {
      const end = f(x.end, y.end)
      const own = [x, y].filter((c) => same(c.end, end))
      return { end, known: own.length > 0 ? own.some((c) => c.known) : x.known && y.known }
    }
  const [first, last] = [chosen(lower), chosen(upper)]

  /** Returns the range of a product. Signs that hold for all sizes decide which corners are the ends. */
  const product = (a: R, b: R): R => {
    if (least(b.lo) < 0 && least(a.lo) >= 0) return product(b, a)
    const corner = (x: E, k: boolean, y: E, l: boolean): Corner<E> => ({
      end: combine('mul', x, y),
      known: (k && l) || (k && same(x, zero)) || (l && same(y, zero)),
    })
    const lowLow = corner(a.lo, a.knownLo, b.lo, b.knownLo)
    const lowHigh = corner(a.lo, a.knownLo, b.hi, b.knownHi)
    const highLow = corner(a.hi, a.knownHi, b.lo, b.knownLo)
    const highHigh = corner(a.hi, a.knownHi, b.hi, b.knownHi)
    const all = [lowLow, lowHigh, highLow, highHigh]
    let [lo, hi] = [all.reduce(first), all.reduce(last)]
    if (least(b.lo) >= 0) {
      lo = least(a.lo) >= 0 ? lowLow : most(a.lo) <= 0 ? lowHigh : first(lowLow, lowHigh)
      hi = least(a.hi) >= 0 ? highHigh : most(a.hi) <= 0 ? highLow : last(highLow, highHigh)
    }
    return range(lo.end, hi.end, lo.known, hi.known)
  }

  /** Returns the range of a quotient, which is 0 for the divisor 0. */
  const quotient = (op: 'div' | 'quo', a: R, b: R): R => {
    if (isPoint(a) && isPoint(b)) return point(combine(op, a.lo, b.lo))
    const known = isKnown(a) && isKnown(b)
    if (least(b.lo) < 0) {
      const bound = upper(upper(negated(a.lo), upper(a.hi, zero)), negated(a.hi))
      return range(negated(bound), bound, known)
    }
    const [from, to] = [upper(one, b.lo), upper(one, b.hi)]
    const shrunk = (x: E, lowest: boolean): E => {
      if (least(x) >= 0 || most(x) <= 0) return combine(op, x, least(x) >= 0 === lowest ? to : from)
      return (lowest ? lower : upper)(combine(op, x, from), combine(op, x, to))
    }
    const [lo, hi] = [shrunk(a.lo, true), shrunk(a.hi, false)]
    // With a positive divisor, a known end of the dividend gives a known end of the quotient.
    const [knownLo, knownHi] = isKnown(b)
      ? [a.knownLo, a.knownHi]
      : [known || (a.knownLo && least(a.lo) >= 0), known]
    if (least(b.lo) > 0) return range(lo, hi, knownLo, knownHi)
    return range(lower(zero, lo), upper(zero, hi), knownLo, knownHi)
  }

  /**
   * Returns the range of a remainder. It is nearer to 0 than the divisor, and has the sign of the divisor (`mod`) or of
   * the dividend (`rem`).
   */
  const remainder = (op: 'mod' | 'rem', a: R, b: R): R => {
    const known = isKnown(a) && isKnown(b)
    if (same(a.lo, a.hi) && same(b.lo, b.hi)) {
      const value = combine(op, a.lo, b.lo)
      return range(value, value, known)
    }
    const lessThan = (e: E): E => upper(zero, shifted(e, -1))
    if (least(b.lo) >= 0 && least(a.lo) >= 0) {
      if (least(b.lo) > most(a.hi)) return a
      return range(zero, lower(a.hi, lessThan(b.hi)), true, a.knownHi || b.knownHi)
    }
    if (op === 'mod') {
      const lo = lower(zero, shifted(b.lo, 1))
      return range(lo, lessThan(b.hi), least(b.lo) >= 0 || b.knownLo, b.knownHi)
    }
    const bound = upper(lessThan(upper(b.lo, negated(b.lo))), lessThan(upper(b.hi, negated(b.hi))))
    return range(lower(zero, upper(a.lo, negated(bound))), upper(zero, lower(a.hi, bound)), isKnown(b))
  }

  return { wholeOf, rangeOf, binary }
}

/** Returns c of `x + select(x < 0, c, 0)`; 0 for other sums. */
function addedBelowZero(x: Expr, e: Expr, defined: (e: Expr) => Expr): number {
  const added = addition(e)
  const below = added && belowZero(defined(added.x!))
  return below && sameExpr(defined(below.x!), x) ? added.c.value : 0
}

const addition = matcher(['select', 'x', 'c', 0])
const belowZero = matcher(['lt', 'x', 0])
