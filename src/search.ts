/** sparsetile/search, in Node: spaces of schedules, their points, and what searches them; what was measured is kept, and found again. */
import type { Kernel } from './api/kernels/kernel.ts'
import type { TuneAllOptions } from './search/tune/cases/tune-all.ts'
import type { TuneAllResult } from './search/tune/cases/tune-all-result.ts'

export type { Space, UnboundSpace } from './api/kernels/space.ts'
export { Workspace, type WorkspaceOptions } from './api/resident/workspace.ts'
export type { CostModel } from './cost-model/learned/model.ts'
export type { CalibratedKernel, Calibration } from './cost-model/learned/trained-models.ts'
export { useCostModel } from './cost-model/learned/trained-models.ts'
export { type CalibrateOptions, calibrate } from './search/calibrate/index.ts'
export { type TrainedModel, type Training, trainOnRecords } from './search/calibrate/train.ts'
export type { Condition, Measure } from './search/choice/conditions.ts'
export { type DistilOptions, distil } from './search/choice/distil.ts'
export type {
  Generalisation,
  GeneraliseOptions,
  JudgedRules,
  Loss,
  Verdict,
} from './search/choice/generalise.ts'
export type { DispatchText, GrowOptions, Rule, Tree } from './search/choice/rules.ts'
export type { StoredRule } from './search/choice/table-text.ts'
export { dispatchTable, type FoundRules, staleChoices } from './search/choice/table-text.ts'
export type { ThreadOptions } from './search/evaluate/evaluation-threads.ts'
export type { EvaluatorOptions } from './search/evaluate/evaluator.ts'
export {
  type AbsentLibrary,
  type LibraryRoutine,
  type LibraryRoutines,
  libraryRoutines,
} from './search/evaluate/library-routines.ts'
export type { MeasuringOptions } from './search/evaluate/test-bench.ts'
export { type SearchResult, type StopReason, search } from './search/loop/search.ts'
export type { SearchOptions, SearchProgress } from './search/loop/search-options.ts'
export type { SearchTally, WrongResult } from './search/loop/tally.ts'
export { deviceKey, type LockOptions, withDeviceLock } from './search/measuring/device-lock.ts'
export type { Drift } from './search/measuring/drift.ts'
export { prepareReference } from './search/measuring/drift.ts'
export {
  type Measurable,
  type MeasureRoundsOptions,
  measureRounds,
} from './search/measuring/measure-rounds.ts'
export { summarizeSamples } from './search/measuring/median-interval.ts'
export type { ExitReason, RoundsOptions, RoundsResult } from './search/measuring/rounds.ts'
export {
  costModel,
  costPrior,
  type Prediction,
  type PredictorOptions,
  type PriorOptions,
  predictor,
} from './search/ranking/cost-model.ts'
export type { Predict } from './search/ranking/origin.ts'
export * from './search/records/index.ts'
export { type Decisions, type KernelTransform, space } from './search/spaces/function-space.ts'
export {
  type Outline,
  type OutlinedDecision,
  type OutlineOptions,
  outline,
} from './search/spaces/outline/sampling.ts'
export * from './search/spaces/points.ts'
export { type SketchOptions, type SketchSpace, sketches } from './search/spaces/sketches.ts'
export {
  count,
  type PointCount,
  rejectionCode,
  type Survey,
  type SurveyOptions,
  survey,
} from './search/spaces/survey.ts'
export { decisionImportance, type Importance } from './search/statistics/importance.ts'
export { STRATEGIES } from './search/strategies/index.ts'
export * from './search/studies/index.ts'
export { scheduleText, typescriptText } from './search/text.ts'
export type { LibraryTrial, LibraryTrials } from './search/tune/alternatives.ts'
export type { CaseOptions, CaseSearchResult, TuneCase } from './search/tune/cases/case-study.ts'
export type { TuneAllOptions, TuneAllProgress } from './search/tune/cases/tune-all.ts'
export type { TuneAllResult, TunedCandidate, TunedCase } from './search/tune/cases/tune-all-result.ts'
export type { Confirmation } from './search/tune/finals/finals.ts'
export type {
  KernelExplanation,
  MeasuredFinal,
  Recommendation,
} from './search/tune/finals/last-comparison.ts'
export {
  type Finalist,
  type TunedTrial,
  type TuneOptions,
  type TuneProgress,
  type TuneResult,
  tune,
} from './search/tune/index.ts'
export type { QueueOptions } from './search/tune/remote-evaluator.ts'
export type { PointFacts } from './search/tune/session.ts'
export type { TuneSubject } from './search/tune/tune-options.ts'
export type * from './search/types.ts'

/**
 * Tunes a kernel (without steps) on several data sets. Each is searched separately, then the fastest schedules of each
 * are measured on all. A small decision tree over the conditions of `choose` (sizes, statistics, the device) selects
 * one of them for given data. The tree is validated leave-one-out. It is replaced by the best single schedule, or by
 * the default schedule, if it is not better than these on unseen data.
 * ```ts
 * const { schedule, generalised, standard } = await tuneAll(kernel, { cases: [{ name: 'a', inputs }, …], device,
 * trials: 64 })
 * ```
 * @throws SptError as `tune`; an error of one case's data is reported in its result, unless all cases fail
 */
export async function tuneAll(kernel: Kernel, options: TuneAllOptions): Promise<TuneAllResult> {
  const tuning = await import('./search/tune/cases/tune-all.ts')
  return tuning.tuneAll(kernel, options)
}
