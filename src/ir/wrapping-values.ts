/** What is computed as a value, as the kernel's text says, and wraps at 32 bits; what leads to an element never does. */
import type { Span } from '../ast/diagnostic.ts'
import type { Expr } from './expr.ts'
import { children, perExpr } from './expr-tree.ts'
import type { Stmt } from './loops.ts'
import { isCompare } from './ops.ts'
import { type Body, piecesOf, walkStmts } from './tree.ts'

export interface Values {
  /** Where such expressions stand in the text. */
  readonly spans: ReadonlySet<Span>
  /** They, and what steps and passes made of them; operands of instructions, which are mostly places, are not among these. */
  readonly nodes: ReadonlySet<Expr>
}

export function valuesIn(body: Body): Values {
  const spans = new Set<Span>()
  const nodes = new Set<Expr>()
  const lets = new Map<string, Expr[]>()
  const visit = (e: Expr): void => {
    if (nodes.has(e) || e.kind === 'load' || e.kind === 'search') return
    // A bound that nobody wrote is one of positions.
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

/** Whether it is computed where the text says so: no check of sizes sees that it leaves its type. */
export const isWritten = ({ spans }: Values, e: Expr): boolean =>
  (e.kind === 'binary' || e.kind === 'unary') && e.span !== undefined && spans.has(e.span)

/** Whether sums and products in it may wrap: what divides or orders their terms says nothing of them then. */
export function wrapping(values: Values): (e: Expr) => boolean {
  return perExpr<boolean>((e, wraps) => {
    if (e.kind === 'unary') return wraps(e.x)
    if (e.kind !== 'binary' || !['add', 'sub', 'mul'].includes(e.op)) return false
    return isWritten(values, e) || wraps(e.a) || wraps(e.b)
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
