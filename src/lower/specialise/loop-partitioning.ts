/**
 * Loop partitioning: peeling of the partial last tile. Invariant reached: a serial loop `for v in 0..ceildiv(n, c)` with inner guards `v *
 * c + rest < n` runs its n / c full tiles without these guards, because rest < c. The last tile is peeled, with guards `rest < n % c`.
 * Nested tiles (`ceildiv(ceildiv(n, b), c)`) are full if all b * c elements exist.
 * Only loops with guards around constant loops are partitioned, because their guards are evaluated often. Tiles with shared memory are
 * not, because each copy would allocate it.
 */

import type { Interval } from '../../analysis/integers/interval.ts'
import { coefficientOf, linear, linearKey, loopMap, plus, sumExpr } from '../../analysis/integers/linear.ts'
import { naturals, type Register, registersOver } from '../../analysis/integers/ranges.ts'
import { type Tiling, tilings } from '../../analysis/integers/tiles.ts'
import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import { ceildiv, div, type Expr, int, lt, min, mod, variable } from '../../ir/expressions/expr.ts'
import { someExpr } from '../../ir/expressions/expr-tree.ts'
import { bodyAt } from '../../ir/statements/clone-loops.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import { when } from '../../ir/statements/statement-builders.ts'
import { type Body, bodiesOf, rewriteStmts, stmt, walkStmts, withBodies } from '../../ir/statements/tree.ts'
import { sharesWork } from '../memory/cooperative-copies.ts'

export function partitionLoops(kernel: Kernel2): Kernel2 {
  const names = namesOf(kernel)
  const natural = naturals(kernel.body, kernel.params, kernel.buffers)
  const go = (list: Body): Body =>
    list.flatMap((s): Body => {
      const tiles =
        s.kind === 'for' && s.mode.kind === 'serial' && s.guards.length === 0 ? tilesOf(s) : undefined
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
  if (g.kind !== 'binary' || g.op !== 'lt' || linearKey(linear(g.b)) !== linearKey(total)) return undefined
  if (coefficientOf(g.a, name) !== by * coefficientOf(place, name)) return undefined
  const rest = sumExpr(plus(linear(g.a), linear(place), -by))
  if (someExpr(rest, (e) => registers(e).wraps)) return undefined
  return { rest, range: registers(rest).range }
}

/** Returns the tiling of a loop with guards around constant loops; undefined if it has none. With `any`, all guards inside count. */
export function tilesOf(loop: For, any = false, place?: Expr): Tiles | undefined {
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

/** Returns true if the loop contains bound loops, shared memory or cooperative loops. */
export const isShared = (loop: For): boolean =>
  sharesWork([loop]) || loopsOf([loop]).some((l) => l.mode.kind === 'bind')

/** The number of elements or inner tiles in the last tile, and an upper bound on it. */
interface End {
  readonly left: Expr
  readonly most: number
}

function split(loop: For, { total, size, guards }: Tiles, names: Names): { whole: For; last: Stmt } {
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
