/** Sketches for one thread: running sums per strand, and epilogues moved to where their input is produced. */
import type { Kernel2 } from '../ir/statements/loops.ts'
import type { Decisions } from './decisions.ts'
import type { Draft, Schedulable } from './draft.ts'
import { chooseEpilogues } from './epilogues.ts'
import type { Arrangement, Plan } from './plan.ts'
import { completesElements, planRunningSums } from './running-sums.ts'
import type { NestShape } from './strands.ts'

export function planSequential(
  nests: readonly NestShape[],
  kernel: Kernel2,
  d: Decisions,
  sizes: ReadonlyMap<string, number>,
): <K extends Schedulable<K>>(draft: Draft<K>) => void {
  const destinations = chooseEpilogues(nests, kernel, d, (nest) => completesElements(nest.strands[0]!))
  const plans = nests
    .filter((n) => !destinations.has(n.name))
    .map((n): readonly [NestShape, readonly Plan[]] => [
      n,
      n.strands.map((s) => planRunningSums(s, d, sizes)),
    ])
  return (draft) => {
    const arrangements = plans.map(([nest, strands]): readonly [NestShape, readonly Arrangement[]] => [
      nest,
      strands.map((plan) => plan(draft)),
    ])
    for (const [nest, strands] of arrangements)
      for (const [epilogue, destination] of destinations)
        if (destination === nest.name)
          draft.step({ kind: 'compute_at', nest: epilogue, at: { var: strands[0]!.completeAt! } })
    for (const [, strands] of arrangements) for (const s of strands) s.finish(draft)
  }
}
