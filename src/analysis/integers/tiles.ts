/** Tiles: loops over `ceildiv(n, c)` tiles of c elements, and whether sums of such loops cover 0..n. */
import { add, ceildiv, div, type Expr, int, mul } from '../../ir/expressions/expr.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { sameSum } from './linear.ts'
import { type Digit, mixedRadix, strideOf } from './mixed-radix.ts'

/** A number of tiles, `ceildiv(total, by)`. */
export interface Tiling {
  readonly total: Expr
  readonly by: number
  /** The dividend of the innermost division, whose quotient rounds `total` up. */
  readonly padded: Expr
}

/**
 * Returns the tilings that an expression counts, from the outer to the finest: `ceildiv(ceildiv(n, b), c)` counts tiles
 * of c in `ceildiv(n, b)`, and tiles of b · c in n.
 */
export function tilings(count: Expr): readonly Tiling[] {
  if (count.kind !== 'binary' || count.op !== 'div' || count.b.kind !== 'const' || count.b.value < 1)
    return []
  const by = count.b.value
  const total = add(count.a, int(1 - by))
  return [{ total, by, padded: count.a }, ...tilings(total).map((t) => ({ ...t, by: t.by * by }))]
}

/** Returns the number c with `count` = `ceildiv(end, c)`; undefined unless such a number is known. */
export function tileSize(count: Expr, end: Expr): number | undefined {
  const finest = (e: Expr) => tilings(e).at(-1) ?? { total: e, by: 1 }
  const [a, b] = [finest(count), finest(end)]
  return a.by % b.by === 0 && sameSum(a.total, b.total) ? a.by / b.by : undefined
}

/** The end of tiles compared with an end of elements: equal, within the last tile, or tiles beyond. */
export type Reach = 'exact' | 'partial' | 'beyond'

interface Divisors {
  isMultiple(e: Expr, by: number): boolean
}

/**
 * Returns how the number of values of a sum of digits compares with `end`, for sums that take each value from 0 on
 * exactly once and have at least `end` values; undefined for other sums. A sum without digits has the value 0.
 */
export function tileReach(digits: readonly Digit<unknown>[], end: Expr, facts?: Divisors): Reach | undefined {
  const number = mixedRadix(digits)
  if (!number?.dense) return undefined
  const [first, top] = [number.digits[0], number.digits.at(-1)]
  if (first && strideOf(first) !== 1) return undefined
  const { stride, extent: count } = top ?? { stride: int(1), extent: int(1) }
  if (!count) return undefined
  if (stride.kind !== 'const') {
    if (sameSum(mul(count, stride), end)) return 'exact'
    return sameExpr(count, ceildiv(end, stride)) ? 'partial' : undefined
  }
  const size = stride.value
  if (count.kind === 'const' && end.kind === 'const') {
    const excess = count.value * size - end.value
    if (excess <= 0) return excess === 0 ? 'exact' : undefined
    return excess < size ? 'partial' : 'beyond'
  }
  const isWhole = size === 1 || facts?.isMultiple(end, size) === true
  if (tileSize(count, end) === size) return isWhole ? 'exact' : 'partial'
  return isWhole && sameExpr(count, div(end, stride)) ? 'exact' : undefined
}
