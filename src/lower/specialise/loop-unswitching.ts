/** Unswitching: loop-invariant conditions move out of statements and loops, so that they are tested once. */

import type { Names } from '../../ir/expressions/bound-names.ts'
import { type Expr, variable } from '../../ir/expressions/expr.ts'
import { mentions, readsSome, someExpr } from '../../ir/expressions/expr-tree.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { substituteStmts } from '../../ir/statements/bindings.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { when } from '../../ir/statements/statement-builders.ts'
import { type Body, hasBarrier, rewriteStmts, stmt } from '../../ir/statements/tree.ts'

/** Rewrites loops that contain one statement, whose conditions `isInvariant` tests; innermost loops first. */
const unswitch = (
  body: Body,
  f: (only: Stmt, loop: For, isInvariant: (cond: Expr) => boolean) => Stmt | undefined,
): Body =>
  rewriteStmts(body, {
    stmt: (s) =>
      s.kind === 'for' && s.body.length === 1
        ? f(s.body[0]!, s, (c) => !mentions(c, s.var) && !readsSome(c, writesOf(s.body)))
        : undefined,
  })

/**
 * Loop unswitching: `for i { if c { a } else { b } }` → `if c { for i { a } } else { for i { b } }`. Invariant reached: no serial loop
 * consists of a loop-invariant condition.
 */
export const unswitchLoops = (body: Body, names: Names): Body =>
  unswitch(body, (only, loop, isInvariant) => {
    if (only.kind !== 'if' || hasBarrier([loop]) || !isInvariant(only.cond)) return undefined
    const then = stmt<For>({ ...loop, body: only.then })
    if (only.else.length === 0) return stmt({ ...only, then: [then] })
    const name = names.fresh(loop.var)
    const otherwise = substituteStmts(only.else, new Map([[loop.var, variable(name)]]))
    return stmt({ ...only, then: [then], else: [stmt<For>({ ...loop, var: name, body: otherwise })] })
  })

/**
 * Unswitching of selections. Invariant reached: an innermost loop that stores a loop-invariant selection with exactly one arm that is a
 * selection itself stores in two branches instead. For example, a mask for blocks that need none is tested once, not per element.
 */
export const unswitchSelects = (body: Body): Body =>
  unswitch(body, (only, loop, isInvariant) => {
    if (only.kind !== 'store' || only.value.kind !== 'select') return undefined
    if (loop.mode.kind !== 'serial' && loop.mode.kind !== 'unroll') return undefined
    const { cond, then, else: otherwise } = only.value
    if (selects(then) === selects(otherwise) || !isInvariant(cond)) return undefined
    const under = (value: Expr): Body => [stmt({ ...only, value })]
    return stmt<For>({ ...loop, body: [when(cond, under(then), under(otherwise))] })
  })

const selects = (e: Expr): boolean => someExpr(e, (x) => x.kind === 'select')
