/** Rules for upper bounds (exclusive) of integers, from facts about their operands. */
import { ceildiv, type Expr, int, mul } from '../../ir/expressions/expr.ts'
import { type Bindings, matcher, type Pattern } from '../../ir/expressions/patterns.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { type Interval, isIndex } from './interval.ts'
import { keepTerms, linear, sumExpr } from './linear.ts'
import { rangeOfSum } from './ranges.ts'
import { tilings } from './tiles.ts'

export interface Bounds {
  /** Returns upper bounds (exclusive) of an expression. */
  ends(e: Expr): readonly Expr[]
  nonNegative(e: Expr): boolean
  isMultiple(e: Expr, by: number): boolean
  range(e: Expr): Interval
  /** Returns whether the value may differ from the exact one. */
  wraps(e: Expr): boolean
}

export interface EndRule {
  readonly name: string
  readonly of: Pattern
  readonly ends: (found: Bindings, facts: Bounds) => readonly Expr[]
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
    // x + w < z if x < z - w: the rows of a range, from its start w on.
    name: 'shifted',
    of: ['add', 'x', 'y'],
    ends: ({ x, y }, facts) =>
      facts.ends(x!).flatMap((end) => {
        const length = difference(end)
        return length && sameExpr(length.w!, y!) ? [length.z!] : []
      }),
  },
  {
    // c·v + rest < c·end if v < end and 0 <= rest < c. If end is the c-th part of a multiple of c, then c·v + rest is
    // less than this multiple.
    name: 'tiles',
    of: 'x',
    ends: ({ x }, facts) => {
      const sum = linear(x!)
      return [...sum.terms.values()].flatMap((t) => {
        const { term, coefficient: c } = t
        const rest = keepTerms(sum, (other) => other !== t)
        if (c < 2 || !isIndex(rangeOfSum(rest, facts.range), c)) return []
        return facts.ends(term).flatMap((end) => [
          mul(end, int(c)),
          ...tilings(end)
            .flatMap((tiles) => (tiles.by === c ? [tiles.padded, sumExpr(tiles.total)] : []))
            .filter((n) => facts.isMultiple(n, c)),
        ])
      })
    },
  },
  {
    name: 'tiles of unknown size',
    of: ['add', ['mul', 'x', 'y'], 'z'],
    ends: ({ x, y, z }, facts) =>
      facts.nonNegative(z!) && facts.ends(z!).some((end) => sameExpr(end, y!))
        ? facts.ends(x!).map((end) => mul(end, y!))
        : [],
  },
]

const difference = matcher(['sub', 'z', 'w'])

const rules = END_RULES.map((rule) => ({ rule, match: matcher(rule.of) }))

export const endsBy = (e: Expr, facts: Bounds): readonly Expr[] =>
  (facts.wraps(e) ? [] : rules).flatMap(({ rule, match }) => {
    const found = match(e)
    return found ? rule.ends(found, facts) : []
  })
