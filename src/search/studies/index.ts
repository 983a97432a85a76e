/** Studies that several machines measure, over a file that they share, and the evaluation of their trials. */

import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { failWith, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { AbortSignalLike } from '../../ast/work.ts'
import type { Device } from '../../runtime/device.ts'
import { atEnd } from '../../runtime/dispose.ts'
import { applySteps, type Candidate, Evaluator, type EvaluatorOptions } from '../evaluate/evaluator.ts'
import { hasLostDevice } from '../outcomes.ts'
import { compilerVersion, deviceIdentity } from '../records/identity.ts'
import type { DeviceIdentity } from '../records/types.ts'
import { TrialQueue } from './queue.ts'
import type { RebuildOptions, SharedReport, SharedResult, SharedStudy, SharedTrial } from './rebuild.ts'
import { rebuildStudy } from './rebuild.ts'

export type * from './rebuild.ts'
export { type RebuildOptions, type RebuiltStudy, rebuildStudy, shareProgram } from './rebuild.ts'
export {
  type CollectOptions,
  collectResults,
  publishStudy,
  type RemoteOptions,
  unpublishStudy,
} from './remote-trials.ts'

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
        result = { outcome, ...facts }
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

// The loop of a worker: trials of its device, one at a time.

/** Milliseconds after which an unresponsive worker counts as dead. A trial may block its thread for long. */
const LOCK_MS = 60_000
/** Number of consecutive failures after which the worker itself counts as broken. */
const MAX_BROKEN = 3
/** Milliseconds between two checks for work. */
const IDLE_LOOK_MS = 250

/**
 * Evaluates one trial. Failures of the point are outcomes. If it throws, the trial is retried, by another worker if possible.
 * Diagnostics report errors of the study, except those of devices; other errors are the worker's own.
 */
export type Evaluate = (
  study: SharedStudy,
  trial: SharedTrial,
  context: { readonly signal: AbortSignalLike },
) => Promise<SharedResult>

export interface WorkerOptions {
  /** Ends the worker after its current trial. */
  readonly signal?: AbortSignalLike | undefined
  /**
   * Seconds without work after which it ends, unless another worker runs a trial for the same device, which it may have to
   * take over. Default: it waits for more.
   */
  readonly idleSeconds?: number | undefined
  /** Name of the worker in records; default: host and process. */
  readonly name?: string | undefined
  /** Milliseconds after which other workers take over an unresponsive worker's trial; 60,000. */
  readonly lockMs?: number | undefined
  readonly onTrial?: ((study: SharedStudy, trial: SharedTrial, report: SharedReport) => void) | undefined
  /** Called when it waits for the first trial. */
  readonly onNote?: ((line: string) => void) | undefined
}

/**
 * Evaluates trials of a file until it is stopped; use one worker per device. If a worker dies during a trial, another
 * repeats it after `lockMs`. Returns the number of trials.
 * @throws SptError `records/…` of the file; `studies/broken-worker` if three trials in a row broke
 */
export async function runWorker(
  file: string,
  device: Device | DeviceIdentity,
  evaluate: Evaluate,
  options: WorkerOptions = {},
): Promise<number> {
  const { idleSeconds, lockMs = LOCK_MS, name = `${hostname()}:${process.pid}` } = options
  const { signal = new AbortController().signal } = options
  const identity = 'limits' in device ? deviceIdentity(device) : device
  const served = { device: identity, compiler: compilerVersion() }
  const id = randomUUID()
  using queue = await TrialQueue.open(file)
  const renew = (): void => queue.renew(id, served, Date.now() + lockMs)
  // A failed renewal is repeated; lasting errors are those of the next trial.
  const renewal = setInterval(() => void resultOrError(renew), lockMs / 4)
  let [count, broken, since] = [0, 0, Date.now()]
  using _ = atEnd(() => {
    clearInterval(renewal)
    queue.renew(id, served, 0)
  })
  renew()
  options.onNote?.(`waits for trials for ${identity.name} (${identity.driver}) in ${queue.path}`)
  while (!signal.aborted) {
    const job = queue.take(id, served, Date.now() + lockMs)
    if (!job) {
      const isIdle = idleSeconds !== undefined && Date.now() - since >= 1000 * idleSeconds
      if (isIdle && !queue.hasOpenTrials(served)) break
      await setTimeout(IDLE_LOOK_MS, undefined, { signal: signal as AbortSignal }).catch(() => {})
      continue
    }
    const result = await evaluate(job.shared, job.trial, { signal }).catch((e: unknown) => ({ error: e }))
    since = Date.now()
    if ('error' in result) {
      const { error } = result
      queue.giveBack(job.id, error instanceof Error ? error.message : String(error))
      if (isWorkerError(error) && ++broken >= MAX_BROKEN) failBroken(error)
      continue
    }
    const report = { ...result, worker: name, time: since }
    queue.finish(job.id, report)
    options.onTrial?.(job.shared, job.trial, report)
    count++
    broken = 0
  }
  return count
}

/** True if the error is the worker's own. Errors that reject a study would occur in other workers too. */
const isWorkerError = (e: unknown): boolean =>
  !(e instanceof SptError) || e.diagnostics.some((d) => d.code.startsWith('device/'))

function failBroken(fault: unknown): never {
  if (fault instanceof SptError) throw fault
  return failWith(
    'studies/broken-worker',
    `${MAX_BROKEN} trials in a row broke: ${fault instanceof Error ? fault.message : String(fault)}`,
    { hint: 'check the device (spt doctor); other workers continue with the remaining trials' },
  )
}
