/** Fuses stored axes into one loop over all their positions, which balances the elements of segments of any length. */
import { isStored, parentOf, segmentSize } from '../../ir/axis.ts'
import { unusedName } from '../../ir/bound-names.ts'
import type { Iteration, Kernel1 } from '../../ir/stage1.ts'
import { iterationsOf } from '../../ir/stage1-tree.ts'
import type { Decisions } from './decisions.ts'
import type { NestNames } from './part-groups.ts'

/** Iterators to fuse, with the iteration before them, from the outermost. */
export type Fusion = readonly string[]

/** For each iteration at the top, how many of its outermost iterators become one. */
export function fusions(
  kernel: Kernel1,
  naming: (nest: string) => NestNames,
  d: Decisions,
): readonly Fusion[] {
  return kernel.body.flatMap((s): Fusion[] => {
    if (s.kind !== 'iterate' || s.body.some((b) => b.kind === 'iterate')) return []
    if (kernel.defaults?.some((n) => n.nest === s.name)) return []
    const most = chainLength(s, kernel)
    if (most < 2) return []
    const counts = Array.from({ length: most }, (_, k) => k + 1)
    const n = d.form(`${naming(s.name).called}.fused`, counts, guess(s, most))
    return n > 1 ? [s.iters.slice(0, n).map((x) => `${s.name}.${x.name}`)] : []
  })
}

/** Iterators from the first on that run over a chain of axes from a root, each in segments under the one before. */
function chainLength(it: Iteration, kernel: Kernel1): number {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const breaks = it.iters.findIndex((x, k) => {
    const axis = axes.get(x.axis)
    if (!axis || !isStored(axis)) return true
    const size = segmentSize(axis)
    const single = k > 0 && size?.kind === 'const' && size.value === 1
    return single || parentOf(axis) !== (k === 0 ? null : it.iters[k - 1]!.axis)
  })
  return breaks < 0 ? it.iters.length : breaks
}

/** Axes of a tree that is a matrix: deeper ones have few, uneven segments at the top. */
const MATRIX = 2

/**
 * All that runs over different elements; what combines into others only where its segments do not. Of trees deeper than a
 * matrix, where something combines, the whole chain: every stored element counts alike, however few its roots are.
 */
function guess({ iters }: Iteration, most: number): number {
  const combines = iters.slice(0, most).some((x) => x.kind === 'R')
  if (most > MATRIX && combines) return most
  const first = iters[0]!.kind === 'R' ? iters.findIndex((x) => x.kind !== 'R') : 0
  const sums = iters.findIndex((x, k) => k > first && x.kind === 'R')
  const spatial = sums < 0 ? iters.length : sums
  return Math.max(1, first < 0 || first >= most ? 1 : Math.min(most, spatial))
}

/** Unused name for the fusion of several iterators. */
export function fusedName({ axes, params, buffers, body }: Kernel1, loops: Fusion): string {
  const iters = iterationsOf(body).flatMap((it) => it.iters)
  const taken = new Set([...axes, ...params, ...buffers, ...iters].map((x) => x.name))
  const names = loops.map((l) => l.slice(l.indexOf('.') + 1))
  return unusedName(names.join(names.every((n) => n.length === 1) ? '' : '_'), (n) => taken.has(n))
}
