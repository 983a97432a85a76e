/**
 * Dependence testing of affine subscripts. Every legality check is reduced to one question: do different values of a
 * loop variable reach different elements?
 */
import { add, type Expr, int } from '../../ir/expressions/expr.ts'
import { freeVars, mentions, mentionsSome } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { isSingleIteration } from '../../ir/statements/reductions.ts'
import { isIndex, isNonNegative } from '../integers/interval.ts'
import type { Linear, Loops, Term } from '../integers/linear.ts'
import { keepTerms, linear, linearKey, plus, sameSum, shift, termsWith } from '../integers/linear.ts'
import { rangeOfSum, rangesOver } from '../integers/ranges.ts'

/** Facts for the analysis of subscripts inside of a loop. */
export interface Space {
  readonly inner: Loops
  /** Buffers that are validated to be monotone. */
  readonly indptr: ReadonlySet<string>
  readonly distinct?: readonly string[] | undefined
}

/**
 * Returns a text that identifies the block of values which `e` stays in for one value of `v`, if blocks of different
 * values are disjoint; undefined if that is not evident. Two accesses with equal texts in one dimension reach a common
 * element only in the same iteration of `v`.
 * Recognised, with `inner` the loops inside of `v`: sums `c·v + rest + outer` with `0 <= rest < |c|`; rows `x·w + rest`
 * with `0 <= rest < w`; segments `indptr[x] + rest` with `0 <= rest < indptr[x + 1] - indptr[x]`, whose `x` is such a
 * sum; and `table[x]` in the place of v, if its elements are distinct.
 */
export function blockOf(e: Expr, v: string, space: Space): string | undefined {
  const { inner, indptr, distinct } = space
  if (!mentions(e, v)) return undefined
  const written = linear(e)
  const sum = upwards(written, inner)
  const own = termsWith(sum, v)
  const mine = own[0]
  if (!mine || own.length !== 1) return undefined
  const varies = (x: Expr): boolean => mentionsSome(x, inner)
  const others = keepTerms(sum, (t) => t !== mine)
  const rest = keepTerms(others, (t) => varies(t.term))
  const { terms: outer } = keepTerms(others, (t) => !varies(t.term))
  const base = (constant: number): string => linearKey({ terms: outer, constant })
  const inTurn = (block: string): string | undefined => {
    const width = Math.abs(mine.coefficient)
    const range = rangesOver(inner)
    // If blocks are counted down, the rest begins with a multiple of their width.
    const begin = width * Math.floor(rangeOfSum(rest, range).lo / width)
    return isIndex(rangeOfSum(shift(rest, -begin), range), width)
      ? `${mine.coefficient}·${block} + ${base(begin)}`
      : undefined
  }
  if (mine.term.kind === 'load' && distinct?.includes(mine.term.buffer)) {
    const places = mine.term.index.length === 1 && blockOf(mine.term.index[0]!, v, space)
    return places ? inTurn(`${mine.term.buffer}[${places}]`) : undefined
  }
  if (mine.term.kind === 'load') {
    const start = mine.term.index[0]
    if (
      mine.coefficient !== 1 ||
      mine.term.index.length !== 1 ||
      !start ||
      outer.size > 0 ||
      sum.constant !== 0
    )
      return undefined
    const block = blockOf(start, v, space)
    const isWithin = withinSegment(rest, mine.term, inner, without(written, mine))
    if (!block || !indptr.has(mine.term.buffer) || !isWithin) return undefined
    return `${mine.term.buffer}[${block}]`
  }
  if (mine.term.kind === 'binary' && mine.term.op === 'mul') {
    const { a: row, b: width } = mine.term
    if (mine.coefficient !== 1 || outer.size > 0 || sum.constant !== 0) return undefined
    if (mentions(width, v) || varies(width)) return undefined
    const block = blockOf(row, v, space)
    const isWidth = (x: Expr): boolean => keyOf(x) === keyOf(width)
    return block && within(rest, isWidth, inner, without(written, mine))
      ? `(${block})·${keyOf(width)}`
      : undefined
  }
  return mine.term.kind === 'var' ? inTurn(v) : undefined
}

/**
 * Returns the segment `indptr[start] <= e < indptr[start + 1]` that an index stays in; undefined if it is not evident.
 */
export function segmentOf(e: Expr, { inner, indptr }: Space): { buffer: string; start: Expr } | undefined {
  const written = linear(e)
  const sum = upwards(written, inner)
  if (sum.constant !== 0) return undefined
  for (const t of sum.terms.values()) {
    if (t.term.kind !== 'load' || t.coefficient !== 1 || !indptr.has(t.term.buffer)) continue
    const rest = keepTerms(sum, (x) => x !== t)
    const start = t.term.index[0]
    if (start && withinSegment(rest, t.term, inner, without(written, t)))
      return { buffer: t.term.buffer, start }
  }
  return undefined
}

/**
 * Returns a sum in which loops that are counted down, `-v`, are counted up: `extent - 1 - v` has the values of v. The
 * bounds of the sum do not change, but a name means another iteration in it than in guards.
 */
const upwards = (sum: Linear, inner: Loops): Linear =>
  [...sum.terms.values()].reduce((up, { term, coefficient: c }) => {
    const loop = term.kind === 'var' && c < 0 ? inner.get(term.name) : undefined
    return loop ? plus(shift(plus(up, linear(loop.extent), c), -c), linear(term), -2 * c) : up
  }, sum)

const without = (sum: Linear, { term, coefficient }: Term): Linear => plus(sum, linear(term), -coefficient)

function withinSegment(rest: Linear, start: Expr & { kind: 'load' }, inner: Loops, written: Linear): boolean {
  const isLength = (e: Expr): boolean => {
    if (e.kind !== 'binary' || e.op !== 'sub' || keyOf(e.b) !== keyOf(start) || e.a.kind !== 'load')
      return false
    if (e.a.buffer !== start.buffer || e.a.index.length !== 1) return false
    return sameSum(e.a.index[0]!, add(start.index[0]!, int(1)))
  }
  return within(rest, isLength, inner, written)
}

/**
 * Returns whether `0 <= rest <` a bound that `isLength` recognises, from the extent of one loop or from a guard;
 * `written` is the sum as guards have it.
 */
function within(rest: Linear, isLength: (e: Expr) => boolean, inner: Loops, written: Linear): boolean {
  if (rest.terms.size === 0 || !isNonNegative(rangeOfSum(rest, rangesOver(inner)))) return false
  const position = linearKey(written)
  // Loops of one iteration are at 0.
  const [only, ...others] = [...rest.terms.values()].filter(({ term }) => {
    const loop = term.kind === 'var' && inner.get(term.name)
    return !loop || !isSingleIteration(loop)
  })
  if (only?.coefficient === 1 && only.term.kind === 'var' && others.length === 0) {
    const loop = inner.get(only.term.name)
    if (loop && isLength(loop.extent)) return true
  }
  for (const t of rest.terms.values())
    for (const name of freeVars(t.term))
      for (const g of inner.get(name)?.guards ?? [])
        if (g.kind === 'binary' && g.op === 'lt' && isLength(g.b) && linearKey(linear(g.a)) === position)
          return true
  return false
}
