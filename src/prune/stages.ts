/** Gradual pruning with training between the stages: pruned elements score 0 in later stages. */
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import { expectArgument, expectOptions, show } from '../ast/diagnostics/expect-argument.ts'
import { checkLayers, unionMasks } from './layers.ts'
import type { PruneOptions, PruneSettings, SparsityLimits } from './options.ts'
import { checkApriori, checkCallback, checkPattern, checkSparsity, layerLimits, SETTINGS } from './options.ts'
import { prune } from './prune-layers.ts'
import type { LayerShape, Layers, Pruned, PruneReport } from './types.ts'

/** Sparsity of a stage, with limits for this stage in addition to the common ones; the smaller limit applies. */
export interface StageOptions extends Pick<PruneOptions, 'apriori'> {
  readonly sparsity: number
  readonly limits?: SparsityLimits
}

/** Result of one stage of gradual pruning. */
export interface Stage extends Pruned {
  readonly sparsity: number
}

export interface StagedPruneOptions extends PruneSettings {
  /** Increasing sparsities. */
  readonly stages: readonly (number | StageOptions)[]
  /** Called after every stage except the last. Resolves to the same layers with new values, or to nothing if unchanged. */
  readonly between?: (stage: Stage) => Promise<Layers> | Promise<void>
}

export interface StagedPruneResult extends Pruned {
  /** Reports of all stages, including the last. */
  readonly reports: readonly PruneReport[]
}

/** @throws SptError `prune/stages` and as `prune` does */
export async function pruneInStages(layers: Layers, options: StagedPruneOptions): Promise<StagedPruneResult> {
  expectOptions('pruneInStages', options, [...SETTINGS, 'stages', 'between'])
  const { stages: input, between, ...choices } = options
  const stages = stagesOf(input)
  checkLayers(layers)
  checkPattern(choices.pattern)
  checkCallback('between', between)
  checkCallback('onProgress', choices.onProgress)
  // All stages are checked before the first, because hours of training may separate them.
  for (const { sparsity, apriori } of stages) {
    checkSparsity(choices.pattern, sparsity)
    checkApriori(apriori)
  }
  for (const limits of [choices.limits ?? {}, ...stages.map((s) => s.limits)])
    layerLimits(choices.pattern, limits, layers.shapes)
  const reports: PruneReport[] = []
  let current = layers
  let last: Pruned | undefined
  for (const [k, { sparsity, apriori, limits: stageLimits }] of stages.entries()) {
    const limits = mergeLimits(choices.limits ?? {}, stageLimits)
    last = await prune(current, {
      ...choices,
      limits,
      sparsity,
      apriori,
      ...(last && { previousMasks: unionMasks(last) }),
    })
    reports.push(last.report)
    if (k < stages.length - 1)
      current = checkSameLayers((await between?.({ ...last, sparsity })) ?? current, layers)
  }
  return { ...last!, reports }
}

/** @throws SptError `api/argument`, `api/unknown-option`, `prune/stages` if sparsities do not increase */
function stagesOf(
  input: StagedPruneOptions['stages'],
): readonly (StageOptions & Required<Pick<StageOptions, 'limits'>>)[] {
  expectArgument(Array.isArray(input), 'stages', input, 'a list of sparsities')
  const stages = input.map((stage) => {
    if (typeof stage !== 'object') return { sparsity: stage, limits: {} }
    expectOptions('a stage', stage, ['sparsity', 'limits', 'apriori'])
    return { limits: {}, ...stage }
  })
  if (stages.length === 0 || stages.some((s, k) => k > 0 && !(s.sparsity > stages[k - 1]!.sparsity)))
    failWith('prune/stages', `stages of sparsity ${stages.map((s) => show(s.sparsity)).join(', ')}`, {
      expected: 'at least one, in increasing order',
    })
  return stages
}

/** Union of both, with the smaller limit for common layers. */
const mergeLimits = (common: SparsityLimits, stageLimits: SparsityLimits): SparsityLimits => ({
  ...common,
  ...Object.fromEntries(
    Object.entries(stageLimits).map(([glob, s]) => [glob, Math.min(s, common[glob] ?? s)]),
  ),
})

function checkSameLayers(input: Layers, { shapes }: Layers): Layers {
  checkLayers(input)
  const text = (s: LayerShape | undefined): string => (s ? `${s.name}, ${s.rows} x ${s.cols}` : 'none')
  for (let k = 0; k < Math.max(shapes.length, input.shapes.length); k++) {
    const [expected, actual] = [text(shapes[k]), text(input.shapes[k])]
    if (expected !== actual)
      failWith('prune/stages', `layer ${k} was ${expected}, and is ${actual} after a stage`, {
        expected: 'the same layers, in their order',
      })
  }
  return input
}
