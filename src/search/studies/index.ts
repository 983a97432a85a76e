/** Studies that several machines measure, over queues of BullMQ on Redis, and the evaluation of their trials. */
import type { Kernel } from '../../api/kernels/kernel.ts'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Device } from '../../runtime/device.ts'
import { Evaluator, type EvaluatorOptions } from '../evaluate/evaluator.ts'
import { hasLostDevice } from '../outcomes.ts'
import { pointKey } from '../spaces/points.ts'
import type { KernelSpace } from '../types.ts'
import type { RebuildOptions, SharedResult, SharedStudy, SharedTrial } from './rebuild.ts'
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
 * await runWorker(url, device, evaluate, { idleSeconds: 600 })
 * close()
 * ```
 */
export function studyEvaluator(device: Device, options: StudyEvaluatorOptions = {}): StudyEvaluator {
  let current: Device | null = device
  /** By study, in the order of last use. */
  const studies = new Map<string, StudyTrials>()
  const drop = (id: string): void => {
    studies.get(id)?.close()
    studies.delete(id)
  }
  const openDevice = async (): Promise<Device> => {
    current ??= options.reopen ? await options.reopen() : null
    return current ?? failWith('device/lost', 'the device was lost', { hint: 'open it again' })
  }
  const trialsOf = async (shared: SharedStudy): Promise<StudyTrials> => {
    const { id } = shared.study
    const known = studies.get(id) ?? (await StudyTrials.of(shared, await openDevice(), options))
    studies.delete(id)
    studies.set(id, known)
    for (const oldest of [...studies.keys()].slice(0, -MAX_STUDIES)) drop(oldest)
    return known
  }
  return {
    // A trial that was started is completed, because its outcome would be unknown otherwise.
    async evaluate(shared, trial) {
      const start = performance.now()
      const trials = await trialsOf(shared)
      const result = await trials.done(trial)
      if (hasLostDevice(result.outcome)) {
        // This trial is responsible, because nothing else ran.
        for (const id of [...studies.keys()]) drop(id)
        current = null
      }
      return {
        ...result,
        share: trial.share,
        predicted: trial.predicted,
        duration: performance.now() - start,
      }
    },
    close() {
      for (const id of [...studies.keys()]) drop(id)
      return current
    },
  }
}

/** One study on a device; its points are those of its trials, which contain their steps. */
class StudyTrials {
  private constructor(
    private readonly evaluator: Evaluator,
    private readonly traces: Map<string, SharedTrial['trace']>,
  ) {}

  /** @throws SptError as `rebuildStudy`, `search/reference-too-long` */
  static async of(shared: SharedStudy, device: Device, options: StudyEvaluatorOptions): Promise<StudyTrials> {
    const { kernel, inputs } = await rebuildStudy(shared, options)
    const traces = new Map<string, SharedTrial['trace']>()
    const space: KernelSpace<Kernel> = {
      name: shared.study.space,
      next: () => null,
      kernel: (point) => kernel.replay(traces.get(pointKey(point)) ?? []),
    }
    const { rounds, seconds, timeout } = options
    const evaluator = new Evaluator({
      kernel,
      inputs,
      space,
      device,
      rounds,
      seconds,
      timeout,
      seed: shared.seed,
    })
    return new StudyTrials(evaluator, traces)
  }

  async done({ point, trace, share = 1 }: SharedTrial): Promise<Pick<SharedResult, 'outcome' | 'compared'>> {
    const key = pointKey(point)
    this.traces.set(key, trace)
    try {
      const [outcome] = await this.evaluator.evaluate([{ point, share }])
      const { bytes, relativeError, sampled } = this.evaluator.factsOf(point) ?? {}
      const compared =
        bytes !== undefined && relativeError !== undefined && sampled !== undefined
          ? { bytes, relativeError, sampled }
          : undefined
      return { outcome: outcome!, compared }
    } finally {
      this.traces.delete(key)
    }
  }

  close(): void {
    this.evaluator.close()
  }
}
