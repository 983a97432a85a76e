/** Elaboration of expressions: AST → typed IR. The caller resolves names, accesses and fields (`Names`). */
import { type Span, unreachable } from '../../ast/diagnostics/diagnostic.ts'
import { functionHint } from '../../ast/diagnostics/foreign-names.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { quantity } from '../../ast/print/quantity.ts'
import { binary, bool, call, cast, constant, type Expr, neg, not, select } from '../../ir/expressions/expr.ts'
import type { ExprType } from '../../ir/values/dtype.ts'
import { computeType, DTYPES, isDtype, isFloat, isInt, scalarType } from '../../ir/values/dtype.ts'
import { type ArithOp, type BinaryOp, isCompare, MATH, MATH_FNS, type MathFn } from '../../ir/values/math.ts'
import { arithmetic } from '../../ir/values/numeric.ts'
import { report } from '../diagnostics.ts'
import { asControl, divideUp, divisionByZero, type Sizes } from './index-arithmetic.ts'
import type { Operand, Real, Typed } from './type-conversion.ts'
import { coerce, convert, eachNumber, joinOperands, plain, settle } from './type-conversion.ts'

/** Resolution of names at one place of the text. Each function returns null after it has reported an error. */
export interface Names {
  name(e: Ast.Name): Typed | null
  access(e: Ast.Access): Typed | null
  field(e: Ast.Field): Typed | null
  /** Elaborates a call of a function that exists at this place only; returns undefined for functions of every place. */
  call?(e: Ast.Call): Typed | null | undefined
  /** Names of all functions that can be called here, for suggestions. */
  readonly functions?: readonly string[]
  /** The type of fractions without another type; f32 by default. */
  readonly real?: Real
  /** True if a name is a size, for results that become extents or coordinates; by default, no name is. */
  readonly sizes?: Sizes
}

/** No names: `refuse` reports each. */
export const noNames = (refuse: (e: Ast.Expr) => null): Pick<Names, 'name' | 'access' | 'field'> => ({
  name: refuse,
  access: refuse,
  field: refuse,
})

const isMath = (name: string): name is MathFn => Object.hasOwn(MATH, name)
export const FUNCTIONS: readonly string[] = [...MATH_FNS, 'min', 'max', 'select', 'ceildiv', ...DTYPES]

export function elaborateExpr(e: Ast.Expr, names: Names): Operand | null {
  const t = typed(e, names)
  return t && { ...t, span: e.span, real: names.real ?? 'f32' }
}

function typed(e: Ast.Expr, names: Names): Typed | null {
  switch (e.kind) {
    case 'number':
      return e.float
        ? { expr: constant(e.value, 'f64', e.span), literal: 'float' }
        : { expr: constant(e.value, 'i32', e.span), literal: 'int' }
    case 'bool':
      return plain(bool(e.value))
    case 'name':
      return names.name(e)
    case 'access':
      return names.access(e)
    case 'field':
      return names.field(e)
    case 'unary':
      return unary(e, names)
    case 'binary': {
      const operands = [e.a, e.b].map((x) => elaborateExpr(x, names))
      const [a, b] = isCompare(e.op) ? asControl([e.a, e.b], operands, names.sizes) : operands
      return a && b ? operate(e.op, a, b, e.span) : null
    }
    case 'call': {
      const own = names.call?.(e)
      return own === undefined ? callOf(e, names) : own
    }
    case 'spread':
    case 'repeat':
      return report('check/list-here', e.span, {
        message: 'there are no lists of dimensions here',
        expected: 'one expression',
        hint: 'lists are for the maps and queries of formats',
      })
    default:
      return unreachable(e)
  }
}

/** An expression with a definite type: an open literal becomes i32, or the place's type of fractions. */
export function settled(e: Ast.Expr, names: Names): Expr | null {
  const t = elaborateExpr(e, names)
  return t && settle(t)
}

/** An expression converted to a type. `what` names the place in messages. */
export function converted(e: Ast.Expr, names: Names, to: ExprType, what: string): Expr | null {
  const t = elaborateExpr(e, names)
  return t && coerce(t, to, what)
}

function unary(e: Ast.Unary, names: Names): Typed | null {
  const x = elaborateExpr(e.x, names)
  if (!x) return null
  if (e.op === 'not') {
    const b = truth(x)
    return b && plain(not(b, e.span))
  }
  if (x.expr.dtype === 'bool')
    return report('check/operand', e.span, {
      message: 'a truth value has no negative',
      hint: 'did you mean `not`?',
    })
  if (x.literal !== null) {
    const { dtype } = x.expr
    return { expr: eachNumber(x.expr, (v) => constant(-v, dtype, e.span)), literal: x.literal }
  }
  return plain(neg(wide(x.expr), e.span))
}

/** Converts integers narrower than 32 bits to 32 bits, in which they are computed. */
const wide = (x: Expr): Expr => (isInt(x.dtype) && x.dtype !== 'index' ? cast(x, computeType(x.dtype)) : x)

/** A condition: an expression that is true or false. */
export function condition(e: Ast.Expr, names: Names): Expr | null {
  const t = elaborateExpr(e, names)
  return t && truth(t)
}

function truth({ expr, literal, span }: Operand): Expr | null {
  if (expr.dtype === 'bool') return expr
  return report('check/condition', span, {
    message: `this must be true or false, not ${literal ? 'a number' : scalarType(expr.dtype)}`,
    expected: 'a comparison or a value of type bool',
    hint: 'write a comparison: `… != 0`',
  })
}

