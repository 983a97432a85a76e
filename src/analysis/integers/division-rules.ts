/** Rules for floored division and modulo of integers, under the ranges of the operands. */
import { add, binary, constant, type Expr } from '../../ir/expressions/expr.ts'
import type { Bindings, Rule } from '../../ir/expressions/patterns.ts'
import { gcd } from './divisors.ts'
import { type Interval, isIndex, isNonNegative } from './interval.ts'

type Range = (e: Expr) => Interval

const isLess = ({ x, c }: Bindings, range: Range): boolean => isIndex(range(x!), c.value)
const areNatural = ({ x, y }: Bindings, range: Range): boolean =>
  isNonNegative(range(x!)) && isNonNegative(range(y!))

/** Rules for dividends that are less than the divisor. */
export const SMALL_DIVIDENDS: readonly Rule<Range>[] = [
  { name: 'quotient of less', match: ['div', 'x', 'c'], when: isLess, to: 0 },
  { name: 'remainder of less', match: ['mod', 'x', 'c'], when: isLess, to: 'x' },
]

/** The truncated quotient of operands with different signs is greater by 1 than the floored quotient. */
const SIGNS_DIFFER = [
  'and',
  ['ne', ['rem', 'x', 'y'], 0],
  ['ne', ['lt', ['rem', 'x', 'y'], 0], ['lt', 'y', 0]],
] as const

/** Floored divisions as truncated ones (`quo`, `rem`), for divisors other than 0. */
export const TRUNCATIONS: readonly Rule<Range>[] = [
  ...SMALL_DIVIDENDS,
  { name: 'natural quotient', match: ['div', 'x', 'y'], when: areNatural, to: ['quo', 'x', 'y'] },
  { name: 'natural remainder', match: ['mod', 'x', 'y'], when: areNatural, to: ['rem', 'x', 'y'] },
  {
    name: 'floored quotient',
    match: ['div', 'x', 'y'],
    to: ['sub', ['quo', 'x', 'y'], ['select', SIGNS_DIFFER, 1, 0]],
  },
  {
    name: 'floored remainder',
    match: ['mod', 'x', 'y'],
    to: ['add', ['rem', 'x', 'y'], ['select', SIGNS_DIFFER, 'y', 0]],
  },
]

/** A divisor of an expression that does not wrap; undefined for others. */
type DivisorOf = (e: Expr) => number | undefined

const withoutRemainder: Rule<DivisorOf>['to'] = ({ x, c, d }, divisorOf, e) => {
  if (e.kind !== 'binary' || d.value <= 0) return undefined
  const g = gcd(divisorOf(e.a) === undefined ? 1 : divisorOf(x!)!, d.value)
  const r = c.value - g * Math.floor(c.value / g)
  if (r === 0) return undefined
  const whole = binary(e.op, add(x!, constant(c.value - r, c.dtype)), d)
  return e.op === 'mod' ? add(whole, constant(r, e.dtype)) : whole
}

/**
 * If g divides x and d, and 0 <= r < g, then (x + q g + r) / d is (x + q g) / d, and (x + q g + r) mod d is
 * (x + q g) mod d + r: addresses of swizzled tiles stay a common base plus constants.
 */
export const REMAINDERS: readonly Rule<DivisorOf>[] = [
  { name: 'quotient without remainder', match: ['div', ['add', 'x', 'c'], 'd'], to: withoutRemainder },
  { name: 'remainder without remainder', match: ['mod', ['add', 'x', 'c'], 'd'], to: withoutRemainder },
]
