/**
 * Bounding boxes of gathers. If an index is a sum of loop variables and of array elements with a constant upper
 * bound, a copy of all elements that may be accessed has a dimension for the array element, as if it were a loop.
 */
import { Facts } from '../../../analysis/integers/facts.ts'
import { boundKey, linear } from '../../../analysis/integers/linear.ts'
import { type Expr, int, type Load, lt, variable } from '../../../ir/expressions/expr.ts'
import { mentions, rewriteExpr, someExpr } from '../../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../../ir/expressions/structural-equality.ts'
import type { LoopLocation } from '../../../ir/statements/definitions.ts'
import type { Buffer, For } from '../../../ir/statements/loops.ts'
import { forLoop } from '../../../ir/statements/statement-builders.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import type { Use } from '../../legality/buffer-uses.ts'
import type { Context } from '../../state/context.ts'

/** An access in which loops replace the loaded array elements. */
export interface Bounding<A> {
  readonly access: A
  /** The loaded array element that each new loop variable replaces. */
  readonly held: ReadonlyMap<string, Expr>
}

/**
 * Returns the loads with a constant upper bound that the sum `e` adds, if each occurs in one term only. Loads in the
 * index of a table are included unless a condition of `asked` reads them: each of their values is a valid index of
 * the table.
 */
function addends(e: Expr, bounded: (x: Load) => boolean, asked: readonly Expr[]): readonly Load[] {
  const terms = [...linear(e).terms.values()].map((t) => t.term)
  const alone = (x: Load, term: Expr): boolean =>
    terms.every((y) => y === term || !someExpr(y, (z) => keyOf(z) === keyOf(x)))
  return terms.flatMap((x) => {
    if (x.kind !== 'load') return []
    if (bounded(x)) return alone(x, x) ? [x] : []
    if (x.index.length !== 1) return []
    const unasked = (y: Load): boolean => !asked.some((g) => someExpr(g, (z) => keyOf(z) === keyOf(y)))
    return addends(x.index[0]!, bounded, asked).filter((y) => alone(y, x) && unasked(y))
  })
}

/**
 * Returns a function that adds loops to an access: one loop for each bounded array element in an index of the access.
 * Guards restrict the new loops to indices inside of the buffer.
 */
export function boundingOf(cx: Context, at: LoopLocation, buffer: Buffer) {
  const endOf = (e: Expr): number | undefined => {
    const below = e.kind === 'load' ? cx.buffer(e.buffer).below : undefined
    return below?.kind === 'const' ? below.value : undefined
  }
  return <A extends Pick<Use, 'index' | 'path'>>(access: A): Bounding<A> => {
    const held = new Map<string, Load>()
    const named = (e: Expr): Expr =>
      rewriteExpr(e, (x) => {
        const found = x.kind === 'load' && [...held].find(([, y]) => keyOf(y) === keyOf(x))
        return found ? variable(found[0]) : undefined
      })
    const inside = [...at.path, at.loop, ...access.path]
    const end = (leaf: Expr): Expr | undefined => {
      if (leaf.kind === 'load') return cx.buffer(leaf.buffer).below
      if (leaf.kind !== 'var') return undefined
      const own = held.get(leaf.name)
      return own ? int(endOf(own)!) : inside.findLast((l) => l.var === leaf.name)?.extent
    }
    const facts = new Facts({ sizes: cx.kernel.facts, end })
    // Guards that always hold are ignored.
    const asks = (g: Expr): boolean => !facts.implies(g)
    const asked = access.path.flatMap((l) => l.guards.filter(asks))
    const index = access.index.map((e, k) => {
      for (const [n, x] of addends(e, (l) => endOf(l) !== undefined, asked).entries())
        held.set(`@${k}.${n}`, x)
      return named(e)
    })
    const loops = [...held].map(([name, x]): For => {
      const leaving = index.flatMap((e, k) =>
        mentions(e, name) && !facts.below(e, buffer.shape[k]!) ? [lt(e, buffer.shape[k]!)] : [],
      )
      const { nest } = at.loop
      return forLoop(name, int(endOf(x)!), [], { name: x.buffer, nest, guards: leaving })
    })
    // Bounds checks of the element are guards of the new loops already, so the original guards are removed.
    const said = new Set(loops.flatMap((l) => l.guards.map(boundKey)))
    const path = access.path.map((l) => {
      const guards = l.guards.filter((g) => asks(g) && !said.has(boundKey(named(g))))
      return guards.length === l.guards.length ? l : stmt<For>({ ...l, guards })
    })
    return { access: { ...access, index, path: [...path, ...loops] }, held }
  }
}
