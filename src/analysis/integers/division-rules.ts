/** Rules for floored division and modulo of integers, under the ranges of the operands. */
import type { Expr } from '../../ir/expressions/expr.ts'
import type { Bindings, Rule } from '../../ir/expressions/patterns.ts'
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
