/** Backward slice of a launch's control flow: only names in this slice need values to count operations. */
import type { Expr } from '../../ir/expressions/expr.ts'
import { someExpr, walkExpr } from '../../ir/expressions/expr-tree.ts'
import type { Stmt } from '../../ir/statements/loops.ts'
import { type Body, exprsOf, walkStmts } from '../../ir/statements/tree.ts'
import { operationsOf } from './work-counters.ts'

export const isShort = (op: string): boolean => op === 'and' || op === 'or'

/** Names of loop variables, lets, hardware indices (`thread.x`) and buffers that affect control flow. */
export function relevantNames(body: Body): ReadonlySet<string> {
  const names = new Set<string>()
  const take = (e: Expr): void =>
    walkExpr(e, (x) => {
      if (x.kind === 'var') names.add(x.name)
      if (x.kind === 'builtin') names.add(x.axis)
      if (x.kind === 'load' || x.kind === 'search') names.add(x.buffer)
    })
  walkStmts(body, (s) => {
    for (const e of controlOf(s)) take(e)
    for (const e of exprsOf(s))
      walkExpr(e, (x) => {
        if (x.kind === 'select' && (works(x.then) || works(x.else))) take(x.cond)
        if (x.kind === 'binary' && isShort(x.op) && works(x.b)) take(x.a)
      })
  })
  // Transitive closure over definitions.
  for (let before = -1; before !== names.size; ) {
    before = names.size
    walkStmts(body, (s) => {
      if (s.kind === 'let' && names.has(s.name)) take(s.value)
      if (s.kind === 'store' && names.has(s.buffer)) for (const e of [...s.index, s.value]) take(e)
      if (s.kind === 'reduce' && s.targets.some((t) => names.has(t.buffer)))
        for (const e of [...s.targets.flatMap((t) => t.index), ...s.values]) take(e)
    })
  }
  return names
}

/** Returns true if an expression contains counted work. */
const works = (e: Expr): boolean => someExpr(e, (x) => x.kind === 'load' || operationsOf(x) > 0)

function controlOf(s: Stmt): readonly Expr[] {
  if (s.kind === 'for') return [s.extent, ...s.guards]
  return s.kind === 'if' || s.kind === 'while' ? [s.cond] : []
}
