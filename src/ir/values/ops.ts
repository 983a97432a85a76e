/** The operators of expressions, by name; functions are in `math.ts`. */

/** Integer `div` and `mod` round towards minus infinity; `quo` and `rem` (Stage III) towards zero. */
export type ArithOp = 'add' | 'sub' | 'mul' | 'div' | 'mod' | 'quo' | 'rem' | 'min' | 'max'
export type LogicOp = 'and' | 'or'
export type CompareOp = 'lt' | 'le' | 'gt' | 'ge' | 'eq' | 'ne'
export type BinaryOp = ArithOp | LogicOp | CompareOp

const COMPARE: ReadonlySet<string> = new Set(['lt', 'le', 'gt', 'ge', 'eq', 'ne'])
/** True if the operator returns a truth value. */
export const isTruth = (op: BinaryOp): op is CompareOp | LogicOp =>
  COMPARE.has(op) || op === 'and' || op === 'or'
export const isCompare = (op: BinaryOp): op is CompareOp => COMPARE.has(op)
