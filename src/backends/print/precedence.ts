/** Operators of C-like languages, and how tightly printed expressions bind. */
import type { BinaryOp } from '../../ir/values/math.ts'

export const SYMBOL: Readonly<
  Record<Exclude<BinaryOp, 'min' | 'max' | 'div' | 'mod'>, readonly [string, number]>
> = {
  or: ['||', 1],
  and: ['&&', 2],
  eq: ['==', 3],
  ne: ['!=', 3],
  lt: ['<', 4],
  le: ['<=', 4],
  gt: ['>', 4],
  ge: ['>=', 4],
  add: ['+', 5],
  sub: ['-', 5],
  mul: ['*', 6],
  quo: ['/', 6],
  rem: ['%', 6],
}
export const UNARY = 7
export const ATOM = 9
/** Precedence of eager (bitwise) operators, which are parenthesised next to any other operator. */
export const EAGER_PRECEDENCE = { and: 0.2, or: 0.1 }

export type Text = readonly [text: string, precedence: number]
