/**
 * Loop versioning for full and partial tiles. Invariant reached: if the last tile of a loop over blocks may be partial, and unrolled
 * copies would each test their bounds, a block tests once. It runs a body without conditions for a full tile, and the original body
 * otherwise, so the loads of all copies are in flight together.
 * The test is uniform in a block, so barriers remain legal. Bodies with shared memory are not versioned, because each version would
 * allocate it.
 */

import { naturals } from '../../analysis/integers/ranges.ts'
import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import { all, div, type Expr, int, lt, sub, variable } from '../../ir/expressions/expr.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { mapSame } from '../../ir/lists.ts'
import { bodyAt } from '../../ir/statements/clone-loops.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2 } from '../../ir/statements/loops.ts'
import { when } from '../../ir/statements/statement-builders.ts'
import { type Body, mapBodies, stmt, walkStmts } from '../../ir/statements/tree.ts'
import { sharesWork } from '../memory/cooperative-copies.ts'
import { reguard, type Tiles, tilesOf } from './loop-partitioning.ts'

export function versionFullTiles(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const natural = naturals(kernel.body, kernel.params, kernel.buffers)
  const go = (list: Body, around: readonly For[]): Body =>
    mapSame(list, (s) => {
      const blocks = s.kind === 'for' && boundIndex(s, 'block') ? [...around, s] : around
      if (s.kind === 'for' && boundIndex(s, 'block') && !loopsOf(s.body).some((l) => boundIndex(l, 'block')))
        return withFullTileVersion(s, blocks, natural, names)
      return mapBodies(s, (b) => go(b, blocks))
    })
  const body = go(kernel.body, [])
  return body === kernel.body ? kernel : { ...kernel, body }
}

/** Returns the innermost loop over blocks with a version of its body for full tiles; `loop` itself if that saves no repeated test. */
function withFullTileVersion(
  loop: For,
  blocks: readonly For[],
  natural: (e: Expr) => boolean,
  names: Names,
): For {
  const tiles = blocks.flatMap((l) =>
    placesOf(l).flatMap((place): { readonly place: Expr; readonly tiles: Tiles }[] => {
      const placeTiles = tilesOf(l, true, place)
      return placeTiles && natural(placeTiles.total) ? [{ place, tiles: placeTiles }] : []
    }),
  )
  const inside = guardsOf(loop.body)
  const tested = tiles.filter((t) => [...t.tiles.guards.keys()].some((g) => inside.has(g)))
  const repeated = tested.some((t) => [...t.tiles.guards.keys()].some((g) => inside.get(g)))
  if (!repeated || sharesWork(loop.body)) return loop
  const implied = new Set(tested.flatMap((t) => [...t.tiles.guards.keys()]))
  const unguarded = reguard(loop.body, (g) => (implied.has(g) ? [] : [g]))
  const then = bodyAt({ ...loop, body: unguarded }, variable(loop.var), names)
  const cond = all(tested.map((t) => lt(t.place, div(t.tiles.total, int(t.tiles.size)))))
  return stmt({ ...loop, body: [when(cond, then, loop.body)] })
}

/** Candidates for the number of a block's tile: the block index, or the index counted from the end. */
function placesOf(loop: For): readonly Expr[] {
  const at = variable(loop.var)
  return [at, sub(sub(loop.extent, int(1)), at)]
}

/** Guards of the loops inside, with true for those that copies of an unrolled loop would repeat. */
function guardsOf(body: Body): ReadonlyMap<Expr, boolean> {
  const out = new Map<Expr, boolean>()
  walkStmts(body, (s, path) => {
    if (s.kind !== 'for') return
    const repeated = [...path, s].some((l) => l.mode.kind === 'unroll' || l.mode.kind === 'vectorize')
    for (const g of s.guards) out.set(g, repeated || (out.get(g) ?? false))
  })
  return out
}
