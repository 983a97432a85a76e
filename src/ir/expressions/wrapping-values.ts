/**
 * Expressions that are computed as values of the kernel's source, and so wrap at 32 bits; address computations never
 * wrap.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Stmt } from '../statements/loops.ts'
import { type Body, piecesOf, walkStmts } from '../statements/tree.ts'
import { isCompare } from '../values/math.ts'
import type { Expr } from './expr.ts'
import { children, perExpr } from './expr-tree.ts'

export interface SourceValues {
  /** Source spans of such expressions. */
  readonly spans: ReadonlySet<Span>
  /**
   * These expressions, and those that steps and passes derive from them. Operands of instructions are not
   * included, because most of them are addresses.
   */
  readonly nodes: ReadonlySet<Expr>
}

export function valuesIn(body: Body): SourceValues {
  const spans = new Set<Span>()
  const nodes = new Set<Expr>()
  const lets = new Map<string, Expr[]>()
  const visit = (e: Expr): void => {
    if (nodes.has(e) || e.kind === 'load' || e.kind === 'search') return
    // A comparison without a span is a generated bound of positions.
    if (e.kind === 'binary' && isCompare(e.op) && !e.span) return
    nodes.add(e)
    if (e.span && (e.kind === 'binary' || e.kind === 'unary')) spans.add(e.span)
    if (e.kind === 'var') lets.get(e.name)?.forEach(visit)
    children(e).forEach(visit)
  }
  walkStmts(body, (s) => {
    if (s.kind === 'let') lets.set(s.name, [...(lets.get(s.name) ?? []), s.value])
  })
  walkStmts(body, (s) => {
    if (s.kind !== 'instr') valuesOf(s).forEach(visit)
  })
  const stored = new Set(nodes)
  walkStmts(body, (s) => {
    if (s.kind === 'instr') valuesOf(s).forEach(visit)
  })
  return { spans, nodes: stored }
}

/** True if the source computes the expression as a value: no check of sizes covers its overflow. */
export const isSourceValue = ({ spans }: SourceValues, e: Expr): boolean =>
  (e.kind === 'binary' || e.kind === 'unary') && e.span !== undefined && spans.has(e.span)

/**
 * A predicate for expressions with sums or products that may wrap: divisibility and order of their terms then imply
 * nothing.
 */
export function wrapPredicate(values: SourceValues): (e: Expr) => boolean {
  return perExpr<boolean>((e, wraps) => {
    if (e.kind === 'unary') return wraps(e.x)
    if (e.kind !== 'binary' || !['add', 'sub', 'mul'].includes(e.op)) return false
    return isSourceValue(values, e) || wraps(e.a) || wraps(e.b)
  })
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
    case 'instr':
      return piecesOf(s).flatMap((p) => (p.kind === 'value' ? [p.value] : []))
    default:
      return []
  }
}
