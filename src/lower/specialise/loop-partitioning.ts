/**
 * Full tiles without guards. The last tile of a loop `for v in 0..ceildiv(n, c)` may be partial, so loops inside have guards
 * `v * c + rest < n`. In full tiles, these hold because rest < c. Nested tiles (`ceildiv(ceildiv(n, b), c)`) are full if all b * c elements
 * exist. Bodies with shared memory are not copied, because each copy would allocate it.
 */

import type { Interval } from '../../analysis/integers/interval.ts'
import { coefficientOf, linear, loopMap, plus, sameSum, sumExpr } from '../../analysis/integers/linear.ts'
import { type Register, registersOver } from '../../analysis/integers/ranges.ts'
import { type Tiling, tilings } from '../../analysis/integers/tiles.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { all, ceildiv, div, type Expr, int, lt, min, mod, sub, variable } from '../../ir/expressions/expr.ts'
import { someExpr } from '../../ir/expressions/expr-tree.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { bodyAt } from '../../ir/statements/clone-loops.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2 } from '../../ir/statements/loops.ts'
import { when } from '../../ir/statements/statement-builders.ts'
import { type Body, rewriteStmts, stmt, walkStmts } from '../../ir/statements/tree.ts'
import { sharesWork } from '../memory/cooperative-copies.ts'
import { isShared, naturalsIn, specialiseLoops } from './loop-specialisation.ts'

/**
 * Peeling of the partial last tile. Invariant reached: a serial loop runs its n / c full tiles without these guards, and the peeled last
 * tile has guards `rest < n % c`. Only loops with guards around constant loops are partitioned, because their guards are evaluated often.
 */
export const partitionLoops = (kernel: Kernel2): Kernel2 =>
  specialiseLoops(kernel, (loop, _, { names }) => {
    const tiles = loop.mode.kind === 'serial' && loop.guards.length === 0 ? tilesOf(loop) : undefined
    return tiles && naturalsIn(kernel)(tiles.total) && !isShared(loop)
      ? partition(loop, tiles, names)
      : undefined
  })

/**
 * Versioning for full tiles. Invariant reached: if copies of unrolled loops would each test their bounds, a block tests once whether its
 * tile is full, and then runs a body without conditions, so the loads of all copies are in flight together. The test is uniform in a
 * block, so barriers remain legal.
 */
export const versionFullTiles = (kernel: Kernel2): Kernel2 =>
  specialiseLoops(kernel, (loop, path, { names }) => {
    const isBlock = (l: For): boolean => boundIndex(l, 'block') !== undefined
    if (!isBlock(loop) || loopsOf(loop.body).some(isBlock) || sharesWork(loop.body)) return undefined
    const inside = guardsOf(loop.body)
    const tested = [...path.filter(isBlock), loop].flatMap((l) =>
      placesOf(l).flatMap((place) => {
        const tiles = tilesOf(l, true, place)
        const isUsed =
          tiles && naturalsIn(kernel)(tiles.total) && [...tiles.guards.keys()].some((g) => inside.has(g))
        return isUsed ? [{ place, tiles }] : []
      }),
    )
    const implied = new Set(tested.flatMap((t) => [...t.tiles.guards.keys()]))
    if (![...implied].some((g) => inside.get(g))) return undefined
    const unguarded = reguard(loop.body, (g) => (implied.has(g) ? [] : [g]))
    const then = bodyAt({ ...loop, body: unguarded }, variable(loop.var), names)
    const cond = all(tested.map((t) => lt(t.place, div(t.tiles.total, int(t.tiles.size)))))
    return [stmt<For>({ ...loop, body: [when(cond, then, loop.body)] })]
  })

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
  registers: (e: Expr) => Register,
  place: Expr = variable(name),
): { readonly rest: Expr; readonly range: Interval } | undefined {
  if (g.kind !== 'binary' || g.op !== 'lt' || !sameSum(g.b, total)) return undefined
  if (coefficientOf(g.a, name) !== by * coefficientOf(place, name)) return undefined
  const rest = sumExpr(plus(linear(g.a), linear(place), -by))
  if (someExpr(rest, (e) => registers(e).wraps)) return undefined
  return { rest, range: registers(rest).range }
}

/** Returns the tiling of a loop with guards around constant loops; undefined if it has none. With `any`, all guards inside count. */
function tilesOf(loop: For, any = false, place?: Expr): Tiles | undefined {
  const all = tilings(loop.extent).slice(0, any ? 1 : undefined)
  if (all.length === 0) return undefined
  const guards = new Map<Expr, TileGuard>()
  const totals = new Map<number, Expr>()
  walkStmts(loop.body, (s, path) => {
    if (s.kind !== 'for' || (!any && loopsOf(s.body).some((l) => l.extent.kind !== 'const'))) return
    const registers = registersOver(loopMap([...path, s]))
    for (const g of s.guards)
      for (const tiles of all) {
        const guardRest = restIn(g, loop, tiles, registers, place)
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

/** The number of elements or inner tiles in the last tile, and an upper bound on it. */
interface End {
  readonly left: Expr
  readonly most: number
}

function partition(loop: For, { total, size, guards }: Tiles, names: Names): Body {
  const count = div(total, int(size))
  const left = mod(total, int(size))
  const ends = new Map<number, End>([[size, { left, most: size - 1 }]])
  const endOf = (by: number): End => {
    const end = ends.get(by) ?? { left: ceildiv(left, int(size / by)), most: by }
    ends.set(by, end)
    return end
  }
  const body = reguard(loop.body, (g) => (guards.has(g) ? [] : [g]))
  const cut = reguard(loop.body, (g) => {
    const cutGuard = guards.get(g)
    return [cutGuard ? lt(cutGuard.rest, endOf(cutGuard.by).left) : g]
  })
  const last = bodyAt({ ...loop, body: shorten(cut, [...ends.values()]) }, count, names)
  return [stmt<For>({ ...loop, extent: count, body }), when(lt(count, loop.extent), last)]
}

const reguard = (body: Body, f: (g: Expr) => readonly Expr[]): Body =>
  rewriteStmts(body, {
    stmt: (s) =>
      s.kind === 'for' && s.guards.length > 0 ? stmt({ ...s, guards: s.guards.flatMap(f) }) : undefined,
  })

/** Shortens loops with a guard `v < left` to this end. */
const shorten = (body: Body, all: readonly End[]): Body =>
  rewriteStmts(body, {
    stmt: (s) => {
      if (s.kind !== 'for') return undefined
      const endIn = (g: Expr): End | undefined =>
        g.kind === 'binary' && g.a.kind === 'var' && g.a.name === s.var
          ? all.find((e) => e.left === g.b)
          : undefined
      const [end] = s.guards.flatMap((g) => endIn(g) ?? [])
      if (!end) return undefined
      const covers = s.extent.kind === 'const' && s.extent.value >= end.most
      return stmt<For>({
        ...s,
        extent: covers ? end.left : min(s.extent, end.left),
        guards: s.guards.filter((g) => endIn(g) !== end),
        mode: { kind: 'serial' },
      })
    },
  })
