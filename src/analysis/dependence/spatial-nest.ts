/** Copies of the spatial loops around an element, separate from the loops that combine into it. */

import { type Expr, variable } from '../../ir/expressions/expr.ts'
import { mentions, mentionsSome, substitute } from '../../ir/expressions/expr-tree.ts'
import { copiedMode } from '../../ir/statements/clone-loops.ts'
import type { For } from '../../ir/statements/loops.ts'
import { loopsUsedBy } from '../../ir/statements/reductions.ts'
import { type Body, stmt } from '../../ir/statements/tree.ts'

export interface SpatialNest {
  readonly nest: Body
  /** Guards that still hold and mention no copy: they apply to all elements together. */
  readonly outside: readonly Expr[]
}

/**
 * Returns the statements of `core` in copies of the spatial loops of `inside` that `index` depends on, directly or
 * through the extents of such loops; `core` receives their new names. Returns undefined if an extent mentions a loop
 * that is left out.
 * Invariant: each guard of the loops inside that mentions no loop that is left out occurs once, whichever loop it was
 * on: at the innermost copy that it mentions, where all copies in it are bound, or otherwise in `outside`.
 */
export function spatialNest(
  inside: readonly For[],
  index: readonly Expr[],
  fresh: (base: string) => string,
  core: (renamed: ReadonlyMap<string, Expr>) => Body,
): SpatialNest | undefined {
  const spatial = inside.filter((l) => !l.reduce)
  const loops = loopsUsedBy(spatial, index)
  const leftOut = new Set(inside.filter((l) => !loops.includes(l)).map((l) => l.var))
  const holds = (e: Expr): boolean => !mentionsSome(e, leftOut)
  if (!loops.every((l) => holds(l.extent))) return undefined
  const names = loops.map((l) => fresh(l.var))
  const renamed = new Map<string, Expr>(loops.map((l, k) => [l.var, variable(names[k]!)]))
  const guards = inside.flatMap((l) => l.guards).filter(holds)
  const on = (g: Expr): number => loops.findLastIndex((l) => mentions(g, l.var))
  const nest = loops.reduceRight<Body>(
    (body, l, k) => [
      stmt<For>({
        ...l,
        var: names[k]!,
        mode: copiedMode(l),
        extent: substitute(l.extent, renamed),
        guards: guards.filter((g) => on(g) === k).map((g) => substitute(g, renamed)),
        body,
      }),
    ],
    core(renamed),
  )
  return { nest, outside: guards.filter((g) => on(g) < 0) }
}
