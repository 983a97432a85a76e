/**
 * Loop partitioning: peeling of the partial last tile. Invariant reached: a serial loop over tiles whose last one may be cut
 * off runs its whole tiles without asking: `for v in 0..ceildiv(n, c)` with guards `v * c + rest < n` inside becomes a loop
 * over `n / c` tiles, where they hold because of `rest < c`, and the last tile by itself, where they say `rest < n % c`.
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
import { div, type Expr, int, lt, min, mod, variable } from '../ir/expr.ts'
import { someExpr } from '../ir/expr-tree.ts'
import type { For, Kernel2, Stmt } from '../ir/loops.ts'
import { when } from '../ir/statement-builders.ts'
import { type Body, bodiesOf, rewriteStmts, stmt, walkStmts, withBodies } from '../ir/tree.ts'
import { type Values, valuesIn } from '../ir/wrapping-values.ts'
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
  /** Guards inside that hold in whole tiles, with their `rest`. */
  readonly guards: ReadonlyMap<Expr, Expr>
}

/**
 * The rest in `place * c + rest < n`, for tiles of a loop over `ceildiv(n, c)` whose number is `place`; of other conditions
 * `undefined`, and where the text says something in it that may wrap, which is less than n then whatever the tile is.
 */
export function restIn(
  g: Expr,
  { var: name }: For,
  { total, by }: RoundedUp,
  registers: (e: Expr) => Register,
  place: Expr = variable(name),
): { readonly rest: Expr; readonly range: Interval } | undefined {
  if (g.kind !== 'binary' || g.op !== 'lt' || linearKey(linear(g.b)) !== linearKey(total)) return undefined
  if (coefficientOf(g.a, name) !== by * coefficientOf(place, name)) return undefined
  const rest = sumExpr(plus(linear(g.a), linear(place), -by))
  if (someExpr(rest, (e) => registers(e).wraps)) return undefined
  return { rest, range: registers(rest).range }
}

/** The tiles of a loop whose conditions stand around constant loops, or around `any`. */
export function tilesOf(loop: For, values: Values, any = false, place?: Expr): Tiles | undefined {
  const tiles = roundedUp(loop.extent)
  if (!tiles) return undefined
  const size = tiles.by
  const guards = new Map<Expr, Expr>()
  let bound: Expr | undefined
  walkStmts(loop.body, (s, path) => {
    if (s.kind !== 'for' || (!any && loopsOf(s.body).some((l) => l.extent.kind !== 'const'))) return
    for (const g of s.guards) {
      const found = restIn(g, loop, tiles, registersOver(loopMap([...path, s]), values), place)
      if (!found || g.kind !== 'binary') continue
      const { known, hi, fits } = found.range
      if (!known || !fits || hi >= size) continue
      guards.set(g, found.rest)
      bound ??= g.b
    }
  })
  return bound ? { total: bound, size, guards } : undefined
}

/** Whether threads share in it: by hardware axes, memory or turns. */
export const isShared = (loop: For): boolean =>
  sharesWork([loop]) || loopsOf([loop]).some((l) => l.mode.kind === 'bind')

function split(loop: For, { total, size, guards }: Tiles, names: Names): { whole: For; last: Stmt } {
  const count = div(total, int(size))
  const left = mod(total, int(size))
  const body = reguard(loop.body, (g) => (guards.has(g) ? [] : [g]))
  const cut = reguard(loop.body, (g) => {
    const rest = guards.get(g)
    return [rest ? lt(rest, left) : g]
  })
  const last = bodyAt({ ...loop, body: shorten(cut, left, size) }, count, names)
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
const shorten = (body: Body, left: Expr, size: number): Body =>
  rewriteStmts(body, {
    stmt: (s) => {
      if (s.kind !== 'for') return undefined
      const ends = (g: Expr): boolean =>
        g.kind === 'binary' && g.a.kind === 'var' && g.a.name === s.var && g.b === left
      if (!s.guards.some(ends)) return undefined
      // `left` is less than the tile's size.
      const covers = s.extent.kind === 'const' && s.extent.value >= size - 1
      return stmt<For>({
        ...s,
        extent: covers ? left : min(s.extent, left),
        guards: s.guards.filter((g) => !ends(g)),
        mode: { kind: 'serial' },
      })
    },
  })
