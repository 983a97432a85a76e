/** Studies that several machines measure, over queues of BullMQ on Redis. */

export { type RebuildOptions, type RebuiltStudy, rebuildStudy, shareProgram } from './rebuild.ts'
export {
  type CollectOptions,
  collectResults,
  publishStudy,
  unpublishStudy,
} from './remote-trials.ts'
export {
  type StudyEvaluator,
  type StudyEvaluatorOptions,
  studyEvaluator,
} from './study-evaluator.ts'
export type * from './types.ts'
export { type Evaluate, runWorker, type WorkerOptions } from './worker.ts'
