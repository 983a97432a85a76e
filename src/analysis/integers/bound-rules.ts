/** Rules for upper bounds (exclusive) of integers, from facts about their operands. */
import { ceildiv, type Expr, int, mul } from '../../ir/expressions/expr.ts'
import { type Bindings, matcher, type Pattern, rulesOf } from '../../ir/expressions/patterns.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { gcd } from './divisors.ts'
import { type Interval, isIndex } from './interval.ts'
import { keepTerms, linear, mapNumbers, sumExpr } from './linear.ts'
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
  readonly match: Pattern
  readonly ends: (found: Bindings, facts: Bounds) => readonly Expr[]
}

export const END_RULES: readonly EndRule[] = [
  {
    name: 'remainder',
    match: ['mod', 'x', 'c'],
    ends: ({ x, c }, facts) => (c.value <= 0 ? [] : [c, ...(facts.nonNegative(x!) ? facts.ends(x!) : [])]),
  },
  {
    name: 'quotient',
    match: ['div', 'x', 'c'],
    ends: ({ x, c }, facts) =>
      facts.ends(x!).flatMap((end) => {
        if (c.value <= 0) return []
        const shrinks = facts.nonNegative(x!) || facts.nonNegative(end)
        return [ceildiv(end, c), ...(shrinks ? [end] : [])]
      }),
  },
  {
    name: 'least',
    match: ['min', 'x', 'y'],
    ends: ({ x, y }, facts) => [...facts.ends(x!), ...facts.ends(y!)],
  },
  {
    // x + w < z if x < z - w: the rows of a range, from its start w on.
    name: 'shifted',
    match: ['add', 'x', 'y'],
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
    match: 'x',
    ends: ({ x }, facts) => {
      const sum = linear(x!)
      return [...sum.terms.values()].flatMap((t) => {
        const { term, coefficient: c } = t
        const rest = keepTerms(sum, (other) => other !== t)
        if (c < 2 || !isIndex(rangeOfSum(rest, facts.range), c)) return []
        return facts.ends(term).flatMap((end) => [
          mul(end, int(c)),
          ...tilings(end)
            .flatMap((tiles) => (tiles.by === c ? [tiles.padded, tiles.total] : []))
            .filter((n) => facts.isMultiple(n, c)),
        ])
      })
    },
  },
  {
    // c·v < n if v < ceildiv(n, c): the first element of a tile exists.
    name: 'first of a tile',
    match: 'x',
    ends: ({ x }, facts) => {
      const sum = linear(x!)
      const c = [...sum.terms.values()].reduce((g, t) => gcd(g, t.coefficient), sum.constant)
      if (c < 2 || x!.kind === 'const') return []
      return facts
        .ends(sumExpr(mapNumbers(sum, (n) => n / c)))
        .flatMap(tilings)
        .flatMap(({ total, by }) => (by % c === 0 ? [ceildiv(total, int(by / c))] : []))
    },
  },
  {
    name: 'tiles of unknown size',
    match: ['add', ['mul', 'x', 'y'], 'z'],
    ends: ({ x, y, z }, facts) =>
      facts.nonNegative(z!) && facts.ends(z!).some((end) => sameExpr(end, y!))
        ? facts.ends(x!).map((end) => mul(end, y!))
        : [],
  },
]

const difference = matcher(['sub', 'z', 'w'])

const matching = rulesOf(END_RULES)

/** The maximum number of terms of a sum whose bounds are derived; sums over merged loop nests are longer. */
const MOST_TERMS = 8

export const endsBy = (e: Expr, facts: Bounds): readonly Expr[] =>
  linear(e).terms.size > MOST_TERMS || facts.wraps(e)
    ? []
    : matching(e).flatMap(({ rule, found }) => rule.ends(found, facts))
