/** Gradual pruning with training between the stages: pruned elements score 0 in later stages. */
import { fail } from '../ast/diagnostic.ts'
import { expectArgument, expectOptions, show } from '../ast/expect-argument.ts'
import { checkLayers, keptIn } from './layers.ts'
import {
  CHOICES,
  checkCallback,
  checkedSparsity,
  checkPattern,
  type Limits,
  limitsOf,
  type PruneChoices,
} from './options.ts'
import { prune } from './prune-layers.ts'
import type { LayerShape, Layers, Pruned, PruneReport } from './types.ts'

/** Sparsity of a stage, with limits for this stage in addition to the common ones; the smaller limit applies. */
export interface StageChoice {
  readonly sparsity: number
  readonly limits?: Limits
}

/** Result of one stage of gradual pruning. */
export interface Stage extends Pruned {
  readonly sparsity: number
}

export interface StagesOptions extends PruneChoices {
  /** Sparsities that rise. */
  readonly stages: readonly (number | StageChoice)[]
  /** Called after every stage but the last: the same layers with other values, or nothing where they stay. */
  readonly between?: (stage: Stage) => Promise<Layers> | Promise<void>
}

export interface PrunedInStages extends Pruned {
  /** Reports of all stages, including the last. */
  readonly reports: readonly PruneReport[]
}

/** @throws SptError `prune/stages` and as `prune` does */
export async function pruneInStages(layers: Layers, options: StagesOptions): Promise<PrunedInStages> {
  expectOptions('pruneInStages', options, [...CHOICES, 'stages', 'between'])
  const { stages: given, between, ...choices } = options
  const stages = stagesOf(given)
  checkLayers(layers)
  checkPattern(choices.pattern)
  checkCallback('between', between)
  checkCallback('onProgress', choices.onProgress)
  // Of all before the first: hours of training may lie between them.
  const names = layers.shapes.map((s) => s.name)
  for (const { sparsity } of stages) checkedSparsity(choices.pattern, sparsity)
  for (const limits of [choices.limits ?? {}, ...stages.map((s) => s.limits)])
    limitsOf(choices.pattern, limits, names)
  const reports: PruneReport[] = []
  let now = layers
  let last: Pruned | undefined
  for (const [k, { sparsity, limits: own }] of stages.entries()) {
    const limits = leastOf(choices.limits ?? {}, own)
    last = await prune(now, { ...choices, limits, sparsity, ...(last && { after: keptIn(last) }) })
    reports.push(last.report)
    if (k < stages.length - 1) now = sameLayers((await between?.({ ...last, sparsity })) ?? now, layers)
  }
  return { ...last!, reports }
}

/** @throws SptError `api/argument`, `api/unknown-option`, `prune/stages` where they do not rise */
function stagesOf(given: StagesOptions['stages']): readonly Required<StageChoice>[] {
  expectArgument(Array.isArray(given), 'stages', given, 'a list of sparsities')
  const stages = given.map((stage) => {
    if (typeof stage !== 'object') return { sparsity: stage, limits: {} }
    expectOptions('a stage', stage, ['sparsity', 'limits'])
    return { limits: {}, ...stage }
  })
  if (stages.length === 0 || stages.some((s, k) => k > 0 && !(s.sparsity > stages[k - 1]!.sparsity)))
    fail({
      code: 'prune/stages',
      message: `stages of sparsity ${stages.map((s) => show(s.sparsity)).join(', ')}`,
      expected: 'at least one, each greater than the one before',
    })
  return stages
}

/** Union of both, with the smaller limit for common layers. */
const leastOf = (all: Limits, own: Limits): Limits => ({
  ...all,
  ...Object.fromEntries(Object.entries(own).map(([glob, s]) => [glob, Math.min(s, all[glob] ?? s)])),
})

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
