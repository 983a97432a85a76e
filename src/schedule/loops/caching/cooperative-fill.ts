/** Cooperative copies into shared memory: the loops in which the threads of a block fill a copy together. */

import { boundOfRun } from '../../../analysis/instructions/lane-groups.ts'
import { Facts } from '../../../analysis/integers/facts.ts'
import { add, all, type Expr, int, mul, variable } from '../../../ir/expressions/expr.ts'
import { mentions, orderReadsLast, substitute } from '../../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../../ir/expressions/structural-equality.ts'
import { renameBound, substituteStmts } from '../../../ir/statements/bindings.ts'
import type { For, Stmt } from '../../../ir/statements/loops.ts'
import { forLoop, when } from '../../../ir/statements/statement-builders.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import type { Context } from '../../state/context.ts'
import type { Tile } from './block-tile.ts'

/**
 * Builds the loops that fill the box, in memory order of the buffer. `vector` is the number of elements of the last
 * dimension in one vector access. `copy` stores one element, and `pad` stores the padding value of elements outside
 * of the buffer; if `pad` is undefined, such elements are skipped.
 */
export function fillNest(
  cx: Context,
  tile: Tile,
  nest: string,
  vector: number,
  copy: Stmt,
  pad: Stmt | undefined,
): Stmt {
  const facts = new Facts({ sizes: cx.kernel.facts })
  const loops: For[] = tile.dims.map((d) => loopOf(d.var, d.name, nest, d.extent))
  const map = new Map<string, Expr>()
  const last = tile.dims.at(-1)
  const lane = vector > 1 && last ? cx.fresh(last.name) : undefined
  if (last && lane) {
    const outer = cx.fresh(last.name)
    map.set(last.var, add(mul(variable(outer), int(vector)), variable(lane)))
    loops.splice(-1, 1, loopOf(outer, last.name, nest, last.extent / vector), {
      ...loopOf(lane, last.name, nest, vector),
      mode: { kind: 'vectorize' },
    })
  }
  const together = (g: Expr): Expr => (lane ? boundOfRun(g, lane, vector, facts) : g)
  const conditions = orderReadsLast(
    unique([...tile.guards, ...tile.conditions].map((g) => together(substitute(g, map)))),
  )
  const within = (s: Stmt): Stmt => substituteStmts([s], map)[0]!
  const around = (loops: readonly For[], inner: Stmt): Stmt =>
    loops.reduceRight<Stmt>((body, l) => stmt<For>({ ...l, body: [body] }), inner)
  const choose = (own: readonly Expr[], then: Stmt, otherwise: Stmt | undefined): Stmt =>
    own.length === 0 ? then : when(all(own), [then], otherwise ? [otherwise] : [])
  if (!pad) {
    // A condition becomes a guard of the innermost loop that it depends on.
    const home = (g: Expr): For | undefined => loops.findLast((l) => mentions(g, l.var))
    const guarded = loops.map((l) => ({ ...l, guards: conditions.filter((g) => home(g) === l) }))
    return choose(
      conditions.filter((g) => !home(g)),
      around(guarded, within(copy)),
      undefined,
    )
  }
  const lanes = lane ? loops.slice(-1) : []
  const ofLane = (g: Expr): boolean => lane !== undefined && mentions(g, lane)
  const one = choose(conditions.filter(ofLane), within(copy), within(pad))
  const row = choose(
    conditions.filter((g) => !ofLane(g)),
    around(lanes, one),
    lane ? renameLoop(around(lanes, within(pad)), lane, cx.fresh(last!.name)) : within(pad),
  )
  return around(lane ? loops.slice(0, -1) : loops, row)
}

const renameLoop = (s: Stmt, from: string, to: string): Stmt => renameBound([s], new Map([[from, to]]))[0]!

const loopOf = (name: string, called: string, nest: string, extent: number): For =>
  forLoop(name, int(extent), [], { name: called, nest })

const unique = (es: readonly Expr[]): readonly Expr[] => [...new Map(es.map((e) => [keyOf(e), e])).values()]