function operate(op: BinaryOp, a: Operand, b: Operand, whole: Span): Typed | null {
  if (op === 'and' || op === 'or') {
    const x = truth(a)
    const y = truth(b)
    return x && y && plain(binary(op, x, y, whole))
  }
  if (a.expr.kind === 'const' && b.expr.kind === 'const' && a.literal && b.literal && !isCompare(op))
    return fold(op, a, b, whole)
  const both = joinOperands(a, b)
  if (!both) return null
  const [x, y] = both
  if (isCompare(op)) return plain(binary(op, x, y, whole))
  if (x.dtype === 'bool')
    return report('check/operand', whole, {
      message: 'truth values do not add or multiply',
      hint: 'use `and`, `or`, `select`, or convert with i32(…)',
    })
  if ((op === 'div' || op === 'mod') && isInt(x.dtype) && y.kind === 'const' && y.value === 0)
    return divisionByZero(b.span)
  return plain(binary(op, x, y, whole))
}

function fold(op: BinaryOp, a: Operand, b: Operand, whole: Span): Typed | null {
  const x = (a.expr as { value: number }).value
  const y = (b.expr as { value: number }).value
  const integer = a.literal === 'int' && b.literal === 'int'
  if (integer && (op === 'div' || op === 'mod') && y === 0) return divisionByZero(b.span)
  if (integer && op === 'div' && x % y !== 0)
    return report('check/integer-division', whole, {
      message: `${x} / ${y} is ${Math.floor(x / y)} on integers`,
      hint: `write ${x}.0 / ${y} for the fraction`,
    })
  const value = arithmetic(op as ArithOp, 'f64')(x, y)
  if (integer && !Number.isSafeInteger(value))
    return report('check/literal-range', whole, {
      message: `${value} is out of the range of any integer type`,
      hint: `write ${x}.0 to compute with floating-point numbers`,
    })
  return { expr: constant(value, integer ? 'i32' : 'f64', whole), literal: integer ? 'int' : 'float' }
}

function callOf(e: Ast.Call, names: Names): Typed | null {
  const fn = e.fn.name
  if (e.by)
    return report('check/by', e.span, {
      message: `${fn} has no \`by\``,
      expected: '`by` in count, rank, largest and top of formats',
    })
  const range: readonly [number, number] | null =
    fn === 'min' || fn === 'max'
      ? [2, 64]
      : fn === 'select'
        ? [3, 3]
        : fn === 'ceildiv'
          ? [2, 2]
          : isDtype(fn)
            ? [1, 1]
            : isMath(fn)
              ? [MATH[fn].arity, MATH[fn].arity]
              : null
  if (!range) {
    const candidates = names.functions ?? FUNCTIONS
    const hint = functionHint(fn, candidates)
    return report('check/unknown-function', e.fn.span, {
      message: `there is no function ${fn}`,
      lookup: { name: fn, candidates },
      ...(hint && { hint }),
    })
  }
  if (e.args.length < range[0] || e.args.length > range[1])
    return report('check/arguments', e.span, {
      message: `${fn} is called with ${quantity(e.args.length, 'argument')}`,
      expected: range[0] === range[1] ? `${range[0]}` : `${range[0]} or more`,
      ...(range[1] > 2 && e.args.length === 1 && { hint: `to reduce, write \`y[i] ${fn}= x\`` }),
    })
  const args = e.args.map((x) => elaborateExpr(x, names))
  if (args.some((x) => x === null)) return null
  const xs = args as Operand[]
  if (isDtype(fn)) {
    const c = convert(xs[0]!, fn, e.span)
    return c && plain(c)
  }
  if (isMath(fn)) return math(fn, xs, e.span)
  if (fn === 'select') return choose(xs, e.span)
  const [first, second] = xs as [Operand, Operand]
  if (fn === 'ceildiv') return divideUp(first, second, e.span, names.sizes ?? (() => false))
  let out: Typed | null = first
  for (const x of xs.slice(1)) out = out && operate(fn as 'min' | 'max', { ...first, ...out }, x, e.span)
  return out
}

function math(fn: MathFn, xs: readonly Operand[], whole: Span): Typed | null {
  const { type } = MATH[fn]
  if (type === 'bits') {
    const bits = xs.map((x) => coerce(x, x.expr.dtype === 'index' ? 'index' : 'i32', `an operand of ${fn}`))
    return bits.every((x) => x !== null) ? plain(call(fn, bits, whole)) : null
  }
  const exact = type === 'operand'
  const [first, second] = xs as [Operand, Operand?]
  const only = (): Expr | null => (exact || first.literal !== 'int' ? settle(first) : first.expr)
  const args = second ? joinOperands(first, second) : [only()]
  if (!args?.every((x) => x !== null)) return null
  if (args[0]!.dtype === 'bool')
    return report('check/operand', whole, {
      message: `${fn} takes a number, not a truth value`,
      hint: 'convert the value: i32(…)',
    })
  const inType = (x: Expr): Expr => (exact ? wide(x) : isFloat(x.dtype) ? x : cast(x, first.real))
  return plain(call(fn, args.map(inType), whole))
}

function choose(xs: readonly Operand[], whole: Span): Typed | null {
  const [test, a, b] = xs as readonly [Operand, Operand, Operand]
  const cond = truth(test)
  if (a.literal && b.literal && cond) {
    const literal = a.literal === 'int' && b.literal === 'int' ? 'int' : 'float'
    const open = (e: Expr): Expr =>
      eachNumber(e, (v, span) => constant(v, literal === 'int' ? 'i32' : 'f64', span))
    return { expr: select(cond, open(a.expr), open(b.expr), whole), literal }
  }
  const same = a.literal === null && b.literal === null && a.expr.dtype === b.expr.dtype
  const both = same ? ([a.expr, b.expr] as const) : joinOperands(a, b)
  return cond && both && plain(select(cond, both[0], both[1], whole))
}
