/** What is computed as a value, as the kernel's text says, and wraps at 32 bits; what leads to an element never does. */
import type { Span } from '../ast/diagnostic.ts'
import type { Expr } from './expr.ts'
import { children } from './expr-tree.ts'
import type { Stmt } from './loops.ts'
import { isCompare } from './ops.ts'
import { type Body, piecesOf, walkStmts } from './tree.ts'

/** Where such expressions stand in the text. */
export function writtenValues(body: Body): ReadonlySet<Span> {
  const out = new Set<Span>()
  const seen = new Set<Expr>()
  const lets = new Map<string, Expr[]>()
  const visit = (e: Expr): void => {
    if (seen.has(e) || e.kind === 'load' || e.kind === 'search') return
    seen.add(e)
    // A bound that nobody wrote is one of positions.
    if (e.kind === 'binary' && isCompare(e.op) && !e.span) return
    if (e.span && (e.kind === 'binary' || e.kind === 'unary')) out.add(e.span)
    if (e.kind === 'var') lets.get(e.name)?.forEach(visit)
    children(e).forEach(visit)
  }
  walkStmts(body, (s) => {
    if (s.kind === 'let') lets.set(s.name, [...(lets.get(s.name) ?? []), s.value])
  })
  walkStmts(body, (s) => valuesOf(s).forEach(visit))
  return out
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
