/** Implication of guards (elimination of bounds checks). Guards that facts about sizes decide. */

import type { Expr } from '../../ir/expr.ts'
import { mapSame } from '../../ir/lists.ts'
import type { Buffer, Fact, For, Stmt } from '../../ir/loops.ts'
import { type Body, bodiesOf, stmt, withBodies } from '../../ir/tree.ts'
import { isWritten, valuesIn } from '../../ir/wrapping-values.ts'
import { Facts } from './facts.ts'

/**
 * The loops without the guards that always hold: `v c + rest < n` over `n / c` tiles, where c divides n; v may be a coordinate.
 * What the text computes may wrap, and is decided as data is.
 */
export function eliminateImpliedGuards(body: Body, buffers: readonly Buffer[], sizes: readonly Fact[]): Body {
  const values = valuesIn(body)
  const ofData = (e: Expr): boolean => isWritten(values, e)
  const go = (list: Body, path: readonly For[]): Body =>
    mapSame(list, (s): Stmt => {
      const inside = s.kind === 'for' ? [...path, s] : path
      const next = withBodies(
        s,
        bodiesOf(s).map((b) => go(b, inside)),
      )
      if (next.kind !== 'for' || next.guards.length === 0) return next
      const facts = new Facts({
        sizes,
        ofData,
        end: (leaf) =>
          leaf.kind === 'var'
            ? inside.findLast((l) => l.var === leaf.name)?.extent
            : leaf.kind === 'load'
              ? buffers.find((b) => b.name === leaf.buffer)?.below
              : undefined,
      })
      const guards = next.guards.filter((g) => !facts.implies(g))
      return guards.length === next.guards.length ? next : stmt({ ...next, guards })
    })
  return go(body, [])
}
