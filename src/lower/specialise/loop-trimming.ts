/** Index set reduction: a guard that bounds its loop's variable becomes the end of the loop. */

import { isIndex } from '../../analysis/integers/interval.ts'
import { sumExpr } from '../../analysis/integers/linear.ts'
import { startOfRun } from '../../analysis/integers/mixed-radix.ts'
import { tilings } from '../../analysis/integers/tiles.ts'
import { div, type Expr, int, max, min, sub } from '../../ir/expressions/expr.ts'
import { freeVars, mentions, readsMemory, someExpr } from '../../ir/expressions/expr-tree.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import type { For, Kernel2 } from '../../ir/statements/loops.ts'
import { isShared } from '../memory/cooperative-copies.ts'
import { restIn } from './loop-partitioning.ts'
import { atLoops, indexesArrays, naturalsIn, type Split, specialiseNests } from './specialise.ts'

/** Returns the first guard for which `endOf` returns the end of the loop. */
function endedBy(loop: For, endOf: (g: Expr, k: number) => Expr | undefined): Split | undefined {
  const ends = loop.guards.map(endOf)
  const at = ends.findIndex((e) => e !== undefined)
  return at < 0 ? undefined : { end: ends[at]!, holds: [loop.guards[at]!] }
}

/**
 * Loop bound tightening. Invariant reached: a serial loop `for v in 0..ceildiv(n, c)` with guard `v * c + r < n` and 0 <= r < c becomes
 * `for v in 0..(n + c - 1 - r) / c`. In a cyclic distribution over threads, where r is the thread index, each thread then tests once
 * instead of per iteration.
 */
export const tightenLoopBounds = (kernel: Kernel2): Kernel2 =>
  specialiseNests(
    kernel,
    atLoops((loop, { path, facts }) => {
      if (loop.mode.kind === 'bind' || loop.cooperative || loop.guards.length === 0) return undefined
      // A loop around shared work must have a trip count that is uniform in the block.
      const shared = isShared(loop)
      const [tiles] = tilings(loop.extent)
      if (!tiles || (shared && loop.mode.kind !== 'serial')) return undefined
      const blocks = new Set(path.flatMap((l) => (boundIndex(l, 'block') === undefined ? [] : [l.var])))
      return endedBy(loop, (g) => {
        const { rest, range } = restIn(g, loop, tiles, facts) ?? {}
        if (!rest || !isIndex(range!, tiles.by) || mentions(rest, loop.var)) return undefined
        if (shared && ![...freeVars(rest)].every((v) => blocks.has(v))) return undefined
        // `max(0, …)` changes no value, because r < c. It shows that the dividend is nonnegative, so no flooring is emitted.
        return div(max(int(0), sub(tiles.padded, rest)), int(tiles.by))
      })
    }),
  )

/** Minimum extent in iterations of a trimmed loop. A single thread gains from few iterations; loops of many threads are unrolled. */
const LONG = { alone: 16, threads: 1024 }

/**
 * Loop trimming. Invariant reached: a long serial loop of constant extent with guard `v + rest < n` becomes
 * `for v in 0..min(extent, n - rest)`. n may be loaded, for example the length of a list built at run time, because guards read nothing
 * that their loop writes.
 */
export function trimLoops(
  kernel: Kernel2,
  { promote }: { readonly promote?: boolean | undefined } = {},
): Kernel2 {
  const least = promote ? LONG.alone : LONG.threads
  return specialiseNests(
    kernel,
    atLoops((l, { facts }) => {
      const isLong = l.extent.kind === 'const' && l.extent.value >= least && l.mode.kind === 'serial'
      if (!isLong || l.guards.length === 0 || l.cooperative || isShared(l) || indexesArrays(l, kernel))
        return undefined
      const natural = naturalsIn(kernel)
      return endedBy(l, (g, k) => {
        // A guard that loads may be in range only because of the guards before it.
        if (k > 0 && readsMemory(g)) return undefined
        const start = g.kind === 'binary' && g.op === 'lt' ? startOfRun(g.a, l.var) : undefined
        if (!start || g.kind !== 'binary' || mentions(g.b, l.var)) return undefined
        const rest = sumExpr(start)
        if (!natural(rest)) return undefined
        if ([rest, g.b].some((e) => someExpr(e, facts.wraps))) return undefined
        // Clamped to 0 first, because a large negative number minus the rest would wrap.
        return min(l.extent, max(int(0), sub(natural(g.b) ? g.b : max(int(0), g.b), rest)))
      })
    }),
  )
}
