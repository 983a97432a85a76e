/** Full coverage: whether loops visit all elements of a buffer, or of some of its dimensions. */
import { type Expr, int, isOne } from '../../ir/expressions/expr.ts'
import { mentions, mentionsSome } from '../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { copyNest } from '../../ir/statements/clone-loops.ts'
import type { Fact, For } from '../../ir/statements/loops.ts'
import { loopsUsedBy } from '../../ir/statements/reductions.ts'
import type { Body } from '../../ir/statements/tree.ts'
import { Facts } from '../integers/facts.ts'
import { keepTerms, type Linear, linear, linearKey, loopMap } from '../integers/linear.ts'
import { loopDigits } from '../integers/mixed-radix.ts'
import { tileReach } from '../integers/tiles.ts'

/**
 * Returns whether loops, as digits of each dimension, visit every element exactly once. Conditions may only cut off the
 * last tile.
 */
export function visitsAll(
  index: readonly Expr[],
  shape: readonly Expr[],
  path: readonly For[],
  conditions: readonly Expr[],
  sizes: readonly Fact[] | undefined,
): boolean {
  const facts = new Facts({ sizes })
  const loops = loopMap(path)
  const unused = new Set(path.filter((l) => !isOne(l.extent)))
  const guards = new Set(conditions)
  const digitsOf = (e: Expr): Linear =>
    keepTerms(linear(e), ({ term }) => {
      const loop = term.kind === 'var' ? loops.get(term.name) : undefined
      return !loop || !isOne(loop.extent)
    })
  const isTrimmed = (digits: Linear, extent: Expr): boolean => {
    const trim = [...guards].find(
      (g) =>
        g.kind === 'binary' &&
        g.op === 'lt' &&
        sameExpr(g.b, extent) &&
        linearKey(digitsOf(g.a)) === linearKey(digits),
    )
    return trim !== undefined && guards.delete(trim)
  }
  const covers = (e: Expr, extent: Expr): boolean => {
    const sum = digitsOf(e)
    const digits = loopDigits(sum, (name) => loops.get(name))
    if (!digits?.every((d) => unused.delete(d.of)) || sum.constant !== 0) return false
    const equal = sizes?.find(
      (f) => f.relation === 'equal' && extent.kind === 'var' && f.size === extent.name,
    )
    const reach = tileReach(digits, extent, facts) ?? (equal && tileReach(digits, int(equal.by)))
    return reach !== undefined && (isTrimmed(sum, extent) || reach === 'exact')
  }
  return index.every((e, k) => covers(e, shape[k]!)) && unused.size === 0 && guards.size === 0
}

// Copies of the spatial loops around an element, separate from the loops that combine into it.

interface SpatialNest {
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
  const guards = inside.flatMap((l) => l.guards).filter(holds)
  const on = (g: Expr): number => loops.findLastIndex((l) => mentions(g, l.var))
  const guarded = loops.map((l, k) => ({ ...l, guards: guards.filter((g) => on(g) === k) }))
  return { nest: copyNest(guarded, { fresh }, new Map(), core), outside: guards.filter((g) => on(g) < 0) }
}
