/**
 * Interval arithmetic with symbolic ends: bounds of integer expressions as expressions over sizes, so that a plan can
 * state them as data. Each end also has constant bounds that hold for all sizes, by which cases are decided.
 */
import type { Expr } from '../../ir/expressions/expr.ts'
import { type ExprType, isFloat } from '../../ir/values/dtype.ts'
import { type BinaryOp, isCompare, MATH, type MathFn } from '../../ir/values/math.ts'
import { endsOfBits } from './bit-ranges.ts'
import {
  addedBelowZero,
  binaryInterval,
  HIGHEST,
  interval,
  LOWEST,
  wholeOf as numbersOf,
} from './interval.ts'
import { constantEnd, type End, end, isConstant, node, ONE, plus, ZERO } from './symbolic-ends.ts'

/** The ends of a range, and whether each follows from facts; otherwise it is that of the type. */
export interface SymbolicInterval {
  readonly lo: End
  readonly hi: End
  readonly knownLo: boolean
  readonly knownHi: boolean
}

export const symbolic = (lo: End, hi: End, knownLo = true, knownHi = knownLo): SymbolicInterval => ({
  lo,
  hi,
  knownLo,
  knownHi,
})
const between = (lo: number, hi: number, knownLo = true, knownHi = knownLo): SymbolicInterval =>
  symbolic(constantEnd(lo), constantEnd(hi), knownLo, knownHi)
const point = (e: End): SymbolicInterval => symbolic(e, e)
const isPoint = (x: SymbolicInterval): boolean => x.lo.key === x.hi.key && x.knownLo && x.knownHi
const isKnown = (x: SymbolicInterval): boolean => x.knownLo && x.knownHi

export const ANY = between(LOWEST, HIGHEST, false)
export const NATURAL = between(0, HIGHEST, true, false)
const EITHER = between(0, 1)

/** Returns the range of a type. */
export function wholeOf(dtype: ExprType): SymbolicInterval {
  const { lo, hi, knownLo, knownHi } = numbersOf(dtype)
  return between(lo, hi, knownLo, knownHi)
}

/** True if both ends are within these numbers for all sizes. */
export const isWithin = (x: SymbolicInterval, lo: number, hi: number): boolean =>
  x.lo.lo >= lo && x.hi.hi <= hi

/** Returns the bounds of `e` from those of its operands. `defined` returns the expression that a name stands for. */
export function symbolicIntervalOf(
  e: Expr,
  operands: readonly SymbolicInterval[],
  defined: (e: Expr) => Expr,
): SymbolicInterval {
  if (isFloat(e.dtype)) return wholeOf(e.dtype)
  const [a, b, c] = operands
  switch (e.kind) {
    case 'const':
      return between(e.value, e.value)
    case 'unary':
      if (e.op === 'not') return isPoint(a!) ? point(end('eq', a!.lo, ZERO)) : EITHER
      return symbolic(end('sub', ZERO, a!.hi), end('sub', ZERO, a!.lo), a!.knownHi, a!.knownLo)
    case 'binary': {
      const by = e.op === 'add' ? addedBelowZero(defined(e.a), defined(e.b), defined) : 0
      if (by > 0) {
        // A select adds c to negative values only: a remainder as `%` computes it.
        const lo = end('min', ZERO, plus(a!.lo, by))
        return symbolic(lo, end('max', constantEnd(by - 1), a!.hi), a!.knownLo, a!.knownHi)
      }
      return binaryOf(e.op, a!, b!)
    }
    case 'select':
      return selected(a!, b!, c!)
    case 'cast':
      if (e.dtype === 'bool') return isPoint(a!) ? point(end('ne', a!.lo, ZERO)) : EITHER
      return Number.isFinite(a!.lo.lo) || !isConstant(a!.lo) ? a! : wholeOf(e.dtype)
    case 'call':
      return callOf(e.fn, e.dtype, a!, b)
    // A search returns its start, or a position up to its end.
    case 'search':
      return symbolic(a!.lo, end('max', a!.hi, b!.hi), a!.knownLo, a!.knownHi && b!.knownHi)
    default:
      return wholeOf(e.dtype)
  }
}

