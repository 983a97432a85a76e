/**
 * Symbolic interval analysis (bounds inference): the interval of index expressions while some loops run, as sums over
 * terms that do not change meanwhile.
 */

import { conjuncts, div, type Expr, int, max, sub } from '../../ir/expressions/expr.ts'
import type { Buffer, For } from '../../ir/statements/loops.ts'
import { isWord } from '../../ir/values/dtype.ts'
import type { Linear } from './linear.ts'
import { constantSum, linear, linearKey, loopMap, mapNumbers, minus, plus, shift, sumExpr } from './linear.ts'
import { neverNegative, type Premises } from './non-negative.ts'

export function premisesIn(
  path: readonly For[],
  buffers: readonly Buffer[],
  sizes: ReadonlySet<string>,
): Premises {
  const extents = loopMap(path)
  const belowOf = new Map(buffers.flatMap((b) => (b.below ? [[b.name, b.below] as const] : [])))
  const endOf = (term: Expr): Expr | undefined =>
    term.kind === 'var'
      ? extents.get(term.name)?.extent
      : term.kind === 'load'
        ? belowOf.get(term.buffer)
        : undefined
  return {
    assumptions: path.flatMap((l) => l.guards.flatMap(assumed)),
    low: (term) => {
      const isNatural = endOf(term) !== undefined || (term.kind === 'var' && sizes.has(term.name))
      return isNatural ? [constantSum(0)] : []
    },
    high: (term) => {
      const end = endOf(term)
      return end ? [shift(linear(end), -1)] : []
    },
  }
}

/** Returns the sums that are non-negative where a condition holds. */
const assumed = (cond: Expr): readonly Linear[] =>
  conjuncts(cond).flatMap((c) => {
    if (c.kind !== 'binary' || !isWord(c.a.dtype)) return []
    if (c.op === 'lt') return [shift(minus(linear(c.b), linear(c.a)), -1)]
    return c.op === 'ge' ? [minus(linear(c.a), linear(c.b))] : []
  })

export const isAtMost = (a: Linear, b: Linear, premises: Premises): boolean => {
  const difference = minus(b, a)
  return difference.terms.size === 0 ? difference.constant >= 0 : neverNegative(difference, premises)
}

/** The loops that run, and the expressions that change with them. */
export interface Moving {
  readonly loop: (name: string) => For | undefined
  readonly changes: (e: Expr) => boolean
}

/** A lower bound is the least of these sums, an upper bound the greatest: a bound of all sums bounds the expression. */
type Bound = readonly Linear[]

/** Lower and upper bounds of an expression; each holds by itself. */
interface Ends {
  readonly low: readonly Bound[]
  readonly high: readonly Bound[]
}

/** An interval `low <= e <= high` for each of some expressions. */
export interface Span {
  readonly low: Linear
  readonly high: Linear
}

/** The maximum number of bounds of an expression. */
const MOST = 6

/**
 * Returns an interval that contains all the expressions, of constant width if there is one; undefined if it is unknown.
 * Its ends do not change with the loops.
 */
export function spanOf(exprs: readonly Expr[], moving: Moving, premises: Premises): Span | undefined {
  const isBelow = (a: Linear, b: Linear): boolean => isAtMost(a, b, premises)
  const all = exprs.map((e) => endsOf(e, moving))
  const lows = common(
    all.map((e) => e.low),
    isBelow,
  )
  const highs = common(
    all.map((e) => e.high),
    (a, b) => isBelow(b, a),
  )
  const pairs = lows.flatMap((low) => highs.map((high) => ({ low, high })))
  const sizeOf = ({ low, high }: Span): number => {
    const { terms, constant } = minus(high, low)
    return terms.size > 0 ? Number.POSITIVE_INFINITY : constant
  }
  return pairs.reduce<Span | undefined>(
    (best, p) => (best && sizeOf(best) <= sizeOf(p) ? best : p),
    undefined,
  )
}

