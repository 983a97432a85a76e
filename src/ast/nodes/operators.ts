/** The language's operators: spelling and precedence (the levels of the grammar). */
import type { BinaryOp } from './nodes.ts'

export const LEVEL = {
  or: 1,
  and: 2,
  not: 3,
  compare: 4,
  sum: 5,
  product: 6,
  negation: 7,
  primary: 8,
} as const

/** Spelling and level by operator. All are left-associative except comparisons, which do not chain. */
export const INFIX: Readonly<Record<BinaryOp, readonly [symbol: string, level: number]>> = {
  or: ['or', LEVEL.or],
  and: ['and', LEVEL.and],
  lt: ['<', LEVEL.compare],
  le: ['<=', LEVEL.compare],
  gt: ['>', LEVEL.compare],
  ge: ['>=', LEVEL.compare],
  eq: ['==', LEVEL.compare],
  ne: ['!=', LEVEL.compare],
  add: ['+', LEVEL.sum],
  sub: ['-', LEVEL.sum],
  mul: ['*', LEVEL.product],
  div: ['/', LEVEL.product],
  mod: ['%', LEVEL.product],
}