function selected(cond: SymbolicInterval, a: SymbolicInterval, b: SymbolicInterval): SymbolicInterval {
  if (cond.lo.lo > 0) return a
  if (cond.hi.hi === 0) return b
  const [knownLo, knownHi] = [a.knownLo && b.knownLo, a.knownHi && b.knownHi]
  if (!isPoint(cond)) return symbolic(end('min', a.lo, b.lo), end('max', a.hi, b.hi), knownLo, knownHi)
  const pick = (x: End, y: End): End =>
    x.key === y.key ? x : node('select', [cond.lo, x, y], Math.min(x.lo, y.lo), Math.max(x.hi, y.hi))
  return symbolic(pick(a.lo, b.lo), pick(a.hi, b.hi), knownLo, knownHi)
}

function callOf(
  fn: MathFn,
  dtype: ExprType,
  a: SymbolicInterval,
  b: SymbolicInterval | undefined,
): SymbolicInterval {
  const negated = end('sub', ZERO, a.hi)
  if (fn === 'abs')
    return symbolic(
      end('max', ZERO, end('max', a.lo, negated)),
      end('max', end('sub', ZERO, a.lo), a.hi),
      true,
      isKnown(a),
    )
  if (fn === 'sign') return between(-1, 1)
  if (MATH[fn].type !== 'bits') return wholeOf(dtype)
  const by = b && isConstant(b.lo) && isPoint(b) ? b.lo.lo : undefined
  if (fn === 'shift_right' && a.lo.lo >= 0 && a.hi.hi <= HIGHEST && by !== undefined && by >= 0 && by < 32) {
    const divisor = constantEnd(2 ** by)
    return symbolic(end('div', a.lo, divisor), end('div', a.hi, divisor), a.knownLo, a.knownHi)
  }
  const [lo, hi] = endsOfBits(fn, [a.lo.lo, a.hi.hi], b && [b.lo.lo, b.hi.hi])
  // Ends that depend on sizes are those for the greatest sizes: they prove no overflow.
  const isFixed = [a, ...(b ? [b] : [])].every((x) => isConstant(x.lo) && isConstant(x.hi))
  const knownHi = hi < HIGHEST || (lo >= 0 && a.lo.lo < 0)
  return between(lo, hi, lo > LOWEST && (isFixed || lo >= 0), knownHi && isFixed)
}

function binaryOf(op: BinaryOp, a: SymbolicInterval, b: SymbolicInterval): SymbolicInterval {
  const known = isKnown(a) && isKnown(b)
  switch (op) {
    case 'add':
      return symbolic(
        end(op, a.lo, b.lo),
        end(op, a.hi, b.hi),
        a.knownLo && b.knownLo,
        a.knownHi && b.knownHi,
      )
    case 'sub':
      return symbolic(
        end(op, a.lo, b.hi),
        end(op, a.hi, b.lo),
        a.knownLo && b.knownHi,
        a.knownHi && b.knownLo,
      )
    case 'mul':
      return product(a, b)
    // One operand with a known bound bounds the result on one side, even if the other is unknown.
    case 'min':
    case 'max': {
      const [lo, hi] = [end(op, a.lo, b.lo), end(op, a.hi, b.hi)]
      return op === 'min'
        ? symbolic(lo, hi, a.knownLo && b.knownLo, a.knownHi || b.knownHi)
        : symbolic(lo, hi, a.knownLo || b.knownLo, a.knownHi && b.knownHi)
    }
    case 'div':
    case 'quo':
      return quotient(op, a, b, known)
    case 'mod':
    case 'rem':
      return remainder(op, a, b, known)
    default: {
      if (isPoint(a) && isPoint(b)) return point(end(op, a.lo, b.lo))
      if (!isCompare(op)) return EITHER
      const { lo, hi } = binaryInterval(op, interval(a.lo.lo, a.hi.hi), interval(b.lo.lo, b.hi.hi))
      return between(lo, hi)
    }
  }
}

type Corner = readonly [value: End, known: boolean]

