/** Studies that several machines measure, over a file that they share, and the evaluation of their trials. */
import type { Kernel } from '../../api/kernels/kernel.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Device } from '../../runtime/device.ts'
import { applySteps, type Candidate, Evaluator, type EvaluatorOptions } from '../evaluate/evaluator.ts'
import { hasLostDevice } from '../outcomes.ts'
import type { RebuildOptions, SharedResult, SharedStudy } from './rebuild.ts'
import { rebuildStudy } from './rebuild.ts'
import type { Evaluate } from './worker.ts'

export type * from './rebuild.ts'
export { type RebuildOptions, type RebuiltStudy, rebuildStudy, shareProgram } from './rebuild.ts'
export {
  type CollectOptions,
  collectResults,
  publishStudy,
  unpublishStudy,
} from './remote-trials.ts'
export { type Evaluate, runWorker, type WorkerOptions } from './worker.ts'

// Evaluates trials in workers as `tune` does; kernel and data are built once per study.

export interface StudyEvaluatorOptions
  extends RebuildOptions,
    Pick<EvaluatorOptions, 'rounds' | 'seconds' | 'timeout'> {
  /** Opens the device again after its loss; without it, a loss ends the worker. */
  readonly reopen?: (() => Promise<Device>) | undefined
}

/** Number of studies whose data stay prepared, because trials of several may alternate. */
const MAX_STUDIES = 4

export interface StudyEvaluator {
  /** For `runWorker`. */
  readonly evaluate: Evaluate
  /** Frees the device memory and returns the device; `null` if it was lost. */
  close(): Device | null
}

/**
 * Evaluator of trials on a device:
 * ```ts
 * const { evaluate, close } = studyEvaluator(device)
 * await runWorker(file, device, evaluate, { idleSeconds: 600 })
 * close()
 * ```
 */
export function studyEvaluator(device: Device, options: StudyEvaluatorOptions = {}): StudyEvaluator {
  let current: Device | null = device
  /** By study, in the order of last use. */
  const studies = new Map<string, PreparedStudy>()
  const drop = (id: string): void => {
    studies.get(id)?.evaluator.close()
    studies.delete(id)
  }
  const openDevice = async (): Promise<Device> => {
    current ??= options.reopen ? await options.reopen() : null
    return current ?? failWith('device/lost', 'the device was lost', { hint: 'open it again' })
  }
  const studyOf = async (shared: SharedStudy): Promise<PreparedStudy> => {
    const { id } = shared.study
    const known = studies.get(id) ?? (await prepareStudy(shared, await openDevice(), options))
    studies.delete(id)
    studies.set(id, known)
    for (const oldest of [...studies.keys()].slice(0, -MAX_STUDIES)) drop(oldest)
    return known
  }
  return {
    // A trial that was started is completed, because its outcome would be unknown otherwise.
    async evaluate(shared, { point, trace, share = 1 }) {
      const start = performance.now()
      const { kernel, evaluator } = await studyOf(shared)
      let result!: SharedResult
      const settle: Candidate['settle'] = (outcome, facts) => {
        result = { outcome, compared: facts?.compared }
      }
      const applied = applySteps(() => kernel.replay(trace))
      if ('rejection' in applied) settle(applied.rejection)
      else await evaluator.evaluate([{ point, share, kernel: applied.kernel, settle }])
      if (hasLostDevice(result.outcome)) {
        // This trial is responsible, because nothing else ran.
        for (const id of [...studies.keys()]) drop(id)
        current = null
      }
      return { ...result, duration: performance.now() - start }
    },
    close() {
      for (const id of [...studies.keys()]) drop(id)
      return current
    },
  }
}

interface PreparedStudy {
  readonly kernel: Kernel
  readonly evaluator: Evaluator
}

/** @throws SptError as `rebuildStudy` */
async function prepareStudy(
  shared: SharedStudy,
  device: Device,
  options: StudyEvaluatorOptions,
): Promise<PreparedStudy> {
  const { kernel, inputs } = await rebuildStudy(shared, options)
  const { rounds, seconds, timeout } = options
  const { seed } = shared
  return { kernel, evaluator: new Evaluator({ kernel, inputs, device, rounds, seconds, timeout, seed }) }
}
