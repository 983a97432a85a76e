/**
 * Fix-up of carry-outs (Merrill and Garland, merge-path partitions, SC 2016). The work partition in which a nonempty segment begins
 * stores its result (`schedule/loops/reductions/carry-out.ts` ensures that every position and column has a partition). A loop nest after all partitions
 * visits every element and sets empty segments to the identity. So no zero-fill is needed before.
 */

import { segmentsOf } from '../../analysis/loops/segmented-loops.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { add, type Expr, ge, int, load } from '../../ir/expressions/expr.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Kernel2, Reduce, Stmt, WorkPartition } from '../../ir/statements/loops.ts'
import { stmt } from '../../ir/statements/tree.ts'
import { withStart } from './reduction-initialization.ts'

/** Replacements of top-level statements of a kernel: an empty list for fills, and nests with an initialisation for fix-ups. */
export type Replacements = ReadonlyMap<Stmt, readonly Stmt[]>

/** Returns the replacements for the loops of `kernel` that still have the mode `accumulate`. */
export function fixupStarts(kernel: Kernel2, names: Names): Replacements {
  const out = new Map<Stmt, readonly Stmt[]>()
  kernel.body.forEach((top, at) => {
    for (const loop of loopsOf([top]))
      if (loop.mode.kind === 'accumulate' && loop.mode.carry !== undefined && loop.mode.partition)
        for (const [s, by] of fixupStart(kernel, at, loop, loop.mode.carry, loop.mode.partition, names) ?? [])
          out.set(s, by)
  })
  return out
}

function fixupStart(
  kernel: Kernel2,
  at: number,
  marked: For,
  carry: string,
  shares: WorkPartition,
  names: Names,
): Replacements | undefined {
  const loop: For = stmt({ ...marked, mode: { kind: 'serial' } })
  const segments = segmentsOf(loop)
  if (typeof segments === 'string') return undefined
  const { reduce, rest } = segments
  const [target] = reduce.targets
  const uses = kernel.body.map((s) => accessesOf([s]).filter((a) => a.buffer === target!.buffer))
  const before = uses.findLastIndex((u, k) => k < at && u.length > 0)
  const after = uses.findIndex((u, k) => k > at && u.length > 0)
  const fill = kernel.body[before]
  const fixup = kernel.body[after]
  if (!fillsIdentity(fill, reduce) || !fixup || uses[at]!.some((a) => a.stmt !== reduce)) return undefined
  if (!accessesOf([fixup]).some((a) => a.buffer === carry)) return undefined
  const update = uses[after]!.length === 1 ? uses[after]![0]! : undefined
  if (update?.stmt.kind !== 'reduce' || update.stmt.atomic) return undefined
  const row = update.stmt.targets[0]!.index[rest[0]!.findIndex((d) => d.part !== undefined)]!
  const bound = (e: Expr): Expr => load(shares.search.buffer, [e])
  const empty = ge(bound(row), bound(add(row, int(1))))
  const started = withStart([fixup], { reduce: update.stmt, path: update.path }, names, empty)
  if (!started) return undefined
  return new Map<Stmt, readonly Stmt[]>([
    [fill!, []],
    [fixup, started],
  ])
}

/** Returns true if the statement fills a buffer with the identity of the reducer. */
function fillsIdentity(s: Stmt | undefined, { reducer }: Reduce): boolean {
  const [identity] = reducer.identity
  return (
    s?.kind === 'fill' &&
    s.value.kind === 'const' &&
    identity?.kind === 'const' &&
    s.value.value === identity.value
  )
}
