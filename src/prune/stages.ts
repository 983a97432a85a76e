/** Pruning in stages, with training between them: what a stage prunes counts as 0 in the next. */
import { fail } from '../ast/diagnostic.ts'
import { expectArgument, expectOptions } from '../ast/expect-argument.ts'
import { checkLayers, keptIn } from './layers.ts'
import { CHOICES, checkedSparsity, type PruneChoices } from './options.ts'
import { prune } from './prune-layers.ts'
import type { LayerShape, Layers, Pruned, PruneReport } from './types.ts'

/** What was pruned in a stage. */
export interface Stage extends Pruned {
  readonly sparsity: number
}

export interface StagesOptions extends PruneChoices {
  /** Sparsities that rise. */
  readonly stages: readonly number[]
  /** Called after every stage but the last: the same layers with other values, or nothing where they stay. */
  readonly between?: (stage: Stage) => Promise<Layers> | Promise<void>
}

export interface PrunedInStages extends Pruned {
  /** Of every stage, the last included. */
  readonly reports: readonly PruneReport[]
}

/** @throws SptError `prune/stages` and as `prune` does */
export async function pruneInStages(layers: Layers, options: StagesOptions): Promise<PrunedInStages> {
  expectOptions('pruneInStages', options, [...CHOICES, 'stages', 'between'])
  const { stages, between, ...choices } = options
  expectArgument(Array.isArray(stages), 'stages', stages, 'a list of sparsities')
  if (stages.length === 0 || stages.some((s, k) => k > 0 && !(s > stages[k - 1]!)))
    fail({
      code: 'prune/stages',
      message: `stages of sparsity ${stages.join(', ')}`,
      expected: 'at least one, each greater than the one before',
    })
  for (const s of stages) checkedSparsity(options.pattern, s)
  const reports: PruneReport[] = []
  let now = layers
  let last: Pruned | undefined
  for (const [k, sparsity] of stages.entries()) {
    last = await prune(now, { ...choices, sparsity, ...(last && { after: keptIn(last) }) })
    reports.push(last.report)
    if (k < stages.length - 1) now = sameLayers((await between?.({ ...last, sparsity })) ?? now, layers)
  }
  return { ...last!, reports }
}

function sameLayers(given: Layers, { shapes }: Layers): Layers {
  checkLayers(given)
  const text = (s: LayerShape | undefined): string => (s ? `${s.name}, ${s.rows} x ${s.cols}` : 'none')
  for (let k = 0; k < Math.max(shapes.length, given.shapes.length); k++) {
    const [was, now] = [text(shapes[k]), text(given.shapes[k])]
    if (was !== now)
      fail({
        code: 'prune/stages',
        message: `layer ${k} was ${was}, and is ${now} after a stage`,
        expected: 'the same layers, in their order',
      })
  }
  return given
}
