/** How both stages print operators: the language's spelling, and how tightly each binds. */
import type { BinaryOp } from './ops.ts'

export const INFIX: Partial<Record<BinaryOp, readonly [string, number]>> = {
  or: ['or', 1],
  and: ['and', 2],
  lt: ['<', 4],
  le: ['<=', 4],
  gt: ['>', 4],
  ge: ['>=', 4],
  eq: ['==', 4],
  ne: ['!=', 4],
  add: ['+', 5],
  sub: ['-', 5],
  mul: ['*', 6],
  div: ['/', 6],
  mod: ['%', 6],
}
