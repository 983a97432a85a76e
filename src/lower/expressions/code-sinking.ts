/**
 * Code sinking, to reduce register pressure. Invariant reached: a name that is first used after a loop is computed after the loop. A name
 * that only the branches of a block-uniform condition use is computed in each branch, if a branch contains a loop with a barrier. Loads
 * are not moved, because they have latency to hide.
 */

import type { Names } from '../../ir/expressions/bound-names.ts'
import { mentions, someExpr } from '../../ir/expressions/expr-tree.ts'
import { mapSame } from '../../ir/lists.ts'
import { groupBy } from '../../ir/memoize.ts'
import { freeVarsOf, renameBound } from '../../ir/statements/bindings.ts'
import { hasBlockBarrier, isUniformCondition } from '../../ir/statements/clone-loops.ts'
import type { If, Let, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, mapBodies, someStmt, withBodies } from '../../ir/statements/tree.ts'

export function sinkCode(body: Body, names: Names): Body {
  const inner = mapSame(intoBranches(body, names), (s) => mapBodies(s, (b) => sinkCode(b, names)))
  if (!inner.some(isLoop)) return inner
  /** Element k is the number of loops among the first k statements. */
  const loops = [0]
  for (const s of inner) loops.push(loops.at(-1)! + (isLoop(s) ? 1 : 0))
  const places = inner.map((_, k) => k)
  const firstUse = new Map<string, number>()
  for (let k = inner.length - 1; k >= 0; k--) {
    const s = inner[k]!
    const use = s.kind === 'let' ? firstUse.get(s.name) : undefined
    if (use !== undefined && isMovable(s) && loops[use]! > loops[k]!) places[k] = use
    for (const v of freeVarsOf([s])) firstUse.set(v, Math.min(firstUse.get(v) ?? Infinity, places[k]!))
  }
  if (places.every((p, k) => p === k)) return inner
  const from = groupBy(places.keys(), (k) => places[k]!)
  return inner.flatMap((_, k) => (from.get(k) ?? []).map((n) => inner[n]!))
}

const isLoop = (s: Stmt): boolean => s.kind === 'for' || s.kind === 'while'

/** Returns true for a let of pure arithmetic without memory accesses. */
const isMovable = (s: Stmt): s is Let =>
  s.kind === 'let' && !s.lane && !someExpr(s.value, (e) => e.kind === 'load' || e.kind === 'search')

/** Moves lets that only the branches of one condition use to the beginning of these branches. */
function intoBranches(body: Body, names: Names): Body {
  const versions = new Map(body.flatMap((s, k) => (hasVersions(s) ? [[k, s] as const] : [])))
  if (versions.size === 0) return body
  /** Index of the only statement that uses a name, or `several`. */
  const users = new Map<string, number | 'several'>()
  const moved = new Map<number, Let[]>()
  for (let k = body.length - 1; k >= 0; k--) {
    const s = body[k]!
    const user = s.kind === 'let' ? users.get(s.name) : undefined
    const within = typeof user === 'number' ? versions.get(user) : undefined
    let place = k
    if (within && isMovable(s) && !mentions(within.cond, s.name)) {
      place = user as number
      moved.set(place, [s, ...(moved.get(place) ?? [])])
    }
    for (const v of freeVarsOf([s])) users.set(v, (users.get(v) ?? place) === place ? place : 'several')
  }
  if (moved.size === 0) return body
  const gone = new Set<Stmt>([...moved.values()].flat())
  return body.flatMap((s, k): Body => {
    const lets = moved.get(k)
    if (!lets) return gone.has(s) ? [] : [s]
    const [then, otherwise] = bodiesOf(s).map((b) => withUsed(lets, b)) as [Body, Body]
    const named = new Map(lets.map((l) => [l.name, names.fresh(l.name)]))
    return [withBodies(s, [then, renameBound(otherwise, named)])]
  })
}

/** Returns true for a block-uniform condition with two branches, at least one of which contains a loop with a barrier. */
const hasVersions = (s: Stmt): s is If =>
  isUniformCondition(s) && s.else.length > 0 && someStmt([s], (x) => isLoop(x) && hasBlockBarrier(x))

function withUsed(lets: readonly Let[], body: Body): Body {
  const used = new Set(freeVarsOf(body))
  const usedLets = lets.toReversed().filter((l) => {
    if (used.has(l.name)) for (const v of freeVarsOf([l])) used.add(v)
    return used.has(l.name)
  })
  return [...usedLets.reverse(), ...body]
}
