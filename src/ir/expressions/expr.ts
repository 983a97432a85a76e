/**
 * Constructors of expressions, the only ones, with constant folding and algebraic simplification (neutral elements); an
 * unchanged node keeps its identity.
 */

import { invariant, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { enableMemo, groupBy } from '../memoize.ts'
import { type ExprType, isFloat, isInt, join, scalarType } from '../values/dtype.ts'
import { rounding } from '../values/half.ts'
import { type BinaryOp, isCompare, isTruth, MATH, type MathFn } from '../values/math.ts'
import { convert, foldCall, foldCompare, foldFloat, foldInt, isValue } from '../values/numeric.ts'
import type { Binary, Builtin, Const, Expr, Load, Search, ThreadAxis, Var } from './expr-nodes.ts'
import { IDENTITIES } from './identities.ts'
import { type Bindings, matcher, type Operator, orders, type Pattern, type Rule } from './patterns.ts'

export * from './expr-nodes.ts'

const freeze = <T extends Expr>(node: T): T => Object.freeze(enableMemo(node))

/** The number of the type nearest to `value`. For integer types, `value` must be an integer. */
export function constant(value: number, dtype: ExprType = 'index', span?: Span): Const {
  invariant(isFloat(dtype) || Number.isInteger(value), `${value} is no ${dtype}`)
  // Adding 0 turns -0 into 0: integers have one zero, and as a float -0 would be another number.
  return freeze({ kind: 'const', value: isFloat(dtype) ? rounding(dtype)(value) : value + 0, dtype, span })
}
export const int = (value: number): Const => constant(value)
export const isOne = (e: Expr): boolean => e.kind === 'const' && e.value === 1
export const isZero = (e: Expr): boolean => e.kind === 'const' && e.value === 0
export const bool = (value: boolean): Const => constant(value ? 1 : 0, 'bool')

export function variable(name: string, dtype: ExprType = 'index', span?: Span): Var {
  invariant(name.length > 0, 'a variable needs a name')
  return freeze({ kind: 'var', name, dtype, span })
}

export const builtin = (axis: ThreadAxis): Builtin => freeze({ kind: 'builtin', axis, dtype: 'index' })

export function load(buffer: string, index: readonly Expr[], dtype: ExprType = 'index', span?: Span): Load {
  const coordinates = index.map((e) => coordinateIn(e) ?? e)
  return freeze({ kind: 'load', buffer, index: Object.freeze(coordinates), dtype, span })
}

export function search(method: Search['method'], buffer: string, lo: Expr, hi: Expr, value: Expr): Search {
  return freeze({ kind: 'search', method, buffer, lo, hi, value, dtype: 'index' })
}

export function neg(x: Expr, span?: Span): Expr {
  if (x.kind === 'const' && isValue(-x.value, x.dtype)) return constant(-x.value, x.dtype, span)
  return simplified({ kind: 'unary', op: 'neg', x, dtype: x.dtype, span })
}

export function not(x: Expr, span?: Span): Expr {
  if (x.kind === 'const') return bool(x.value === 0)
  return simplified({ kind: 'unary', op: 'not', x, dtype: 'bool', span })
}

export function call(fn: MathFn, args: readonly Expr[], span?: Span): Expr {
  const { arity, type } = MATH[fn]
  invariant(args.length === arity, `${fn} takes ${arity} arguments`)
  const t = args.map((a) => a.dtype).reduce(join)
  const dtype = type === 'bits' ? (t === 'index' ? t : 'i32') : type === 'operand' || isFloat(t) ? t : 'f32'
  const constantArgs = args.flatMap((a) => (a.kind === 'const' ? [a.value] : []))
  if (constantArgs.length === args.length) {
    const v = foldCall(fn, constantArgs, dtype)
    if (isValue(v, dtype)) return constant(v, dtype, span)
  }
  return freeze({ kind: 'call', fn, args: Object.freeze([...args]), dtype, span })
}

export function select(cond: Expr, then: Expr, otherwise: Expr, span?: Span): Expr {
  const dtype = then.dtype === otherwise.dtype ? then.dtype : join(then.dtype, otherwise.dtype)
  if (cond.kind === 'const') return cast(cond.value !== 0 ? then : otherwise, dtype)
  return simplified({ kind: 'select', cond, then, else: otherwise, dtype, span })
}

export function cast(x: Expr, dtype: ExprType, span?: Span): Expr {
  if (x.dtype === dtype) return x
  if (x.kind === 'const') return constant(convert(x.dtype, dtype)(x.value), dtype, span)
  if (dtype === 'index' && coordinateIn(x)) return coordinateIn(x)!
  return freeze({ kind: 'cast', x, dtype, span })
}

export function binaryType(op: BinaryOp, a: ExprType, b: ExprType): ExprType {
  return isTruth(op) ? 'bool' : a === b ? a : join(a, b)
}

/** The coordinate that a value converts to i32; undefined for other values. */
export const coordinateIn = (e: Expr): Expr | undefined =>
  e.kind === 'cast' && e.dtype === 'i32' && e.x.dtype === 'index' ? e.x : undefined

/** True for a constant and for a converted coordinate: as the other operand of a coordinate, each is a coordinate. */
const isIndexOperand = (e: Expr): boolean =>
  coordinateIn(e) !== undefined || (e.kind === 'const' && e.dtype === 'i32')

/**
 * `a op b`. Constants are folded to the value that every target computes, and identities of integers are applied. Other
 * floating-point arithmetic is unchanged, because its rounding, infinities and NaN belong to the program.
 */
export function binary(op: BinaryOp, a: Expr, b: Expr, span?: Span): Expr {
  if (a.dtype === 'index' && isIndexOperand(b)) return binary(op, a, cast(b, 'index'), span)
  if (b.dtype === 'index' && isIndexOperand(a)) return binary(op, cast(a, 'index'), b, span)
  const dtype = binaryType(op, a.dtype, b.dtype)
  const node: Binary = { kind: 'binary', op, a, b, dtype, span }
  if (a.kind === 'const' && b.kind === 'const') {
    if (isTruth(op)) return bool(foldCompare(op, a.value, b.value)!)
    const v = isFloat(dtype) ? foldFloat(op, a.value, b.value, dtype) : foldInt(op, a.value, b.value)
    return v !== undefined && isValue(v, dtype) ? constant(v, dtype, span) : freeze(node)
  }
  if (isCompare(op) && (coordinateIn(a) || coordinateIn(b))) {
    const [x, y] = [a, b].map((e) => (e.kind === 'const' ? cast(e, 'index') : coordinateIn(e)))
    if (x && y) return binary(op, x, y, span)
  }
  // Floats are compared with themselves to recognise NaN, and operands of two types are converted.
  const exact = isTruth(op) ? !isFloat(a.dtype) : isInt(dtype) && scalarType(a.dtype) === scalarType(b.dtype)
  return exact ? simplified(node) : freeze(node)
}

export function operation(op: Operator, [x, y, z]: readonly Expr[], span?: Span): Expr {
  if (op === 'neg') return neg(x!, span)
  if (op === 'not') return not(x!, span)
  return op === 'select' ? select(x!, y!, z!, span) : binary(op, x!, y!, span)
}

/** Returns the expression of a pattern; its numbers have the type of `e`. */
function instance(p: Pattern, found: Bindings, e: Expr): Expr {
  if (typeof p === 'string') return found[p]!
  if (typeof p === 'number') return constant(p, e.dtype)
  const [op, ...operands] = p
  const built = operands.map((o) => instance(o, found, e))
  return operation(op, built, e.span)
}

/**
 * Returns a function to the result of the first rule that applies to the root of an expression; undefined if none
 * applies. Patterns are compiled once, and rules are indexed by their operators.
 */
export function rewriter<C>(rules: readonly Rule<C>[]): (e: Expr, context: C) => Expr | undefined {
  const compiled = rules.flatMap((rule) => orders(rule).map((match) => ({ rule, match: matcher(match) })))
  const byOperator = groupBy(compiled, ({ rule }) => rule.match[0])
  return (e, context) => {
    const op = e.kind === 'binary' || e.kind === 'unary' ? e.op : e.kind
    for (const { rule, match } of byOperator.get(op as Operator) ?? []) {
      const found = match(e)
      if (!found || rule.when?.(found, context, e) === false) continue
      const { to } = rule
      const result = typeof to === 'function' ? to(found, context, e) : instance(to, found, e)
      if (result) return result
    }
    return undefined
  }
}

const byIdentity: (e: Expr) => Expr | undefined = rewriter(IDENTITIES)
const simplified = (node: Expr): Expr => byIdentity(node) ?? freeze(node)

export const add = (a: Expr, b: Expr): Expr => binary('add', a, b)
export const sub = (a: Expr, b: Expr): Expr => binary('sub', a, b)
export const mul = (a: Expr, b: Expr): Expr => binary('mul', a, b)
export const div = (a: Expr, b: Expr): Expr => binary('div', a, b)
export const mod = (a: Expr, b: Expr): Expr => binary('mod', a, b)
export const min = (a: Expr, b: Expr): Expr => binary('min', a, b)
export const max = (a: Expr, b: Expr): Expr => binary('max', a, b)
export const lt = (a: Expr, b: Expr): Expr => binary('lt', a, b)
export const ge = (a: Expr, b: Expr): Expr => binary('ge', a, b)
export const eq = (a: Expr, b: Expr): Expr => binary('eq', a, b)
/** A condition that the value differs from the fill value; NaN does not differ from NaN. */
export const differs = (value: Expr, fill: number): Expr =>
  Number.isNaN(fill) ? eq(value, value) : binary('ne', value, constant(fill, value.dtype))
export const and = (a: Expr, b: Expr): Expr => binary('and', a, b)
export const all = (terms: readonly Expr[]): Expr => terms.reduce(and, bool(true))
/** The terms of a conjunction, in order, each node once. */
export function conjuncts(e: Expr): readonly Expr[] {
  const out = new Set<Expr>()
  const seen = new Set<Expr>()
  const visit = (x: Expr): void => {
    if (seen.has(x)) return
    seen.add(x)
    if (x.kind === 'binary' && x.op === 'and') {
      visit(x.a)
      visit(x.b)
    } else out.add(x)
  }
  visit(e)
  return [...out]
}
/** ceil(a / b) for a >= 0, b > 0. */
export const ceildiv = (a: Expr, b: Expr): Expr => (isOne(b) ? a : div(add(a, sub(b, int(1))), b))
