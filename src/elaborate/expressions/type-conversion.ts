/**
 * Type conversion: the common type of operands, and implicit conversions. A literal has no type of its own until it
 * meets another operand.
 */
import { InternalError, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { cast, constant, type Expr, select } from '../../ir/expressions/expr.ts'
import {
  computeType,
  type ExprType,
  INT_RANGE,
  isFloat,
  isHalf,
  isInt,
  isWord,
  join,
  scalarType,
} from '../../ir/values/dtype.ts'
import { report } from '../diagnostics.ts'

/**
 * A typed expression. `literal` marks a number as written, whose type is open: `expr` is then a constant (an f64 for a
 * fraction), or a `select` between constants.
 */
export interface Typed {
  readonly expr: Expr
  readonly literal: 'int' | 'float' | null
}

export const plain = (expr: Expr): Typed => ({ expr, literal: null })

/** The type of fractions that meet no floating-point type: f32 in kernels, f64 in expressions of the host. */
export type Real = 'f32' | 'f64'

/** A typed expression at a place of the text. */
export interface Operand extends Typed {
  readonly span: Span
  readonly real: Real
}

const INTO: Readonly<Record<ExprType, readonly ExprType[]>> = {
  bool: ['u8', 'i8', 'u32', 'i32', 'f16', 'bf16', 'f32', 'f64'],
  u8: ['u32', 'i32', 'f16', 'bf16', 'f32', 'f64'],
  i8: ['i32', 'f16', 'bf16', 'f32', 'f64'],
  u32: ['f32', 'f64'],
  i32: ['index', 'f32', 'f64'],
  index: ['i32', 'f32', 'f64'],
  f16: ['f32', 'f64'],
  bf16: ['f32', 'f64'],
  f32: ['f64'],
  f64: [],
}

/** True if a value of type `from` converts to `to` implicitly: only the precision of large integers may be lost. */
const fits = (from: ExprType, to: ExprType): boolean => from === to || INTO[from].includes(to)

function literalAs(e: Expr, to: ExprType, at: Span): Expr | null {
  if (e.kind === 'select') {
    const a = literalAs(e.then, to, e.then.span ?? at)
    const b = literalAs(e.else, to, e.else.span ?? at)
    return a && b && select(e.cond, a, b, e.span)
  }
  const value = numberIn(e)
  if (isFloat(to)) return constant(value, to, at)
  if (!isInt(to) || !Number.isInteger(value))
    return report('check/literal-type', at, {
      message: `${show(value)} is not a value of type ${to}`,
      expected: to,
    })
  const [lo, hi] = INT_RANGE[scalarType(to) as 'i32']
  if (value < lo || value > hi)
    return report('check/literal-range', at, {
      message: `${value} is out of the range of ${to}`,
      expected: `${lo} … ${hi}`,
    })
  return constant(value, to, at)
}

/** A coordinate, an extent or a position; a constant gets the type `index`. */
export const asIndex = (x: Expr): Expr => (x.kind === 'const' ? cast(x, 'index') : x)

/** The number of a literal; of several numbers, a fraction if there is one. */
function numberIn(e: Expr): number {
  if (e.kind === 'select')
    return [e.then, e.else].map(numberIn).reduce((a, b) => (Number.isInteger(a) ? b : a))
  if (e.kind !== 'const') throw new InternalError('a literal is a constant')
  return e.value
}

/** Applies `f` to each of the numbers that a literal selects from. */
export const eachNumber = (e: Expr, f: (value: number, span: Span | undefined) => Expr): Expr =>
  e.kind === 'select'
    ? select(e.cond, eachNumber(e.then, f), eachNumber(e.else, f), e.span)
    : f(numberIn(e), e.span)

const show = (value: number): string =>
  Number.isFinite(value) ? String(value) : Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf'

/** The expression, with i32 or `real` as the type of a literal. */
export const settle = ({ expr, literal, span, real }: Operand): Expr | null =>
  literal === null ? expr : literalAs(expr, literal === 'int' ? 'i32' : real, span)

/** The value converted to `to`. `what` names the place in the message. */
export function coerce(value: Omit<Operand, 'real'>, to: ExprType, what: string): Expr | null {
  const { expr, literal, span } = value
  if (literal !== null) {
    if (literal === 'int' || isFloat(to)) return literalAs(expr, to, span)
    return report('check/literal-type', span, {
      message: `${what} is ${to}, and ${show(numberIn(expr))} is a floating-point number`,
      expected: to,
    })
  }
  if (fits(expr.dtype, to)) return cast(expr, to, span)
  return report('check/lossy', span, {
    message: `${what} is ${to}, and this value is ${scalarType(expr.dtype)}`,
    expected: `a value of type ${to}`,
    hint: to === 'bool' ? 'write a comparison: `… != 0`' : `convert the value: ${to}(…)`,
  })
}

/** The explicit conversion `to(e)`. */
export function convert(t: Typed, to: ExprType, span: Span): Expr | null {
  if (t.literal !== null && (t.literal === 'int' || isFloat(to)) && to !== 'bool')
    return literalAs(t.expr, to, span)
  // Half types are computed in f32 without rounding, so an explicit conversion of a result must round.
  const rounds = isHalf(to) && t.expr.dtype === to && t.expr.kind !== 'load'
  return cast(rounds ? cast(t.expr, computeType(to), span) : t.expr, to, span)
}

/** Both operands in their common type; a literal takes the type of the other operand. */
export function joinOperands(a: Operand, b: Operand): readonly [Expr, Expr] | null {
  const left = openTo(a, b)
  const right = openTo(b, a)
  if (!left || !right) return null
  // A coordinate and a value of type i32 are combined without a conversion, which would hide the load.
  if (isWord(left.dtype) && isWord(right.dtype)) return [left, right]
  const dtype = join(left.dtype, right.dtype)
  return [cast(left, dtype), cast(right, dtype)]
}

/** The operand; a literal takes its type from the other operand. */
function openTo(t: Operand, other: Typed): Expr | null {
  const { span, real } = t
  if (t.literal === null) return t.expr
  if (other.literal !== null)
    return literalAs(t.expr, t.literal === 'float' || other.literal === 'float' ? real : 'i32', span)
  const to = other.expr.dtype
  // With a fraction, integers convert to `real`; with an integer, truth values convert to i32.
  if (t.literal === 'float') return literalAs(t.expr, isFloat(to) ? to : real, span)
  return literalAs(t.expr, to === 'bool' ? 'i32' : to, span)
}

export function integersOver(names: Iterable<string>): string {
  const list = [...names]
  return list.length > 0 ? `an integer expression over ${list.join(', ')}` : 'a number'
}
