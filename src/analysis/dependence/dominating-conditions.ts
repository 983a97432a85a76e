/** Control dependence: the conditions around a statement, and those that can be evaluated outside of some loops. */

import { all, conjuncts, type Expr, not } from '../../ir/expressions/expr.ts'
import { mentionsSome, readsSome } from '../../ir/expressions/expr-tree.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf } from '../../ir/statements/tree.ts'

export interface Condition {
  readonly cond: Expr
  /** The buffer whose element the `if` tests for existence (`If.absent`). */
  readonly absent?: string | undefined
}

/**
 * Returns the conditions of the `if`s around a statement of a body, and the guards of the loops around it that are in
 * `loops`, from the outside in: outer conditions may protect reads of inner ones.
 */
export function conditionsAround(body: Body, inner: Stmt, loops: readonly For[] = []): readonly Condition[] {
  const find = (list: Body): readonly Condition[] | undefined => {
    for (const s of list) {
      if (s === inner) return []
      for (const b of bodiesOf(s)) {
        const within = find(b)
        if (!within) continue
        if (s.kind === 'for' && loops.includes(s)) return [...s.guards.map((cond) => ({ cond })), ...within]
        if (s.kind !== 'if') return within
        return b === s.then
          ? [{ cond: s.cond, absent: s.absent }, ...within]
          : [{ cond: not(s.cond) }, ...within]
      }
    }
    return undefined
  }
  return find(body) ?? []
}

/**
 * Returns the conjuncts that have the same value in all iterations of the loops `hidden`: they mention no such loop,
 * and read nothing that the body writes. Conjuncts that test the existence of an element are included if its index does
 * not depend on these loops.
 */
export function hoistable(
  conditions: readonly Condition[],
  hidden: readonly For[],
  body: Body,
): readonly Condition[] {
  const vars = new Set(hidden.map((l) => l.var))
  const written = writesOf(body)
  const stays = (e: Expr): boolean => !mentionsSome(e, vars) && !readsSome(e, written)
  return conditions.flatMap(({ cond, absent }) => {
    const kept = conjuncts(cond).filter(stays)
    return kept.length > 0 ? [{ cond: all(kept), absent }] : []
  })
}
