/**
 * sparsetile/search, in Node: spaces of schedules, their points, and what searches them; what was measured is kept, and
 * found again.
 */
export type { Space, UnboundSpace } from './api/kernels/space.ts'
export { type CalibrateOptions, calibrate } from './search/calibrate/index.ts'
export { type TrainedModel, type Training, trainOnRecords } from './search/calibrate/train.ts'
export {
  costModel,
  costPrior,
  type Prediction,
  type PredictorOptions,
  type PriorOptions,
  predictor,
} from './search/cost-model.ts'
export { count, type PointCount } from './search/count.ts'
export { type Decisions, type KernelTransform, space } from './search/function-space.ts'
export { decisionImportance, type Importance } from './search/importance.ts'
export {
  type AbsentLibrary,
  type LibraryRoutine,
  type LibraryRoutines,
  libraryRoutines,
} from './search/libraries/index.ts'
export { deviceKey } from './search/measuring/device-key.ts'
export { type LockOptions, withDeviceLock } from './search/measuring/device-lock.ts'
export type { Drift } from './search/measuring/drift.ts'
export {
  type Measurable,
  type MeasureRoundsOptions,
  measureRounds,
} from './search/measuring/measure-rounds.ts'
export { summarizeSamples } from './search/measuring/median-interval.ts'
export { prepareReference } from './search/measuring/reference-kernel.ts'
export type { ExitReason, RoundsResult } from './search/measuring/rounds.ts'
export type { CalibratedKernel, Calibration } from './search/model/calibration.ts'
export { type CostModel, useCostModel } from './search/model/trained-models.ts'
export { type Outline, type OutlinedDecision, type OutlineOptions, outline } from './search/outline/index.ts'
export * from './search/points.ts'
export * from './search/records/index.ts'
export { type SearchResult, type StopReason, search } from './search/search.ts'
export type {
  EvaluationContext,
  EvaluationRequest,
  SearchOptions,
  SearchProgress,
} from './search/search-options.ts'
export { type SketchOptions, type SketchSpace, sketches } from './search/sketches.ts'
export { STRATEGIES } from './search/strategies/index.ts'
export * from './search/studies/index.ts'
export { rejectionCode, type Survey, type SurveyOptions, survey } from './search/survey.ts'
export { scheduleText, typescriptText } from './search/text.ts'
export type { TuneCase } from './search/tune/case-study.ts'
export type { Confirmation } from './search/tune/confirmation.ts'
export {
  type Finalist,
  type TunedTrial,
  type TuneOptions,
  type TuneProgress,
  type TuneResult,
  tune,
} from './search/tune/index.ts'
export type { LibraryTrial, LibraryTrials } from './search/tune/libraries.ts'
export type { TuneSubject } from './search/tune/subject.ts'
export { type TuneAllOptions, type TuneAllProgress, tuneAll } from './search/tune/tune-all.ts'
export type { TuneAllResult, TunedCandidate, TunedCase } from './search/tune/tune-all-result.ts'
export type * from './search/types.ts'
