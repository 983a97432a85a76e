/**
 * Control dependence: the conditions a statement stands under, and which of them can be said again outside of some loops.
 */
import { writesOf } from '../ir/accesses.ts'
import { all, conjuncts, type Expr, not } from '../ir/expr.ts'
import { mentionsAny, readsAny } from '../ir/expr-tree.ts'
import type { For, Stmt } from '../ir/loops.ts'
import { type Body, bodiesOf } from '../ir/tree.ts'

export interface Condition {
  readonly cond: Expr
  /** What an `if` says exists: `If.absent`. */
  readonly absent?: string | undefined
}

/**
 * The conditions of the `if`s around a statement of a body, and the guards of those of `loops` that are, from the outside
 * in: what an inner one reads, those further out may protect.
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
 * What of the conditions holds for all iterations of the loops `hidden` alike: the conjuncts that mention none of
 * them and read nothing that the body writes. Those that say that an element exists are always among them, where
 * its index is free of these loops.
 */
export function hoistable(
  conditions: readonly Condition[],
  hidden: readonly For[],
  body: Body,
): readonly Condition[] {
  const vars = new Set(hidden.map((l) => l.var))
  const written = writesOf(body)
  const stays = (e: Expr): boolean => !mentionsAny(e, vars) && !readsAny(e, written)
  return conditions.flatMap(({ cond, absent }) => {
    const kept = conjuncts(cond).filter(stays)
    return kept.length > 0 ? [{ cond: all(kept), absent }] : []
  })
}
