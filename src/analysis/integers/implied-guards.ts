/** Implication of conditions (elimination of bounds checks): conditions that follow from facts about sizes. */

import { all, conjuncts, type Expr, select } from '../../ir/expressions/expr.ts'
import { rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { mapSame, reuseIfSame } from '../../ir/lists.ts'
import type { Buffer, Fact, For, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, mapExprs, stmt, withBodies } from '../../ir/statements/tree.ts'
import { Facts } from './facts.ts'

/**
 * Returns the body without conditions that always hold, such as `v c + rest < n` over `n / c` tiles, where c divides n;
 * v may be a coordinate. Guards, existence tests around statements, and conditions in expressions are removed.
 * Values of the source may wrap, and count as data.
 */
export function eliminateImpliedGuards(body: Body, buffers: readonly Buffer[], sizes: readonly Fact[]): Body {
  const under = (path: readonly For[]): Conditions =>
    new Conditions(
      new Facts({
        sizes,
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
    return reuseIfSame(list, out)
  }
  return go(body, [], under([]))
}

/** Conditions in one scope, under its facts. */
class Conditions {
  readonly #facts: Facts
  readonly #memo = new Map<Expr, Expr>()

  constructor(facts: Facts) {
    this.#facts = facts
  }

  /** Returns the part of a condition that is not implied; undefined if all of it is implied. */
  needed(cond: Expr): Expr | undefined {
    const terms = conjuncts(cond)
    const needed = terms.filter((c) => !this.#facts.implies(c))
    if (needed.length === terms.length) return cond
    return needed.length > 0 ? all(needed) : undefined
  }

  /** Returns the guards that are not implied. */
  neededOf(guards: readonly Expr[]): readonly Expr[] {
    const own = mapSame(guards, this.without)
    const needed = own.filter((g) => this.needed(g) !== undefined)
    return needed.length === own.length ? own : needed
  }

  /** Returns an expression without `select`s whose conditions are implied. */
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
