/** Sketches for one thread: running sums strand by strand, and nests that use a result moved to where it is made. */
import type { Kernel2 } from '../../ir/loops.ts'
import type { Decisions } from './decisions.ts'
import type { Draft, Schedulable } from './draft.ts'
import { epilogues } from './epilogues.ts'
import type { Arranged, Plan } from './plan.ts'
import { makesWhole, runningSums } from './running-sums.ts'
import type { NestShape } from './strands.ts'

export function sequential(
  nests: readonly NestShape[],
  kernel: Kernel2,
  d: Decisions,
  sizes: ReadonlyMap<string, number>,
): <K extends Schedulable<K>>(draft: Draft<K>) => void {
  const moved = epilogues(nests, kernel, d, (nest) => makesWhole(nest.strands[0]!))
  const plans = nests
    .filter((n) => !moved.has(n.name))
    .map((n): readonly [NestShape, readonly Plan[]] => [n, n.strands.map((s) => runningSums(s, d, sizes))])
  return (draft) => {
    const arranged = plans.map(([nest, strands]): readonly [NestShape, readonly Arranged[]] => [
      nest,
      strands.map((plan) => plan(draft)),
    ])
    for (const [nest, strands] of arranged)
      for (const [epilogue, after] of moved)
        if (after === nest.name)
          draft.step({ kind: 'compute_at', nest: epilogue, at: { var: strands[0]!.whole! } })
    for (const [, strands] of arranged) for (const s of strands) s.finish(draft)
  }
}
