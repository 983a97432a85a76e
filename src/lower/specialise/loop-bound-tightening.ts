/**
 * Loop bound tightening: guards become trip counts. Invariant reached: a serial loop `for v in 0..ceildiv(n, c)` with guard `v * c + r <
 * n` and 0 <= r < c becomes `for v in 0..(n + c - 1 - r) / c`. In a cyclic distribution over threads, where r is the thread index, each
 * thread then tests once instead of per iteration.
 */

import { isIndex } from '../../analysis/integers/interval.ts'
import { loopMap } from '../../analysis/integers/linear.ts'
import { registersOver } from '../../analysis/integers/ranges.ts'
import { tilings } from '../../analysis/integers/tiles.ts'
import { div, type Expr, int, max, sub } from '../../ir/expressions/expr.ts'
import { freeVars, mentions } from '../../ir/expressions/expr-tree.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import type { For, Kernel2 } from '../../ir/statements/loops.ts'
import { mapLoops, stmt } from '../../ir/statements/tree.ts'
import { isShared, restIn } from './loop-partitioning.ts'

export function tightenLoopBounds(kernel: Kernel2): Kernel2 {
  const body = mapLoops(kernel.body, (l, path) => tightened(l, path))
  return body === kernel.body ? kernel : { ...kernel, body }
}

function tightened(loop: For, path: readonly For[]): For {
  if (loop.mode.kind === 'bind' || loop.cooperative || loop.guards.length === 0) return loop
  // A loop around shared work must have a trip count that is uniform in the block.
  const shared = isShared(loop)
  if (shared && loop.mode.kind !== 'serial') return loop
  const blocks = new Set(path.flatMap((l) => (boundIndex(l, 'block') === undefined ? [] : [l.var])))
  const [tiles] = tilings(loop.extent)
  if (!tiles) return loop
  const size = tiles.by
  const registers = registersOver(loopMap(path))
  const rests = loop.guards.map((g): Expr | undefined => {
    const guardRest = restIn(g, loop, tiles, registers)
    if (!guardRest || !isIndex(guardRest.range, size) || mentions(guardRest.rest, loop.var)) return undefined
    return !shared || [...freeVars(guardRest.rest)].every((v) => blocks.has(v)) ? guardRest.rest : undefined
  })
  const at = rests.findIndex((r) => r !== undefined)
  if (at < 0) return loop
  return stmt({
    ...loop,
    // `max(0, …)` changes no value, because r < c. It shows that the dividend is nonnegative, so no flooring is emitted.
    extent: div(max(int(0), sub(tiles.padded, rests[at]!)), int(size)),
    guards: loop.guards.filter((_, k) => k !== at),
  })
}
