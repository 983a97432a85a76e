/** Loop unswitching. Invariant reached: no serial loop consists of a loop-invariant condition; the condition is around the loop. */

import type { Names } from '../../ir/expressions/bound-names.ts'
import { type Expr, variable } from '../../ir/expressions/expr.ts'
import { mentions, someExpr } from '../../ir/expressions/expr-tree.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { substituteStmts } from '../../ir/statements/bindings.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { type Body, hasBarrier, rewriteStmts, stmt } from '../../ir/statements/tree.ts'

export function unswitchLoops(body: Body, names: Names): Body {
  return rewriteStmts(body, { stmt: (s) => (s.kind === 'for' ? around(s, names) : undefined) })
}

/** `for i { if c { a } else { b } }` → `if c { for i { a } } else { for i { b } }`; innermost loops first. */
function around(loop: For, names: Names): Stmt | undefined {
  const [only] = loop.body
  if (loop.body.length !== 1 || only?.kind !== 'if' || hasBarrier([loop])) return undefined
  const written = writesOf(loop.body)
  const changes = (e: Expr): boolean => (e.kind === 'load' || e.kind === 'search') && written.has(e.buffer)
  if (mentions(only.cond, loop.var) || someExpr(only.cond, changes)) return undefined
  const then = stmt<For>({ ...loop, body: only.then })
  if (only.else.length === 0) return stmt({ ...only, then: [then] })
  const name = names.fresh(loop.var)
  const otherwise = substituteStmts(only.else, new Map([[loop.var, variable(name)]]))
  return stmt({ ...only, then: [then], else: [stmt<For>({ ...loop, var: name, body: otherwise })] })
}
