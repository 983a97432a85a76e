/** Index arithmetic: `ceildiv(a, b)` (a / b, rounded up to an integer), divisions by 0, control expressions. */
import { isNonNegative, NATURAL } from '../../analysis/integers/interval.ts'
import { rangesBy } from '../../analysis/integers/ranges.ts'
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { binary, cast, ceildiv, constant, coordinateIn, type Expr } from '../../ir/expressions/expr.ts'
import { someExpr } from '../../ir/expressions/expr-tree.ts'
import { isInt, isWord, join } from '../../ir/values/dtype.ts'
import { foldInt } from '../../ir/values/numeric.ts'
import { report } from '../diagnostics.ts'
import { joinOperands, type Operand, plain, type Typed } from './type-conversion.ts'

/** The value of arithmetic on integer literals; null for other expressions. */
export function integerValue(e: Ast.Expr): number | null {
  if (e.kind === 'number') return e.float ? null : e.value
  if (e.kind === 'unary' && e.op === 'neg') {
    const x = integerValue(e.x)
    return x === null ? null : -x
  }
  if (e.kind === 'call' && (e.fn.name === 'min' || e.fn.name === 'max') && e.args.length > 0) {
    const xs = e.args.map(integerValue)
    return xs.every((x) => x !== null) ? Math[e.fn.name](...xs) : null
  }
  if (e.kind !== 'binary') return null
  const [a, b] = [integerValue(e.a), integerValue(e.b)]
  return a === null || b === null ? null : (foldInt(e.op, a, b) ?? null)
}

/**
 * True if a name is a size. Sums of sizes fit in 32 bits, because extents and coordinates with larger sums are
 * rejected.
 */
export type Sizes = (name: string) => boolean

export function divideUp(dividend: Operand, divisor: Operand, whole: Span, sizes: Sizes): Typed | null {
  const both = joinOperands(dividend, divisor)
  if (!both) return null
  const [a, b] = both
  if (!isInt(join(a.dtype, b.dtype)))
    return report('check/operand', whole, {
      message: 'ceildiv takes integers',
      hint: 'use ceil(a / b)',
    })
  if (b.kind === 'const' && b.value === 0) return divisionByZero(divisor.span)
  const known = a.kind === 'const' && b.kind === 'const'
  const ofSizes = !known && isSize(a, sizes) && isSize(b, sizes) && isNatural(b)
  return plain(ofSizes ? ceildiv(a, b) : roundedUp(a, b, whole))
}

/** The quotient rounded down, plus 1 if there is a remainder. A sum of `a` and `b` could overflow their type. */
function roundedUp(a: Expr, b: Expr, span: Span): Expr {
  if (b.kind === 'const' && b.value === 1) return a
  const rest = binary('ne', binary('mod', a, b, span), constant(0, b.dtype), span)
  return binary('add', binary('div', a, b, span), cast(rest, a.dtype, span), span)
}

const isSize = (e: Expr, sizes: Sizes): boolean =>
  e.dtype === 'index' && !someExpr(e, (x) => x.kind === 'load' || (x.kind === 'var' && !sizes(x.name)))

/** True if an expression over sizes is never negative, given that sizes are not negative. */
const isNatural = (e: Expr): boolean =>
  isNonNegative(rangesBy((x) => (x.kind === 'var' ? { range: NATURAL } : undefined))(e))

export const divisionByZero = (span: Span): null =>
  report('check/division-by-zero', span, {
    message: 'an integer is divided by 0',
    expected: 'a divisor other than 0',
  })

// Control expressions: comparisons of quasi-affine expressions of coordinates and sizes. They are index arithmetic, which
// does not wrap and is checked before a run (as in Exo; Ikarashi et al., PLDI 2022).

/** The operands of a comparison, quasi-affine operands as coordinates. `texts`: the operands in the source. */
export function asControl(
  texts: readonly Ast.Expr[],
  operands: readonly (Operand | null)[],
  sizes: Sizes = () => false,
): readonly (Operand | null)[] {
  if (!operands.every((t) => t && (t.literal === 'int' || isWord(t.expr.dtype)))) return operands
  return operands.map((t, k) => {
    const x = t && t.literal === null && isAffine(texts[k]!, sizes) ? affineIn(t.expr) : undefined
    return t && x ? { ...t, expr: x } : t
  })
}

/** True for names, and for their sums, products with numbers or sizes, and quotients by numbers or sizes. */
function isAffine(e: Ast.Expr, sizes: Sizes): boolean {
  if (e.kind === 'name' || e.kind === 'number') return true
  if (e.kind !== 'binary') return false
  const isFixed = (x: Ast.Expr): boolean => x.kind === 'number' || (x.kind === 'name' && sizes(x.name))
  const isLinear = e.op === 'add' || e.op === 'sub' || isFixed(e.b) || (e.op === 'mul' && isFixed(e.a))
  return isLinear && isAffine(e.a, sizes) && isAffine(e.b, sizes)
}

/** An expression of converted coordinates as a coordinate; undefined for other values. */
function affineIn(e: Expr): Expr | undefined {
  if (e.dtype === 'index') return e
  if (e.kind === 'const') return cast(e, 'index')
  if (e.kind !== 'binary') return coordinateIn(e)
  const [a, b] = [affineIn(e.a), affineIn(e.b)]
  return a && b && binary(e.op, a, b, e.span)
}
