/** Which names of a launch its control flow depends on: they alone have to have values to count what is done. */
import type { Expr } from '../../ir/expr.ts'
import { someExpr, walkExpr } from '../../ir/expr-tree.ts'
import type { Stmt } from '../../ir/loops.ts'
import { type Body, exprsOf, walkStmts } from '../../ir/tree.ts'
import { operationsOf } from './work-counters.ts'

export const isShort = (op: string): boolean => op === 'and' || op === 'or'

/** Loop variables, `let`s, hardware indices (`thread.x`) and buffers that decide which statements run. */
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
  // What relevant values are made of is relevant.
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

/** Whether anything in it is counted. */
const works = (e: Expr): boolean => someExpr(e, (x) => x.kind === 'load' || operationsOf(x) > 0)

function controlOf(s: Stmt): readonly Expr[] {
  if (s.kind === 'for') return [s.extent, ...s.guards]
  return s.kind === 'if' || s.kind === 'while' ? [s.cond] : []
}
