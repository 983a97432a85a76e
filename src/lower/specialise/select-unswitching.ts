/**
 * Unswitching of selections. Invariant reached: an innermost loop that stores a loop-invariant selection with exactly one arm that is a
 * selection itself stores in two branches instead. For example, a mask for blocks that need none is tested once, not per element.
 */

import type { Expr } from '../../ir/expressions/expr.ts'
import { mentions, readsSome, someExpr } from '../../ir/expressions/expr-tree.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { when } from '../../ir/statements/statement-builders.ts'
import { type Body, rewriteStmts, stmt } from '../../ir/statements/tree.ts'

export const unswitchSelects = (body: Body): Body =>
  rewriteStmts(body, { stmt: (s) => (s.kind === 'for' ? branched(s) : undefined) })

function branched(loop: For): Stmt | undefined {
  const [only] = loop.body
  if (loop.body.length !== 1 || only?.kind !== 'store' || only.value.kind !== 'select') return undefined
  if (loop.mode.kind !== 'serial' && loop.mode.kind !== 'unroll') return undefined
  const { cond, then, else: otherwise } = only.value
  if (selects(then) === selects(otherwise)) return undefined
  if (mentions(cond, loop.var) || readsSome(cond, writesOf(loop.body))) return undefined
  const under = (value: Expr): Body => [stmt({ ...only, value })]
  return stmt<For>({ ...loop, body: [when(cond, under(then), under(otherwise))] })
}

const selects = (e: Expr): boolean => someExpr(e, (x) => x.kind === 'select')
