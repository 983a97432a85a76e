/** Integer expressions over sizes as plain data: numbers, names, and `[operator, …operands]`. Serialised plans consist of them. */

import type { BinaryOp } from '../values/math.ts'

/**
 * The greatest value of a 64-bit `index`: hosts and JavaScript compute these in doubles. No device has memory for more
 * elements.
 */
export const WIDEST = 2 ** 53 - 1

export type SizeExpr = number | string | readonly [string, ...SizeExpr[]]

export type Binary = (a: number, b: number) => number

/**
 * Operators on exact integers, up to 2^53. Quotients by 0 are 0. `div` and `mod` round towards minus infinity, `quo` and
 * `rem` towards zero. Truth is 1.
 */
export const SIZE_OPERATORS: Readonly<Record<BinaryOp | 'neg' | 'not', Binary>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => b && Math.floor(a / b),
  mod: (a, b) => b && a - b * Math.floor(a / b),
  quo: (a, b) => b && Math.trunc(a / b),
  rem: (a, b) => b && a % b,
  min: Math.min,
  max: Math.max,
  lt: (a, b) => +(a < b),
  le: (a, b) => +(a <= b),
  gt: (a, b) => +(a > b),
  ge: (a, b) => +(a >= b),
  eq: (a, b) => +(a === b),
  ne: (a, b) => +(a !== b),
  and: (a, b) => +(a !== 0 && b !== 0),
  or: (a, b) => +(a !== 0 || b !== 0),
  neg: (a) => -a,
  not: (a) => +(a === 0),
}

/** Returns the value for these sizes; undefined if a size is unknown. */
export function evaluateSize(e: SizeExpr, sizes: ReadonlyMap<string, number>): number | undefined {
  if (typeof e === 'number') return e
  if (typeof e === 'string') return sizes.get(e)
  const [op, first, second, third] = e
  const a = evaluateSize(first!, sizes)
  if (a === undefined) return undefined
  if (op === 'select') return evaluateSize(a !== 0 ? second! : third!, sizes)
  const b = evaluateSize(second ?? 0, sizes)
  return b === undefined ? undefined : SIZE_OPERATORS[op as BinaryOp](a, b) + 0
}
