/** Unswitching: loop-invariant conditions move out of statements and loops, so that they are tested once. */

import type { Names } from '../../ir/expressions/bound-names.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { mentions, readsSome, someExpr } from '../../ir/expressions/expr-tree.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import type { For } from '../../ir/statements/loops.ts'
import { type Body, hasBarrier } from '../../ir/statements/tree.ts'
import { atLoops, specialise } from './specialise.ts'

const isInvariant = (cond: Expr, loop: For): boolean =>
  !mentions(cond, loop.var) && !readsSome(cond, writesOf(loop.body))

/**
 * Loop unswitching: `for i { if c { a } else { b } }` → `if c { for i { a } } else { for i { b } }`. Invariant reached: no serial loop
 * consists of a loop-invariant condition.
 */
export const unswitchLoops = (body: Body, names: Names): Body =>
  specialise(
    body,
    atLoops((loop) => {
      const [only, ...others] = loop.body
      const isMoved =
        only?.kind === 'if' && others.length === 0 && !hasBarrier([loop]) && isInvariant(only.cond, loop)
      return isMoved ? { when: only.cond } : undefined
    }),
    { names, innermost: true },
  )

/**
 * Unswitching of selections. Invariant reached: an innermost loop that stores a loop-invariant selection with exactly one arm that is a
 * selection itself stores in two branches instead. For example, a mask for blocks that need none is tested once, not per element.
 */
export const unswitchSelects = (body: Body, names: Names): Body =>
  specialise(
    body,
    (list, { path }) => {
      const [loop, only] = [path.at(-1), list[0]]
      if (loop?.body !== list || list.length > 1 || only?.kind !== 'store') return undefined
      if (only.value.kind !== 'select' || (loop.mode.kind !== 'serial' && loop.mode.kind !== 'unroll'))
        return undefined
      const { cond, then, else: otherwise } = only.value
      if (selects(then) === selects(otherwise) || !isInvariant(cond, loop)) return undefined
      return { from: 0, to: 1, when: cond }
    },
    { names },
  )

const selects = (e: Expr): boolean => someExpr(e, (x) => x.kind === 'select')