/** Returns the range of a product. Signs that hold for all sizes decide which corners are the ends. */
function product(a: SymbolicInterval, b: SymbolicInterval): SymbolicInterval {
  if (b.lo.lo < 0 && a.lo.lo >= 0) return product(b, a)
  const corner = (x: End, k: boolean, y: End, l: boolean): Corner => [
    end('mul', x, y),
    (k && l) || (x.key === '0' && k) || (y.key === '0' && l),
  ]
  const lowLow = corner(a.lo, a.knownLo, b.lo, b.knownLo)
  const lowHigh = corner(a.lo, a.knownLo, b.hi, b.knownHi)
  const highLow = corner(a.hi, a.knownHi, b.lo, b.knownLo)
  const highHigh = corner(a.hi, a.knownHi, b.hi, b.knownHi)
  if (b.lo.lo >= 0) {
    const lo = a.lo.lo >= 0 ? lowLow : a.lo.hi <= 0 ? lowHigh : least(lowLow, lowHigh)
    const hi = a.hi.lo >= 0 ? highHigh : a.hi.hi <= 0 ? highLow : greatest(highLow, highHigh)
    return symbolic(lo[0], hi[0], lo[1], hi[1])
  }
  const corners = [lowLow, lowHigh, highLow, highHigh]
  const [lo, hi] = [corners.reduce(least), corners.reduce(greatest)]
  return symbolic(lo[0], hi[0], lo[1], hi[1])
}

const least = (x: Corner, y: Corner): Corner => [end('min', x[0], y[0]), x[1] && y[1]]
const greatest = (x: Corner, y: Corner): Corner => [end('max', x[0], y[0]), x[1] && y[1]]

function quotient(
  op: 'div' | 'quo',
  a: SymbolicInterval,
  b: SymbolicInterval,
  known: boolean,
): SymbolicInterval {
  if (isPoint(a) && isPoint(b)) return point(end(op, a.lo, b.lo))
  if (b.lo.lo < 0) {
    const most = end('max', end('sub', ZERO, a.lo), end('max', a.hi, ZERO))
    const bound = end('max', most, end('sub', ZERO, a.hi))
    return symbolic(end('sub', ZERO, bound), bound, known)
  }
  const from = end('max', ONE, b.lo)
  const to = end('max', ONE, b.hi)
  const shrunk = (x: End, lowest: boolean): End => {
    const divided = x.lo >= 0 === lowest ? end(op, x, to) : end(op, x, from)
    return x.lo >= 0 || x.hi <= 0 ? divided : end(lowest ? 'min' : 'max', end(op, x, from), end(op, x, to))
  }
  const [lo, hi] = [shrunk(a.lo, true), shrunk(a.hi, false)]
  const [knownLo, knownHi] = isKnown(b)
    ? [a.knownLo, a.knownHi]
    : [known || (a.knownLo && a.lo.lo >= 0), known]
  if (b.lo.lo > 0) return symbolic(lo, hi, knownLo, knownHi)
  // The quotient by 0 is 0.
  return symbolic(end('min', ZERO, lo), end('max', ZERO, hi), knownLo, knownHi)
}

function remainder(
  op: 'mod' | 'rem',
  a: SymbolicInterval,
  b: SymbolicInterval,
  known: boolean,
): SymbolicInterval {
  if (isPoint(a) && isPoint(b)) return symbolic(end(op, a.lo, b.lo), end(op, a.lo, b.lo), known)
  const lessThan = (e: End): End => end('max', ZERO, plus(e, -1))
  if (b.lo.lo >= 0 && a.lo.lo >= 0) {
    if (b.lo.lo > a.hi.hi) return a
    return symbolic(ZERO, end('min', a.hi, lessThan(b.hi)), true, a.knownHi || b.knownHi)
  }
  if (op === 'mod')
    return symbolic(end('min', ZERO, plus(b.lo, 1)), lessThan(b.hi), b.lo.lo >= 0 || b.knownLo, b.knownHi)
  const most = end(
    'max',
    lessThan(end('max', b.lo, end('sub', ZERO, b.lo))),
    lessThan(end('max', b.hi, end('sub', ZERO, b.hi))),
  )
  return symbolic(
    end('min', ZERO, end('max', a.lo, end('sub', ZERO, most))),
    end('max', ZERO, end('min', a.hi, most)),
    isKnown(b),
  )
}
