/** Threads of a warp and of a block: different values of variables in them, and the longest of their segments. */

import type { Load } from '../../ir/expressions/expr.ts'
import { freeVars, someExpr } from '../../ir/expressions/expr-tree.ts'
import { AXES_OF_BLOCK } from '../../ir/instructions/hardware-axes.ts'
import { memoize } from '../../ir/memoize.ts'
import type { Buffer, For, Reduce, Store } from '../../ir/statements/loops.ts'
import { walkStmts } from '../../ir/statements/tree.ts'
import type { Structure } from '../matrix/structure.ts'
import { type Lane, WARP } from '../work/coalescing.ts'
import { collectSegments, elementsOf } from '../work/estimates.ts'
import type { LaunchSums } from '../work/launch-sums.ts'
import { generatedTrips, isThread, loopCount, type Place } from '../work/place.ts'
import { readsOf } from '../work/statements.ts'

/** Different values of `vars` in a warp and in a block; threads are numbered along x, then y, then z. */
export function distinctValues(
  lanes: readonly Lane[],
  vars: ReadonlySet<string>,
): { readonly warp: number; readonly block: number } {
  let [free, warp, block] = [WARP, 1, 1]
  for (const axis of AXES_OF_BLOCK)
    for (const l of lanes) {
      if (l.axis !== axis) continue
      const n = Math.max(1, Math.round(l.extent))
      const inWarp = Math.min(free, n)
      free = Math.max(1, Math.floor(free / inWarp))
      if (!vars.has(l.variable)) continue
      block *= n
      warp *= inWarp
    }
  return { warp, block }
}

/** Expected length of the longest of this many neighbouring segments (`meanMaxima`), relative to the mean. */
export function longestOverMean(longest: readonly number[] | undefined, neighbours: number): number {
  const mean = longest?.[0] ?? 0
  if (!longest || mean === 0) return 1
  const power = Math.min(longest.length - 1, Math.log2(Math.max(1, neighbours)))
  const [low, high] = [Math.floor(power), Math.ceil(power)]
  return (longest[low]! + (longest[high]! - longest[low]!) * (power - low)) / mean
}

// Costs of a CPU thread in addition to accesses and operations: branches and register spills.

/** Number of guards that read memory. Guards on loop variables alone are removed by splitting the loop. */
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

/** Adds the accesses of a register array that exceeds the registers, or that a loop variable indexes. */
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

// Tiles that threads of a warp hold together in registers: each thread has a part of the elements.

/** Maximum number of threads that cooperate on one iteration: in instructions and register tiles. */
export const cooperatingThreads = memoize((top: For): number => {
  let threads = 1
  walkStmts([top], (s) => {
    if (s.kind === 'for' && s.mode.kind === 'instr') threads = Math.max(threads, s.mode.instr.threads)
    else if (s.kind === 'alloc') threads = Math.max(threads, s.buffer.memory?.threads ?? 1)
  })
  return threads
})

/** Number of dimensions of a tile that threads hold together; 0 if each thread has its own. */
const tileDimensions = (b: Buffer | undefined): number =>
  b?.scope === 'register' && b.memory && b.memory.threads > 1 ? b.memory.shape.length : 0

/**
 * The loops over the elements of a tile that a statement copies, as lanes of the threads that hold the tile or execute
 * an instruction; `null` if every thread executes all of them.
 */
export function tileLanes(
  s: Store | Reduce,
  p: Place,
  buffer: (name: string) => Buffer | undefined,
): readonly Lane[] | null {
  const accesses = [...(s.kind === 'store' ? [s] : s.targets), ...readsOf(s).filter((x) => x.kind === 'load')]
  const vars = new Set<string>()
  for (const { buffer: name, index } of accesses) {
    const dimensions = tileDimensions(buffer(name))
    if (dimensions > 0) for (const e of index.slice(-dimensions)) for (const v of freeVars(e)) vars.add(v)
  }
  const isInstruction = p.frames.some((f) => f.loop?.mode.kind === 'instr' && f.loop.mode.instr.threads > 1)
  if (vars.size === 0) return isInstruction ? [] : null
  return p.frames.flatMap(({ loop, extent }): Lane[] =>
    loop && loop.mode.kind !== 'bind' && vars.has(loop.var)
      ? [{ axis: 'thread.x', variable: loop.var, extent }]
      : [],
  )
}
