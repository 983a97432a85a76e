/** Fuses stored axes into one loop over all their positions, which balances the elements of segments of any length. */
import { isStored, parentOf, segmentSize } from '../ir/coordinates/axis.ts'
import type { Iteration, Kernel1 } from '../ir/coordinates/stage1.ts'
import { iterationsOf } from '../ir/coordinates/stage1-tree.ts'
import { unusedName } from '../ir/expressions/bound-names.ts'
import type { Decisions } from './decisions.ts'
import type { NestNames } from './strands.ts'

/** Iterators to fuse, qualified by their iteration, from the outermost. */
export type Fusion = readonly string[]

/** Chooses, for each top-level iteration, the number of outermost iterators to fuse. */
export function chooseFusions(
  kernel: Kernel1,
  namesOf: (nest: string) => NestNames,
  d: Decisions,
): readonly Fusion[] {
  return kernel.body.flatMap((s): Fusion[] => {
    if (s.kind !== 'iterate' || s.body.some((b) => b.kind === 'iterate')) return []
    if (kernel.defaults?.some((n) => n.nest === s.name)) return []
    const maxCount = chainLength(s, kernel)
    if (maxCount < 2) return []
    const counts = Array.from({ length: maxCount }, (_, k) => k + 1)
    const n = d.form(`${namesOf(s.name).prefix}.fused`, counts, guessCount(s, maxCount))
    return n > 1 ? [s.iters.slice(0, n).map((x) => `${s.name}.${x.name}`)] : []
  })
}

/** Number of leading iterators over a chain of axes from a root, each in segments of the previous one. */
function chainLength(it: Iteration, kernel: Kernel1): number {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const end = it.iters.findIndex((x, k) => {
    const axis = axes.get(x.axis)
    if (!axis || !isStored(axis)) return true
    const size = segmentSize(axis)
    const isSingle = k > 0 && size?.kind === 'const' && size.value === 1
    return isSingle || parentOf(axis) !== (k === 0 ? null : it.iters[k - 1]!.axis)
  })
  return end < 0 ? it.iters.length : end
}

/** Number of axes of a matrix; trees with more axes have few, uneven segments at the root. */
const MATRIX = 2

/**
 * Heuristic default of the number of fused iterators: all spatial ones before the first reduction. For trees deeper
 * than a matrix with a reduction, the whole chain, because every stored element then counts equally even if the roots
 * are few.
 */
function guessCount({ iters }: Iteration, maxCount: number): number {
  const combines = iters.slice(0, maxCount).some((x) => x.kind === 'R')
  if (maxCount > MATRIX && combines) return maxCount
  const first = iters[0]!.kind === 'R' ? iters.findIndex((x) => x.kind !== 'R') : 0
  const firstSum = iters.findIndex((x, k) => k > first && x.kind === 'R')
  const spatialCount = firstSum < 0 ? iters.length : firstSum
  return Math.max(1, first < 0 || first >= maxCount ? 1 : Math.min(maxCount, spatialCount))
}

/** Unused name for the fusion of several iterators. */
export function fusedName({ axes, params, buffers, body }: Kernel1, loops: Fusion): string {
  const iters = iterationsOf(body).flatMap((it) => it.iters)
  const usedNames = new Set([...axes, ...params, ...buffers, ...iters].map((x) => x.name))
  const names = loops.map((l) => l.slice(l.indexOf('.') + 1))
  return unusedName(names.join(names.every((n) => n.length === 1) ? '' : '_'), (n) => usedNames.has(n))
}
