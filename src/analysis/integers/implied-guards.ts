/** Implication of conditions (elimination of bounds checks). Conditions that facts about sizes decide. */

import { all, conjuncts, type Expr, select } from '../../ir/expr.ts'
import { rewriteExpr } from '../../ir/expr-tree.ts'
import { mapSame, unlessSame } from '../../ir/lists.ts'
import type { Buffer, Fact, For, Stmt } from '../../ir/loops.ts'
import { type Body, bodiesOf, mapExprs, stmt, withBodies } from '../../ir/tree.ts'
import { isWritten, valuesIn } from '../../ir/wrapping-values.ts'
import { Facts } from './facts.ts'

/**
 * The loops without the conditions that always hold: `v c + rest < n` over `n / c` tiles, where c divides n; v may be a
 * coordinate. They are guards, or what says that an element exists, around statements and in expressions. What the text
 * computes may wrap, and is decided as data is.
 */
export function eliminateImpliedGuards(body: Body, buffers: readonly Buffer[], sizes: readonly Fact[]): Body {
  const values = valuesIn(body)
  const ofData = (e: Expr): boolean => isWritten(values, e)
  const under = (path: readonly For[]): Conditions =>
    new Conditions(
      new Facts({
        sizes,
        ofData,
        end: (leaf) =>
          leaf.kind === 'var'
            ? path.findLast((l) => l.var === leaf.name)?.extent
            : leaf.kind === 'load'
              ? buffers.find((b) => b.name === leaf.buffer)?.below
              : undefined,
      }),
    )
  const go = (list: Body, path: readonly For[], around: Conditions): Body => {
    const out = list.flatMap((s): Body => {
      if (s.kind === 'for') {
        const inside = [...path, s]
        const conditions = under(inside)
        const body = go(s.body, inside, conditions)
        const extent = around.without(s.extent)
        const guards = conditions.neededOf(s.guards)
        const same = extent === s.extent && guards === s.guards
        return [same ? withBodies(s, [body]) : stmt<For>({ ...s, extent, guards, body })]
      }
      const inner = bodiesOf(s).map((b) => go(b, path, around))
      const next = mapExprs(withBodies(s, inner), around.without)
      if (next.kind !== 'if') return [next]
      const cond = around.needed(next.cond)
      if (cond === undefined) return next.then
      return [cond === next.cond ? next : stmt<Stmt>({ ...next, cond })]
    })
    return unlessSame(list, out)
  }
  return go(body, [], under([]))
}

/** Conditions in one place, where the facts hold. */
class Conditions {
  readonly #facts: Facts
  readonly #memo = new Map<Expr, Expr>()

  constructor(facts: Facts) {
    this.#facts = facts
  }

  /** What does not hold anyway; `undefined`: all does. */
  needed(cond: Expr): Expr | undefined {
    const terms = conjuncts(cond)
    const needed = terms.filter((c) => !this.#facts.implies(c))
    if (needed.length === terms.length) return cond
    return needed.length > 0 ? all(needed) : undefined
  }

  /** The guards that decide something. */
  neededOf(guards: readonly Expr[]): readonly Expr[] {
    const own = mapSame(guards, this.without)
    const needed = own.filter((g) => this.needed(g) !== undefined)
    return needed.length === own.length ? own : needed
  }

  /** An expression without what is chosen by conditions that hold. */
  readonly without = (e: Expr): Expr =>
    rewriteExpr(
      e,
      (x) => {
        if (x.kind !== 'select') return undefined
        const cond = this.needed(x.cond)
        if (cond === undefined) return x.then.dtype === x.dtype ? x.then : undefined
        return cond === x.cond ? undefined : select(cond, x.then, x.else, x.span)
      },
      this.#memo,
    )
}
