/**
 * Loop partitioning: peeling of the partial last tile. Invariant reached: a serial loop over tiles whose last one may be cut
 * off runs its whole tiles without asking: `for v in 0..ceildiv(n, c)` with guards `v * c + rest < n` inside becomes a loop
 * over `n / c` tiles, where they hold because of `rest < c`, and the last tile by itself, where they say `rest < n % c`. Tiles of
 * tiles (`ceildiv(ceildiv(n, b), c)`) are whole where b * c of the n are: what asks for either asks in the last one alone.
 *
 * Only guards that are asked again and again are worth a second copy: those with nothing but constant loops inside. Tiles
 * that threads share stay one: a copy would allocate their memory twice.
 */

import type { Interval } from '../analysis/integers/interval.ts'
import {
  coefficientOf,
  linear,
  linearKey,
  loopMap,
  plus,
  type RoundedUp,
  roundedUp,
  sumExpr,
} from '../analysis/integers/linear.ts'
import { naturals, type Register, registersOver } from '../analysis/integers/ranges.ts'
import type { Names } from '../ir/bound-names.ts'
import { namesOf } from '../ir/bound-names.ts'
import { bodyAt } from '../ir/clone-loops.ts'
import { loopsOf } from '../ir/definitions.ts'
import { ceildiv, div, type Expr, int, lt, min, mod, variable } from '../ir/expr.ts'
import { someExpr } from '../ir/expr-tree.ts'
import type { For, Kernel2, Stmt } from '../ir/loops.ts'
import { when } from '../ir/statement-builders.ts'
import { type Body, bodiesOf, rewriteStmts, stmt, walkStmts, withBodies } from '../ir/tree.ts'
import { type SourceValues, valuesIn } from '../ir/wrapping-values.ts'
import { sharesWork } from './cooperative-copies.ts'

export function partitionLoops(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const natural = naturals(kernel.body, kernel.params, kernel.buffers)
  const values = valuesIn(kernel.body)
  const go = (list: Body): Body =>
    list.flatMap((s): Body => {
      const tiles =
        s.kind === 'for' && s.mode.kind === 'serial' && s.guards.length === 0 ? tilesOf(s, values) : undefined
      if (s.kind !== 'for' || !tiles || !natural(tiles.total) || isShared(s)) {
        const bodies = bodiesOf(s)
        return [withBodies(s, bodies.map(go))]
      }
      const { whole, last } = split(s, tiles, names)
      return [stmt({ ...whole, body: go(whole.body) }), last]
    })
  const body = go(kernel.body)
  return body.every((s, k) => s === kernel.body[k]) ? kernel : { ...kernel, body }
}

export interface Tiles {
  /** The n of `ceildiv(n, c)`, and the c. */
  readonly total: Expr
  readonly size: number
  /** Guards inside that hold in whole tiles. */
  readonly guards: ReadonlyMap<Expr, TileGuard>
}

interface TileGuard {
  readonly rest: Expr
  /** How many of what it counts are in a tile: as many as the tile's size, or tiles in it. */
  readonly by: number
}

/**
 * The rest in `place * c + rest < n`, for tiles of a loop over `ceildiv(n, c)` whose number is `place`; of other conditions
 * `undefined`, and where the text says something in it that may wrap, which is less than n then whatever the tile is.
 */
export function restIn(
  g: Expr,
  { var: name }: For,
  { total, by }: Pick<RoundedUp, 'total' | 'by'>,
  registers: (e: Expr) => Register,
  place: Expr = variable(name),
): { readonly rest: Expr; readonly range: Interval } | undefined {
  if (g.kind !== 'binary' || g.op !== 'lt' || linearKey(linear(g.b)) !== linearKey(total)) return undefined
  if (coefficientOf(g.a, name) !== by * coefficientOf(place, name)) return undefined
  const rest = sumExpr(plus(linear(g.a), linear(place), -by))
  if (someExpr(rest, (e) => registers(e).wraps)) return undefined
  return { rest, range: registers(rest).range }
}

/** The n and c of `ceildiv(n, c)`; of tiles of tiles those of all of them, the finest last. */
function nestedTiles(extent: Expr): readonly Pick<RoundedUp, 'total' | 'by'>[] {
  const tiles = roundedUp(extent)
  if (!tiles) return []
  const { terms, constant } = tiles.total
  const [only] = terms.size === 1 && constant === 0 ? terms.values() : []
  const finer = only?.coefficient === 1 ? nestedTiles(only.term) : []
  return [tiles, ...finer.map(({ total, by }) => ({ total, by: by * tiles.by }))]
}

/** The tiles of a loop whose conditions stand around constant loops; those around `any` are asked of tiles themselves. */
export function tilesOf(loop: For, values: SourceValues, any = false, place?: Expr): Tiles | undefined {
  const all = nestedTiles(loop.extent).slice(0, any ? 1 : undefined)
  if (all.length === 0) return undefined
  const guards = new Map<Expr, TileGuard>()
  const totals = new Map<number, Expr>()
  walkStmts(loop.body, (s, path) => {
    if (s.kind !== 'for' || (!any && loopsOf(s.body).some((l) => l.extent.kind !== 'const'))) return
    const registers = registersOver(loopMap([...path, s]), values)
    for (const g of s.guards)
      for (const tiles of all) {
        const found = restIn(g, loop, tiles, registers, place)
        if (!found || g.kind !== 'binary') continue
        const { known, hi, fits } = found.range
        if (!known || !fits || hi >= tiles.by) continue
        guards.set(g, { rest: found.rest, by: tiles.by })
        if (!totals.has(tiles.by)) totals.set(tiles.by, g.b)
        break
      }
  })
  const size = Math.max(...totals.keys())
  const total = totals.get(size)
  return total && { total, size, guards }
}

/** Whether threads share in it: by hardware axes, memory or turns. */
export const isShared = (loop: For): boolean =>
  sharesWork([loop]) || loopsOf([loop]).some((l) => l.mode.kind === 'bind')

/** How many of something the last tile has, at most. */
interface End {
  readonly left: Expr
  readonly most: number
}

function split(loop: For, { total, size, guards }: Tiles, names: Names): { whole: For; last: Stmt } {
  const count = div(total, int(size))
  const left = mod(total, int(size))
  const ends = new Map<number, End>([[size, { left, most: size - 1 }]])
  const endOf = (by: number): End => {
    const known = ends.get(by) ?? { left: ceildiv(left, int(size / by)), most: by }
    ends.set(by, known)
    return known
  }
  const body = reguard(loop.body, (g) => (guards.has(g) ? [] : [g]))
  const cut = reguard(loop.body, (g) => {
    const known = guards.get(g)
    return [known ? lt(known.rest, endOf(known.by).left) : g]
  })
  const last = bodyAt({ ...loop, body: shorten(cut, [...ends.values()]) }, count, names)
  return {
    whole: stmt({ ...loop, extent: count, body }),
    last: when(lt(count, loop.extent), last),
  }
}

export const reguard = (body: Body, f: (g: Expr) => readonly Expr[]): Body =>
  rewriteStmts(body, {
    stmt: (s) =>
      s.kind === 'for' && s.guards.length > 0 ? stmt({ ...s, guards: s.guards.flatMap(f) }) : undefined,
  })

/** Loops whose guard says where they end (`v < left`) end there. */
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
