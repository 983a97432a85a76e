/** Rules of what integers are less than, from what is known of their operands. */
import { ceildiv, type Expr, int, mul } from '../../ir/expr.ts'
import { type Found, matcher, type Pattern } from '../../ir/patterns.ts'
import { sameExpr } from '../../ir/structural-equality.ts'
import { type Interval, isIndex } from './interval.ts'
import { keepTerms, linear, roundedUp, sumExpr } from './linear.ts'
import { rangeOfSum } from './ranges.ts'

/** What rules may ask. */
export interface Bounds {
  /** What an expression is less than. */
  ends(e: Expr): readonly Expr[]
  nonNegative(e: Expr): boolean
  isMultiple(e: Expr, by: number): boolean
  range(e: Expr): Interval
  /** Whether its exact value may be another one. */
  wraps(e: Expr): boolean
}

export interface EndRule {
  readonly name: string
  readonly of: Pattern
  readonly ends: (found: Found, facts: Bounds) => readonly Expr[]
}

export const END_RULES: readonly EndRule[] = [
  {
    name: 'remainder',
    of: ['mod', 'x', 'c'],
    ends: ({ x, c }, facts) => (c.value <= 0 ? [] : [c, ...(facts.nonNegative(x!) ? facts.ends(x!) : [])]),
  },
  {
    name: 'quotient',
    of: ['div', 'x', 'c'],
    ends: ({ x, c }, facts) =>
      facts.ends(x!).flatMap((end) => {
        if (c.value <= 0) return []
        const shrinks = facts.nonNegative(x!) || facts.nonNegative(end)
        return [ceildiv(end, c), ...(shrinks ? [end] : [])]
      }),
  },
  { name: 'least', of: ['min', 'x', 'y'], ends: ({ x, y }, facts) => [...facts.ends(x!), ...facts.ends(y!)] },
  {
    // The rows of a range, from its start on.
    name: 'shifted',
    of: ['add', 'x', 'y'],
    ends: ({ x, y }, facts) =>
      facts.ends(x!).flatMap((end) => {
        const length = difference(end)
        return length && sameExpr(length.w!, y!) ? [length.z!] : []
      }),
  },
  {
    // c·v + rest with 0 <= rest < c, and v below some end: that is below as many wholes, or v below the c-th part of a multiple of c.
    name: 'tiles',
    of: 'x',
    ends: ({ x }, facts) => {
      const sum = linear(x!)
      return [...sum.terms.values()].flatMap((t) => {
        const { term, coefficient: c } = t
        const rest = keepTerms(sum, (other) => other !== t)
        if (c < 2 || !isIndex(rangeOfSum(rest, facts.range), c)) return []
        return facts
          .ends(term)
          .flatMap((end) => [mul(end, int(c)), ...wholes(end, c).filter((n) => facts.isMultiple(n, c))])
      })
    },
  },
]

const difference = matcher(['sub', 'z', 'w'])

/** What an end may be the c-th part of, or a part of a part. */
function wholes(end: Expr, c: number): readonly Expr[] {
  const tiles = roundedUp(end)
  if (!tiles || tiles.by < 2 || c % tiles.by !== 0) return []
  return tiles.by === c ? [tiles.padded, sumExpr(tiles.total)] : wholes(sumExpr(tiles.total), c / tiles.by)
}

const rules = END_RULES.map((rule) => ({ rule, match: matcher(rule.of) }))

/** What an expression is less than, by all rules. */
export const endsBy = (e: Expr, facts: Bounds): readonly Expr[] =>
  (facts.wraps(e) ? [] : rules).flatMap(({ rule, match }) => {
    const found = match(e)
    return found ? rule.ends(found, facts) : []
  })
