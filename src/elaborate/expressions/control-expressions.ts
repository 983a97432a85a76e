/**
 * Control expressions: comparisons of quasi-affine expressions of coordinates and sizes. They are index arithmetic, which
 * does not wrap and is checked before a run (as in Exo; Ikarashi et al., PLDI 2022).
 */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { binary, cast, coordinateIn, type Expr } from '../../ir/expressions/expr.ts'
import { isWord } from '../../ir/values/dtype.ts'
import type { Sizes } from './ceildiv.ts'
import type { Operand } from './type-conversion.ts'

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
