/** Expressions in kernels, formats and schedules, with the spelling and precedence of operators. */
import type { Ident, Node } from './nodes-base.ts'

export type BinaryOp =
  | 'or'
  | 'and'
  | 'lt'
  | 'le'
  | 'gt'
  | 'ge'
  | 'eq'
  | 'ne'
  | 'add'
  | 'sub'
  | 'mul'
  | 'div'
  | 'mod'
export type UnaryOp = 'neg' | 'not'

/** Never negative. `float`: written with a point or an exponent, or `inf` or `nan`. */
export interface NumberLit extends Node {
  readonly kind: 'number'
  readonly value: number
  readonly float: boolean
}
interface BoolLit extends Node {
  readonly kind: 'bool'
  readonly value: boolean
}
/** A size, scalar parameter, iterator, `let`, or a parameter of a format or schedule. */
export interface Name extends Node {
  readonly kind: 'name'
  readonly name: string
}
/** `a.m`: component `m` of operand `a` of a monoid. */
export interface Field extends Node {
  readonly kind: 'field'
  readonly object: Ident
  readonly field: Ident
}
/** `A[e, …]`; `s[]` is the element of a scalar buffer. */
export interface Access extends Node {
  readonly kind: 'access'
  readonly buffer: Ident
  readonly index: readonly Expr[]
}
/** Calls by name: math functions, `min max select ceildiv`, casts, queries. */
export interface Call extends Node {
  readonly kind: 'call'
  readonly fn: Ident
  readonly args: readonly Expr[]
  /** For a query, the expressions after `by`; at least one. */
  readonly by?: readonly Expr[] | undefined
  /** For `fill_ratio`, the format argument after the tensor. */
  readonly parts?: readonly AsPart[] | undefined
}
/** `blocks(16)`. */
export interface FormatUse extends Node {
  readonly format: Ident
  readonly args: readonly Expr[]
}
/** `blocks(16) where (cond)`: the format after `as`, or one part of a composition. */
export interface AsPart extends FormatUse {
  readonly where: Expr | null
}
export interface Unary extends Node {
  readonly kind: 'unary'
  readonly op: UnaryOp
  readonly x: Expr
}
interface Binary extends Node {
  readonly kind: 'binary'
  readonly op: BinaryOp
  readonly a: Expr
  readonly b: Expr
}
/** `value`, by position, or `name = value`; named arguments come last. */
export interface NamedArg<V = Expr> extends Node {
  readonly name: Ident | null
  readonly value: V
}
/** `d...`: all elements of a list. Only in calls and maps of formats. */
export interface Spread extends Node {
  readonly kind: 'spread'
  readonly list: Ident
}
/** `value for k from 0`: one value for each number; allowed in the same places as `Spread`. */
export interface Repeat extends Node {
  readonly kind: 'repeat'
  readonly value: Expr
  readonly each: For
}
export type Expr = NumberLit | BoolLit | Name | Field | Access | Call | Unary | Binary | Spread | Repeat

/** A dimension or axis of a format; `o[k]`: an element of a list of them. */
export interface Element extends Ident {
  readonly index?: Expr | undefined
}
/** A name; `o...`: all elements of a list, in order. */
export interface ListName extends Ident {
  readonly all?: true | undefined
}
/** `for name from a to b`, both ends included; without `to`, up to the last dimension of the format's list. */
export interface For extends Node {
  readonly name: Ident
  readonly from: Expr
  readonly to: Expr | null
}

/** The value of a literal, possibly negated; `undefined` for other expressions. */
export function literalValue(e: Expr): number | boolean | undefined {
  if (e.kind === 'number' || e.kind === 'bool') return e.value
  if (e.kind === 'unary' && e.op === 'neg' && e.x.kind === 'number') return -e.x.value
  return undefined
}

// The language's operators: spelling and precedence (the levels of the grammar).

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
