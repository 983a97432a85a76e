/** Integer arithmetic that wraps at 32 bits: that of values (type i32), in contrast to that of addresses (`index`). */
import type { Stmt } from '../statements/loops.ts'
import { type Body, walkStmts } from '../statements/tree.ts'
import { isCompare } from '../values/math.ts'
import type { Expr } from './expr.ts'
import { children, perExpr } from './expr-tree.ts'

/** True if the source computes the expression as a value: no check of sizes covers its overflow. */
export const isWrapping = (e: Expr): boolean =>
  (e.kind === 'binary' || e.kind === 'unary') && e.dtype === 'i32'

/**
 * True for expressions with sums or products that may wrap: divisibility and order of their terms then imply nothing.
 */
export const hasWrappingTerms: (e: Expr) => boolean = perExpr<boolean>((e, wraps) => {
  if (e.kind === 'unary') return wraps(e.x)
  if (e.kind !== 'binary' || !['add', 'sub', 'mul'].includes(e.op)) return false
  return isWrapping(e) || wraps(e.a) || wraps(e.b)
})

/** The expressions of a body outside of addresses, except operands of instructions, most of which are addresses. */
export function valuesIn(body: Body): ReadonlySet<Expr> {
  const nodes = new Set<Expr>()
  const lets = new Map<string, Expr[]>()
  const visit = (e: Expr): void => {
    if (nodes.has(e) || e.kind === 'load' || e.kind === 'search') return
    // A comparison of coordinates is a bound of positions.
    if (e.kind === 'binary' && isCompare(e.op) && e.a.dtype === 'index') return
    nodes.add(e)
    if (e.kind === 'var') lets.get(e.name)?.forEach(visit)
    children(e).forEach(visit)
  }
  walkStmts(body, (s) => {
    if (s.kind === 'let') lets.set(s.name, [...(lets.get(s.name) ?? []), s.value])
  })
  walkStmts(body, (s) => {
    valuesOf(s).forEach(visit)
  })
  return nodes
}

function valuesOf(s: Stmt): readonly Expr[] {
  switch (s.kind) {
    case 'store':
      return [s.value]
    case 'reduce':
    case 'vector_store':
      return s.values
    case 'if':
    case 'while':
      return [s.cond]
    case 'for':
      return s.guards
    default:
      return []
  }
}
