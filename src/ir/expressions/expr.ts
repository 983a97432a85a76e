/**
 * Constructors of expressions, the only ones, with constant folding and algebraic simplification (neutral elements); an
 * unchanged node keeps its identity.
 */

import { invariant, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { enableMemo } from '../memoize.ts'
import { type ExprType, isFloat, isInt, join, scalarType } from '../values/dtype.ts'
import { rounding } from '../values/half.ts'
import { type BinaryOp, isCompare, isTruth, MATH, type MathFn } from '../values/math.ts'
import { convert, foldCall, foldCompare, foldFloat, foldInt, isValue } from '../values/numeric.ts'
import type { Builtin, Const, Expr, Load, Search, ThreadAxis, Var } from './expr-nodes.ts'
import { sameExpr } from './structural-equality.ts'

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
  if (x.kind === 'unary' && x.op === 'neg') return x.x
  return freeze({ kind: 'unary', op: 'neg', x, dtype: x.dtype, span })
}

export function not(x: Expr, span?: Span): Expr {
  if (x.kind === 'const') return bool(x.value === 0)
  if (x.kind === 'unary' && x.op === 'not') return x.x
  return freeze({ kind: 'unary', op: 'not', x, dtype: 'bool', span })
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
  if (sameExpr(then, otherwise)) return then
  const dtype = then.dtype === otherwise.dtype ? then.dtype : join(then.dtype, otherwise.dtype)
  if (cond.kind === 'const') return cast(cond.value !== 0 ? then : otherwise, dtype)
  return freeze({
    kind: 'select',
    cond,
    then,
    else: otherwise,
    dtype,
    span,
  })
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

const isConstant = (e: Expr, value: number): boolean => e.kind === 'const' && e.value === value

/**
 * `a op b`. Constants are folded to the value that every target computes, and neutral elements of integer
 * operations are removed. Other floating-point arithmetic is unchanged, because its rounding, infinities and
 * NaN belong to the program.
 */
export function binary(op: BinaryOp, a: Expr, b: Expr, span?: Span): Expr {
  if (a.dtype === 'index' && isIndexOperand(b)) return binary(op, a, cast(b, 'index'), span)
  if (b.dtype === 'index' && isIndexOperand(a)) return binary(op, cast(a, 'index'), b, span)
  const dtype = binaryType(op, a.dtype, b.dtype)
  const make = (): Expr => freeze({ kind: 'binary', op, a, b, dtype, span })
  if (a.kind === 'const' && b.kind === 'const') {
    const c = foldCompare(op, a.value, b.value)
    if (c !== undefined) return bool(c)
    const fold = isFloat(dtype) ? foldFloat : foldInt
    const v = fold(op, a.value, b.value, dtype)
    return v !== undefined && isValue(v, dtype) ? constant(v, dtype, span) : make()
  }
  if (isCompare(op) && (coordinateIn(a) || coordinateIn(b))) {
    const [x, y] = [a, b].map((e) => (e.kind === 'const' ? cast(e, 'index') : coordinateIn(e)))
    if (x && y) return binary(op, x, y, span)
  }
  // A float is compared with itself to recognise NaN.
  if (isCompare(op) && !isFloat(a.dtype) && sameExpr(a, b)) return bool(foldCompare(op, 0, 0)!)
  if (op === 'and' || op === 'or') {
    const neutral = op === 'and' ? 1 : 0
    if (isConstant(a, neutral)) return b
    if (isConstant(b, neutral) || sameExpr(a, b)) return a
    return isConstant(a, 1 - neutral) || isConstant(b, 1 - neutral) ? bool(op === 'or') : make()
  }
  if (!isInt(dtype) || scalarType(a.dtype) !== scalarType(b.dtype)) return make()
  const neutral = NEUTRAL[op]
  if (neutral !== undefined && isConstant(b, neutral)) return a
  switch (op) {
    case 'add':
      if (isConstant(a, 0)) return b
      if (b.kind === 'binary' && b.op === 'sub' && sameExpr(b.b, a)) return b.a
      if (a.kind === 'binary' && a.op === 'sub' && sameExpr(a.b, b)) return a.a
      // Constants come last, so that neighbouring elements share the variable part of their addresses. A sum
      // of a value, which may wrap, and a position, such as `v + 1` for an iterator, may wrap at each step.
      if (b.kind === 'binary' && b.op === 'add' && b.b.kind === 'const' && a.kind !== 'const')
        return binary('add', binary('add', a, b.a, b.span ?? span), b.b, span ?? b.span)
      if (b.kind === 'const' && a.kind === 'binary' && a.op === 'add' && a.b.kind === 'const') {
        const sum = a.b.value + b.value
        if (isValue(sum, dtype)) return binary('add', a.a, constant(sum, dtype), span ?? a.span)
      }
      return make()
    case 'sub':
      if (sameExpr(a, b)) return constant(0, dtype)
      if (a.kind === 'binary' && a.op === 'add' && sameExpr(a.a, b)) return a.b
      return a.kind === 'binary' && a.op === 'add' && sameExpr(a.b, b) ? a.a : make()
    case 'mul':
      if (isConstant(a, 1)) return b
      return isConstant(a, 0) || isConstant(b, 0) ? constant(0, dtype) : make()
    case 'mod':
    case 'rem':
      return isConstant(b, 1) ? constant(0, dtype) : make()
    case 'min':
    case 'max':
      return sameExpr(a, b) ? a : make()
    default:
      return make()
  }
}

/** Right operands that do not change an integer. */
const NEUTRAL: Readonly<Partial<Record<BinaryOp, number>>> = { add: 0, sub: 0, mul: 1, div: 1, quo: 1 }

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
export const ceildiv = (a: Expr, b: Expr): Expr => (isConstant(b, 1) ? a : div(add(a, sub(b, int(1))), b))