/** Returns the number of values in an interval; 0 if it is empty. */
export function widthOf({ low, high }: Span, premises: Premises): Expr {
  const width = shift(minus(high, low), 1)
  const text = sumExpr(width)
  return text.kind === 'const' || isAtMost(constantSum(0), width, premises) ? text : max(text, int(0))
}

/** Returns the sums that bound every expression, given the bounds of each expression. */
function common(
  bounds: readonly (readonly Bound[])[],
  bounding: (a: Linear, b: Linear) => boolean,
): readonly Linear[] {
  const distinct = new Map(bounds.flat(2).map((b) => [linearKey(b), b]))
  return [...distinct.values()].filter((b) =>
    bounds.every((of) => of.some((bound) => bound.every((x) => bounding(b, x)))),
  )
}

function endsOf(e: Expr, moving: Moving): Ends {
  const sum = linear(e)
  return [...sum.terms.values()].reduce<Ends>(
    (ends, { term, coefficient }) => {
      const own = endsOfTerm(term, moving)
      const [low, high] = coefficient > 0 ? [own.low, own.high] : [own.high, own.low]
      return { low: sums(ends.low, low, coefficient), high: sums(ends.high, high, coefficient) }
    },
    only(constantSum(sum.constant)),
  )
}

function endsOfTerm(e: Expr, moving: Moving): Ends {
  const inside = endsInside(e, moving)
  if (moving.changes(e)) return inside
  const own = only(linear(e))
  return { low: [...own.low, ...inside.low], high: [...own.high, ...inside.high] }
}

function endsInside(e: Expr, moving: Moving): Ends {
  const of = (x: Expr): Ends => endsOf(x, moving)
  if (e.kind === 'var') {
    const loop = moving.loop(e.name)
    const last = loop && of(loop.extent).high.map((bound) => bound.map((h) => shift(h, -1)))
    return last ? { low: [[constantSum(0)]], high: last } : NONE
  }
  if (e.kind === 'select') {
    const [x, y] = [of(e.then), of(e.else)]
    return { low: both(x.low, y.low), high: both(x.high, y.high) }
  }
  if (e.kind !== 'binary') return NONE
  const { op, b } = e
  if (op === 'min' || op === 'max') {
    const [x, y] = [of(e.a), of(b)]
    return op === 'max'
      ? { low: few([...x.low, ...y.low]), high: both(x.high, y.high) }
      : { low: both(x.low, y.low), high: few([...x.high, ...y.high]) }
  }
  if (op === 'div' && b.kind === 'const' && b.value > 0) {
    const { low, high } = of(e.a)
    const through = (bound: Bound): Bound => bound.map((x) => quotient(x, b.value))
    return { low: low.map(through), high: high.map(through) }
  }
  if (op === 'mod' && !moving.changes(b) && (b.kind !== 'const' || b.value > 0))
    return { low: [[constantSum(0)]], high: [[linear(sub(b, int(1)))]] }
  return NONE
}

const NONE: Ends = { low: [], high: [] }
const only = (sum: Linear): Ends => ({ low: [[sum]], high: [[sum]] })
const few = (bounds: readonly Bound[]): readonly Bound[] => bounds.slice(0, MOST)

/** Returns the bounds of an expression that is one of two other expressions. */
const both = (x: readonly Bound[], y: readonly Bound[]): readonly Bound[] =>
  few(x.flatMap((a) => y.map((b) => [...a, ...b])))

const sums = (x: readonly Bound[], y: readonly Bound[], by: number): readonly Bound[] =>
  few(x.flatMap((a) => y.map((b) => a.flatMap((s) => b.map((t) => plus(s, t, by))))))

/** Returns the quotient of a sum; the sum of the quotients if all coefficients are multiples. */
function quotient(sum: Linear, by: number): Linear {
  const divides = [...sum.terms.values()].every((t) => t.coefficient % by === 0)
  return divides ? mapNumbers(sum, (n) => Math.floor(n / by)) : linear(div(sumExpr(sum), int(by)))
}
