/** Bounds of integer expressions, to know where 32 bits hold every result. */
import { isFloat } from '../../ir/dtype.ts'
import type { Expr } from '../../ir/expr.ts'
import type { BinaryOp } from '../../ir/ops.ts'

export interface Interval {
  readonly lo: number
  readonly hi: number
  /** Whether all of it fits an i32; reals always do. */
  readonly fits: boolean
}

const LOWEST = -(2 ** 31)
const HIGHEST = 2 ** 31 - 1
const make = (lo: number, hi: number): Interval => ({ lo, hi, fits: lo >= LOWEST && hi <= HIGHEST })
/** What is computed in 32 bits, or checked to be. */
const ANY = make(LOWEST, HIGHEST)

/** Bounds of `e` from those of its operands; `range` knows variables. */
export function intervalOf(
  e: Expr,
  operands: readonly Interval[],
  range: (name: string) => readonly [number, number] | undefined,
): Interval {
  if (isFloat(e.dtype)) return { lo: -Infinity, hi: Infinity, fits: true }
  const [a, b, c] = operands
  switch (e.kind) {
    case 'const':
      return make(e.value, e.value)
    case 'var': {
      const r = range(e.name)
      return r ? make(r[0], r[1]) : ANY
    }
    case 'unary':
      return e.op === 'neg' ? make(-a!.hi, -a!.lo) : make(0, 1)
    case 'binary':
      return ofBinary(e.op, a!, b!)
    case 'select':
      return make(Math.min(b!.lo, c!.lo), Math.max(b!.hi, c!.hi))
    case 'cast':
      return Number.isFinite(a!.lo) ? a! : { lo: LOWEST, hi: HIGHEST, fits: false }
    case 'call':
      return e.fn === 'abs' ? make(0, Math.max(-a!.lo, a!.hi)) : ANY
    default:
      return ANY
  }
}

function ofBinary(op: BinaryOp, a: Interval, b: Interval): Interval {
  switch (op) {
    case 'add':
      return make(a.lo + b.lo, a.hi + b.hi)
    case 'sub':
      return make(a.lo - b.hi, a.hi - b.lo)
    case 'mul': {
      const corners = [a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi]
      return make(Math.min(...corners), Math.max(...corners))
    }
    case 'min':
      return make(Math.min(a.lo, b.lo), Math.min(a.hi, b.hi))
    case 'max':
      return make(Math.max(a.lo, b.lo), Math.max(a.hi, b.hi))
    case 'div':
    case 'quo': {
      const most = Math.max(Math.abs(a.lo), Math.abs(a.hi))
      if (a.lo >= 0 && b.lo > 0) return make(0, a.hi)
      return make(-most, most)
    }
    case 'mod':
    case 'rem': {
      if (a.lo >= 0 && b.lo > 0) return make(0, Math.min(a.hi, b.hi - 1))
      const most = Math.max(Math.abs(b.lo), Math.abs(b.hi), Math.abs(a.lo), Math.abs(a.hi))
      return make(-most, most)
    }
    default:
      return make(0, 1)
  }
}
