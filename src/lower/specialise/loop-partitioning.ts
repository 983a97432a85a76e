/**
 * Full tiles without guards. The last tile of a loop `for v in 0..ceildiv(n, c)` may be partial, so loops inside have guards
 * `v * c + rest < n`. In full tiles, these hold because rest < c. Nested tiles (`ceildiv(ceildiv(n, b), c)`) are full if all b * c elements
 * exist. Bodies with shared memory are not copied, because each copy would allocate it.
 */

import { type Facts, factsInside } from '../../analysis/integers/facts.ts'
import type { Interval } from '../../analysis/integers/interval.ts'
import { coefficientOf, linear, plus, sameSum, sumExpr } from '../../analysis/integers/linear.ts'
import { type Tiling, tilings } from '../../analysis/integers/tiles.ts'
import { all, ceildiv, div, type Expr, int, lt, min, mod, sub, variable } from '../../ir/expressions/expr.ts'
import { someExpr } from '../../ir/expressions/expr-tree.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2 } from '../../ir/statements/loops.ts'
import { type Body, rewriteStmts, stmt, walkStmts } from '../../ir/statements/tree.ts'
import { isShared, sharesWork } from '../memory/cooperative-copies.ts'
import { atLoops, naturalsIn, specialiseNests } from './specialise.ts'

/**
 * Peeling of the partial last tile. Invariant reached: a serial loop runs its n / c full tiles without these guards, and the peeled last
 * tile has guards `rest < n % c`. Only loops with guards around constant loops are partitioned, because their guards are evaluated often.
 */
export const partitionLoops = (kernel: Kernel2): Kernel2 =>
  specialiseNests(
    kernel,
    atLoops((loop) => {
      const tiles = loop.mode.kind === 'serial' && loop.guards.length === 0 ? tilesOf(loop) : undefined
      if (!tiles || !naturalsIn(kernel)(tiles.total) || isShared(loop)) return undefined
      return {
        end: div(tiles.total, int(tiles.size)),
        holds: tiles.guards.keys(),
        last: lastTile(loop.body, tiles),
      }
    }),
  )

/**
 * Versioning for full tiles. Invariant reached: if copies of unrolled loops would each test their bounds, a block tests once whether its
 * tile is full, and then runs a body without conditions, so the loads of all copies are in flight together. The test is uniform in a
 * block, so barriers remain legal.
 */
export const versionFullTiles = (kernel: Kernel2): Kernel2 =>
  specialiseNests(kernel, (list, { path }) => {
    const isBlock = (l: For): boolean => boundIndex(l, 'block') !== undefined
    const loop = path.at(-1)
    if (loop?.body !== list || !isBlock(loop) || loopsOf(list).some(isBlock) || sharesWork(list))
      return undefined
    const inside = guardsOf(list)
    const tested = path.filter(isBlock).flatMap((l) => {
      // The number of a block's tile is the index of the block, or the index counted from the end.
      const at = variable(l.var)
      return [at, sub(sub(l.extent, int(1)), at)].flatMap((place) => {
        const tiles = tilesOf(l, true, place)
        const isUsed =
          tiles && naturalsIn(kernel)(tiles.total) && [...tiles.guards.keys()].some((g) => inside.has(g))
        return isUsed ? [{ place, tiles }] : []
      })
    })
    const holds = new Set(tested.flatMap((t) => [...t.tiles.guards.keys()]))
    if (![...holds].some((g) => inside.get(g))) return undefined
    const full = all(tested.map((t) => lt(t.place, div(t.tiles.total, int(t.tiles.size)))))
    return { from: 0, to: list.length, when: full, holds }
  })

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

interface Tiles {
  /** `total` is n and `size` is c of the extent `ceildiv(n, c)`. */
  readonly total: Expr
  readonly size: number
  /** Inner guards that hold in full tiles. */
  readonly guards: ReadonlyMap<Expr, TileGuard>
}

interface TileGuard {
  readonly rest: Expr
  /** Number of guarded units per tile: `size` for elements, or the number of inner tiles. */
  readonly by: number
}

/**
 * Returns `rest` and its range for a guard `place * c + rest < n` of a loop over `ceildiv(n, c)` tiles with number `place`. Undefined for
 * other conditions, and if `rest` contains an operation that may wrap.
 */
export function restIn(
  g: Expr,
  { var: name }: For,
  { total, by }: Tiling,
  facts: Pick<Facts, 'range' | 'wraps'>,
  place: Expr = variable(name),
): { readonly rest: Expr; readonly range: Interval } | undefined {
  if (g.kind !== 'binary' || g.op !== 'lt' || !sameSum(g.b, total)) return undefined
  if (coefficientOf(g.a, name) !== by * coefficientOf(place, name)) return undefined
  const rest = sumExpr(plus(linear(g.a), linear(place), -by))
  return someExpr(rest, facts.wraps) ? undefined : { rest, range: facts.range(rest) }
}

/** Returns the tiling of a loop with guards around constant loops; undefined if it has none. With `any`, all guards inside count. */
function tilesOf(loop: For, any = false, place?: Expr): Tiles | undefined {
  const all = tilings(loop.extent).slice(0, any ? 1 : undefined)
  if (all.length === 0) return undefined
  const guards = new Map<Expr, TileGuard>()
  const totals = new Map<number, Expr>()
  walkStmts(loop.body, (s, path) => {
    if (s.kind !== 'for' || (!any && loopsOf(s.body).some((l) => l.extent.kind !== 'const'))) return
    const facts = factsInside([...path, s], { buffers: [], body: [] })
    for (const g of s.guards)
      for (const tiles of all) {
        const guardRest = restIn(g, loop, tiles, facts, place)
        if (!guardRest || g.kind !== 'binary') continue
        const { known, hi, fits } = guardRest.range
        if (!known || !fits || hi >= tiles.by) continue
        guards.set(g, { rest: guardRest.rest, by: tiles.by })
        if (!totals.has(tiles.by)) totals.set(tiles.by, g.b)
        break
      }
  })
  const size = Math.max(...totals.keys())
  const total = totals.get(size)
  return total && { total, size, guards }
}

/** Returns the body of the last tile: its guards are `rest < n % c`, and a loop whose variable is `rest` ends there. */
function lastTile(body: Body, { total, size, guards }: Tiles): Body {
  const left = mod(total, int(size))
  const leftOf = (by: number): Expr => (by === size ? left : ceildiv(left, int(size / by)))
  return rewriteStmts(body, {
    stmt: (s) => {
      if (s.kind !== 'for' || s.guards.length === 0) return undefined
      const endOf = (g: Expr): number | undefined => {
        const { rest, by } = guards.get(g) ?? {}
        return rest?.kind === 'var' && rest.name === s.var ? by : undefined
      }
      const [end] = s.guards.flatMap((g) => endOf(g) ?? [])
      const others = s.guards.flatMap((g) => {
        const tile = guards.get(g)
        if (!tile) return [g]
        return end !== undefined && endOf(g) === end ? [] : [lt(tile.rest, leftOf(tile.by))]
      })
      if (end === undefined) return stmt<For>({ ...s, guards: others })
      const most = end === size ? size - 1 : end
      const covers = s.extent.kind === 'const' && s.extent.value >= most
      const extent = covers ? leftOf(end) : min(s.extent, leftOf(end))
      return stmt<For>({ ...s, extent, guards: others, mode: { kind: 'serial' } })
    },
  })
}
