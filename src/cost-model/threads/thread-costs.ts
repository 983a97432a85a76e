/** Costs of a CPU thread in addition to accesses and operations: branches and register spills. */
import type { Load } from '../../ir/expressions/expr.ts'
import { freeVars, someExpr } from '../../ir/expressions/expr-tree.ts'
import { memoize } from '../../ir/memoize.ts'
import type { Buffer, For, Store } from '../../ir/statements/loops.ts'
import type { Structure } from '../matrix/structure.ts'
import { elementsOf } from '../work/elements.ts'
import { collectSegments } from '../work/estimates.ts'
import { generatedTrips, isThread, loopCount } from '../work/frames.ts'
import type { LaunchSums } from '../work/launch-sums.ts'
import type { Place } from '../work/place.ts'

/**
 * Number of guards that read memory. Guards on loop variables alone are removed by splitting the loop; the others are
 * evaluated in each iteration.
 */
const countDataGuards = memoize(
  (s: For): number =>
    s.guards.filter((g) => someExpr(g, (x) => x.kind === 'load' || x.kind === 'search')).length,
)

/**
 * Adds the branches of a loop entered at `p`: evaluated conditions and iterations, entries, and exits after another
 * number of iterations than before, which branch prediction misses.
 * @param share - Share of the iterations that a thread executes
 */
export function countBranches(
  sums: LaunchSums,
  structure: Structure,
  s: For,
  p: Place,
  extent: number,
  share: number,
): void {
  sums.branches += p.times * extent * countDataGuards(s)
  if (loopCount(s) === 0) return
  sums.branches += p.times * share * generatedTrips(s, extent)
  sums.entries += p.times
  const changes = collectSegments(s.extent).map((x) => structure.changes.get(x.offsets) ?? 1)
  sums.surprises += p.times * Math.max(0, ...changes)
}

/** Registers for accumulators on a CPU; GPUs have more than schedules use. */
const REGISTERS = 13

/**
 * Adds the accesses of a register array that go through memory: it exceeds the registers, or a loop variable indexes
 * it.
 */
export function countSpills(
  sums: LaunchSums,
  buffer: Buffer,
  t: Load | Store,
  p: Place,
  times: number,
): void {
  const size = elementsOf(buffer, p)
  if (size <= 1) return
  const vars = new Set(t.index.flatMap((e) => [...freeVars(e)]))
  const isIndexed = p.frames.some(
    ({ loop }) => loop && vars.has(loop.var) && loopCount(loop) === 1 && !isThread(loop),
  )
  sums.spills += times * (isIndexed ? 1 : Math.max(0, 1 - REGISTERS / size))
}
