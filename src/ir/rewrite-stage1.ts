/** Walking over Stage I bodies, and rewriting them. */
import type { Expr, Load } from './expr.ts'
import { rewriteExpr } from './expr-tree.ts'
import { isBuiltinReducer, type Monoid } from './monoid.ts'
import type { Stmt1 } from './stage1.ts'

/** The buffers that statements write. */
export function writtenBy(body: readonly Stmt1[], out: Set<string> = new Set()): ReadonlySet<string> {
  for (const s of body)
    if (s.kind === 'iterate') writtenBy(s.body, out)
    else if (s.kind === 'if') writtenBy([...s.then, ...s.else], out)
    else if (s.kind !== 'let') for (const t of s.targets) out.add(t.buffer)
  return out
}

/** Reducers that statements use and programs declare, by name. */
export function declaredMonoids(
  body: readonly Stmt1[],
  out: Map<string, Monoid> = new Map(),
): ReadonlyMap<string, Monoid> {
  for (const s of body) {
    if (s.kind === 'iterate') declaredMonoids(s.body, out)
    else if (s.kind === 'if') declaredMonoids([...s.then, ...s.else], out)
    else if (s.kind === 'reduce' && !isBuiltinReducer(s.reducer.name)) out.set(s.reducer.name, s.reducer)
  }
  return out
}

/** Every expression through `visit` (bottom-up, `undefined` = unchanged), targets and `where`s included. */
export function rewriteBody1(body: readonly Stmt1[], visit: (e: Expr) => Expr | undefined): Stmt1[] {
  return body.map((s) => rewriteStmt1(s, visit))
}

function rewriteStmt1(s: Stmt1, visit: (e: Expr) => Expr | undefined): Stmt1 {
  const expr = (e: Expr): Expr => rewriteExpr(e, visit)
  switch (s.kind) {
    case 'iterate':
      return { ...s, where: s.where.map(expr), body: rewriteBody1(s.body, visit) }
    case 'assign':
    case 'reduce':
      return { ...s, targets: s.targets.map((t) => expr(t) as Load), values: s.values.map(expr) }
    case 'let':
      return { ...s, value: expr(s.value) }
    case 'if':
      return {
        ...s,
        cond: expr(s.cond),
        then: rewriteBody1(s.then, visit),
        else: rewriteBody1(s.else, visit),
      }
  }
}
