/** Rules by which an integer is less than another: `of < below` where what `when` asks is known. */
import { add, ceildiv, div, type Expr, int } from '../../ir/expr.ts'
import { sameExpr } from '../../ir/keys.ts'
import { type Found, matcher, type Pattern } from '../../ir/patterns.ts'
import { type Interval, isIndex } from './interval.ts'
import { keepTerms, type Linear, linear } from './linear.ts'
import { rangeOfSum } from './ranges.ts'

/** What rules may ask. */
export interface Bounds {
  /** What an expression is known to be less than. */
  ends(e: Expr): readonly Expr[]
  below(e: Expr, end: Expr): boolean
  nonNegative(e: Expr): boolean
  divisor(e: Expr): number
  range(e: Expr): Interval
}

export interface BoundRule {
  readonly name: string
  readonly of: Pattern
  readonly below: Pattern
  readonly when: (found: Found, facts: Bounds) => boolean
}

export const BOUND_RULES: readonly BoundRule[] = [
  {
    name: 'known',
    of: 'x',
    below: 'z',
    when: ({ x, z }, facts) => facts.ends(x!).some((end) => reaches(x!, end, z!, facts)),
  },
  { name: 'remainder', of: ['mod', 'x', 'c'], below: 'c', when: ({ c }) => c.value > 0 },
  {
    name: 'remainder of less',
    of: ['mod', 'x', 'c'],
    below: 'z',
    when: ({ x, c, z }, facts) => c.value > 0 && facts.nonNegative(x!) && facts.below(x!, z!),
  },
  {
    name: 'quotient',
    of: ['div', 'x', 'c'],
    below: 'z',
    when: ({ x, c, z }, facts) => c.value > 0 && facts.ends(x!).some((end) => sameExpr(ceildiv(end, c), z!)),
  },
  {
    name: 'quotient of less',
    of: ['div', 'x', 'c'],
    below: 'z',
    when: ({ x, c, z }, facts) =>
      c.value > 0 &&
      facts.ends(x!).some((end) => sameExpr(end, z!)) &&
      (facts.nonNegative(x!) || facts.nonNegative(z!)),
  },
  {
    // The rows of a range, from its start on.
    name: 'shifted',
    of: ['add', 'x', 'y'],
    below: 'z',
    when: ({ x, y, z }, facts) =>
      facts
        .ends(x!)
        .some(
          (end) =>
            end.kind === 'binary' &&
            end.op === 'sub' &&
            sameExpr(end.b, y!) &&
            reaches(add(x!, y!), end.a, z!, facts),
        ),
  },
  {
    name: 'least',
    of: ['min', 'x', 'y'],
    below: 'z',
    when: ({ x, y, z }, facts) => facts.below(x!, z!) || facts.below(y!, z!),
  },
  { name: 'tiles', of: 'x', below: 'z', when: ({ x, z }, facts) => isInTiles(linear(x!), z!, facts) },
]

/** `e < x` implies `e < end`. One step of transitivity has been enough. */
function reaches(e: Expr, x: Expr, end: Expr, facts: Bounds): boolean {
  if (sameExpr(x, end)) return true
  if (x.kind !== 'binary') return false
  if (x.op === 'min') return sameExpr(x.a, end) || sameExpr(x.b, end)
  // 0 <= e < ceildiv(X, c) says that X is positive, so that it is no less than its c-th part.
  const by = x.op === 'div' && x.b.kind === 'const' && x.b.value > 0 ? x.b : undefined
  return by !== undefined && sameExpr(x, ceildiv(end, by)) && facts.nonNegative(e)
}

/** `c·v + rest` with `0 <= rest < c` and v below the c-th part of `end`, which c divides. */
function isInTiles(sum: Linear, end: Expr, facts: Bounds): boolean {
  const whole = facts.divisor(end)
  return [...sum.terms.values()].some((t) => {
    const { term, coefficient: c } = t
    if (c < 2 || whole % c !== 0) return false
    const counts = [ceildiv(end, int(c)), div(end, int(c))]
    if (!facts.ends(term).some((x) => counts.some((n) => sameExpr(x, n)))) return false
    return isIndex(
      rangeOfSum(
        keepTerms(sum, (x) => x !== t),
        facts.range,
      ),
      c,
    )
  })
}

const matchers = new Map(BOUND_RULES.map((rule) => [rule, matcher(rule.of, rule.below)]))

/** Whether `e < end` by a rule. */
export function isBelowBy(rule: BoundRule, e: Expr, end: Expr, facts: Bounds): boolean {
  const found = matchers.get(rule)!(e, end)
  return found !== undefined && rule.when(found, facts)
}
