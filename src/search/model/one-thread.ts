/** Costs of a CPU thread besides accesses and operations: branches, and register spills. */
import type { Load } from '../../ir/expr.ts'
import { freeVars, someExpr } from '../../ir/expr-tree.ts'
import type { Buffer, For, Store } from '../../ir/loops.ts'
import { remembered } from '../../ir/remembered.ts'
import { elementsOf } from './elements.ts'
import { segmentsIn } from './estimates.ts'
import { isThread, loopsIn, tripsInText } from './frames.ts'
import type { Place } from './place.ts'
import type { Structure } from './structure.ts'
import type { Sums } from './sums.ts'

/**
 * Guards that read memory. Guards on loop variables alone are split off the loops; the others are evaluated in each
 * iteration.
 */
const guardsOfData = remembered(
  (s: For): number =>
    s.guards.filter((g) => someExpr(g, (x) => x.kind === 'load' || x.kind === 'search')).length,
)

/**
 * Of a loop that is entered where `p` stands: its iterations and conditions, and its ends where they come sooner or later than
 * before, which are not foreseen.
 * @param share of its iterations that a thread goes through
 */
export function countBranches(
  sums: Sums,
  structure: Structure,
  s: For,
  p: Place,
  extent: number,
  share: number,
): void {
  sums.branches += p.times * extent * guardsOfData(s)
  if (loopsIn(s) === 0) return
  sums.branches += p.times * share * tripsInText(s, extent)
  sums.entries += p.times
  const changes = segmentsIn(s.extent).map((x) => structure.changes.get(x.offsets) ?? 1)
  sums.surprises += p.times * Math.max(0, ...changes)
}

/** Registers for sums of floats on a CPU; GPUs have more than schedules use. */
const REGISTERS = 13

/** Of an array of registers, accesses that go through memory all the same: it has too many, or a loop says which. */
export function countSpills(sums: Sums, buffer: Buffer, t: Load | Store, p: Place, times: number): void {
  const size = elementsOf(buffer, p)
  if (size <= 1) return
  const vars = new Set(t.index.flatMap((e) => [...freeVars(e)]))
  const isIndexed = p.frames.some(
    ({ loop }) => loop && vars.has(loop.var) && loopsIn(loop) === 1 && !isThread(loop),
  )
  sums.spills += times * (isIndexed ? 1 : Math.max(0, 1 - REGISTERS / size))
}
