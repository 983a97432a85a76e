/** Symbolic ends of ranges: simplified integer expressions over sizes, with constant bounds that hold for all sizes. */
import { SIZE_OPERATORS, type SizeExpr } from '../../ir/expressions/size-expressions.ts'
import type { BinaryOp } from '../../ir/values/math.ts'
import { binaryInterval, interval } from './interval.ts'

/** An expression over sizes, and its least and greatest value for any sizes. */
export interface End {
  readonly expr: SizeExpr
  readonly key: string
  readonly lo: number
  readonly hi: number
}

export const constantEnd = (value: number): End => ({
  expr: value + 0,
  key: String(value + 0),
  lo: value,
  hi: value,
})
/** A size or an integer scalar, with the bounds of its values. */
export const namedEnd = (name: string, lo: number, hi: number): End => ({ expr: name, key: name, lo, hi })

const isConstant = (e: End): boolean => e.lo === e.hi
export const ZERO = constantEnd(0)

/** Returns `a op b`, simplified. */
export function end(op: BinaryOp, a: End, b: End): End {
  if (isConstant(a) && isConstant(b)) return constantEnd(SIZE_OPERATORS[op]!(a.lo, b.lo))
  switch (op) {
    case 'add':
      if (isConstant(a)) return end(op, b, a)
      if (isConstant(b)) return plus(a, b.lo)
      break
    case 'sub':
      if (isConstant(b)) return plus(a, -b.lo)
      if (a.key === b.key) return ZERO
      break
    case 'mul':
      if (isConstant(a)) return end(op, b, a)
      if (isConstant(b) && b.lo === 0) return ZERO
      if (isConstant(b) && b.lo === 1) return a
      break
    case 'div':
    case 'quo':
      if (isConstant(b) && b.lo === 1) return a
      break
    case 'min':
    case 'max': {
      if (a.key === b.key) return a
      const [low, high] = op === 'min' ? [a, b] : [b, a]
      if (a.hi <= b.lo) return low
      if (b.hi <= a.lo) return high
    }
  }
  const { lo, hi } = binaryInterval(op, interval(a.lo, a.hi), interval(b.lo, b.hi))
  return node(op, [a, b], lo, hi)
}

function plus(a: End, by: number): End {
  if (by === 0) return a
  const { expr } = a
  if (typeof expr === 'object' && expr[0] === 'add' && typeof expr[2] === 'number') {
    const sum = expr[2] + by
    const base = { expr: expr[1]!, key: keyOfEnd(expr[1]!), lo: a.lo - expr[2], hi: a.hi - expr[2] }
    return plus(base, sum)
  }
  return node('add', [a, constantEnd(by)], a.lo + by, a.hi + by)
}

const keyOfEnd = (e: SizeExpr): string =>
  typeof e === 'object' ? `(${e.map(keyOfPart).join(' ')})` : String(e)
const keyOfPart = (e: SizeExpr): string => keyOfEnd(e)

export const node = (op: string, operands: readonly End[], lo: number, hi: number): End => ({
  expr: [op, ...operands.map((x) => x.expr)],
  key: `(${op} ${operands.map((x) => x.key).join(' ')})`,
  lo,
  hi,
})

/** The same end, with values that are at least `lo` because a condition implies it. */
export const atLeast = (e: End, lo: number): End => (e.lo >= lo ? e : { ...e, lo, hi: Math.max(e.hi, lo) })
