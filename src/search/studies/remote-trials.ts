/** Trials of one study that run on workers. */

import { setTimeout } from 'node:timers/promises'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { AbortSignalLike } from '../../ast/work.ts'
import { DISPOSE } from '../../runtime/dispose.ts'
import { trialId } from '../records/identity.ts'
import type { Records } from '../records/index.ts'
import type { TrialRecord } from '../records/types.ts'
import { type Collected, servedKey, type TrialKey, TrialQueue } from './queue.ts'
import type { SharedStudy, SharedTrial } from './rebuild.ts'

export interface RemoteOptions {
  /** Seconds without a worker after which the study fails; default 60. */
  readonly idleSeconds?: number | undefined
  /** Called once when there is no worker, and again if there was one meanwhile. */
  readonly onNote?: ((line: string) => void) | undefined
}

const IDLE_SECONDS = 60
const POLL_MS = 200

export class RemoteTrials {
  constructor(
    private readonly queue: TrialQueue,
    private readonly shared: SharedStudy,
    private readonly options: RemoteOptions,
  ) {}

  /** Number of workers that take trials of the study's device and compiler. */
  workers(): number {
    const key = servedKey(this.shared.study)
    return this.queue.workers().filter((w) => servedKey(w) === key).length
  }

  /**
   * Outcomes of trials, in their order. Completed trials are not repeated.
   * @param onDone called for each trial when it completes, so that its result survives a cancellation of the others
   * @throws SptError `studies/no-workers` without any worker, `studies/unknown` if the study is deleted meanwhile,
   * `records/…`; the abort reason of `signal`
   */
  async run(
    trials: readonly SharedTrial[],
    signal?: AbortSignalLike,
    onDone?: (at: number, done: Collected) => void,
  ): Promise<readonly Collected[]> {
    const { queue, shared, options } = this
    const { id, device } = shared.study
    queue.publish(shared, trials)
    const results: Collected[] = []
    let pending = [...trials.keys()]
    let isNoted = false
    for (let since = Date.now(); ; ) {
      const found = queue.results(
        id,
        pending.map((k) => trials[k]!),
      )
      for (const [n, done] of found.entries()) {
        if (!done) continue
        results[pending[n]!] = done
        onDone?.(pending[n]!, done)
      }
      const unfinished = pending.filter((_, n) => !found[n])
      if (unfinished.length === 0) return results
      // Existing workers may be busy with trials of other studies.
      if (unfinished.length < pending.length || this.workers() > 0) {
        since = Date.now()
        isNoted = false
      } else if (Date.now() - since > 1000 * (options.idleSeconds ?? IDLE_SECONDS)) this.#failWithoutWorkers()
      else if (!isNoted) {
        options.onNote?.(`no worker takes trials for ${device.name} (${device.driver}): waits for one`)
        isNoted = true
      }
      pending = unfinished
      await pause(POLL_MS, signal)
      signal?.throwIfAborted()
    }
  }

  #failWithoutWorkers(): never {
    const { device, compiler } = this.shared.study
    return failWith(
      'studies/no-workers',
      `no worker at '${this.queue.path}' takes trials for ${device.name} (${device.driver}) with compiler ${compiler}`,
      {
        notes: this.queue
          .workers()
          .map(
            ({ device, compiler }) =>
              `there is one for ${device.kind} ${device.name} (${device.driver}) with compiler ${compiler}`,
          ),
        expected: 'a worker with the same device, driver and compiler',
        hint: `start a worker on each machine: spt tune --worker FILE --device ${device.kind}; published trials stay there`,
      },
    )
  }

  /** Closes the file; published trials remain. */
  [DISPOSE](): void {
    this.queue[DISPOSE]()
  }
}

// Publishes trials of a study for workers, and collects their results.

async function withQueue<T>(file: string, work: (queue: TrialQueue) => T | Promise<T>): Promise<T> {
  using queue = await TrialQueue.open(file)
  return await work(queue)
}

/**
 * Adds trials to a file for workers. A trial that the file contains already, finished or not, is not added again, because
 * its hash identifies it. Returns the number of new trials.
 * @throws SptError `records/…` if the file cannot be used
 */
export const publishStudy = (
  file: string,
  shared: SharedStudy,
  trials: readonly SharedTrial[],
): Promise<{ readonly added: number }> =>
  withQueue(file, (queue) => ({ added: queue.publish(shared, trials) }))

export interface CollectOptions {
  /** Ends with the results collected so far. */
  readonly signal?: AbortSignalLike | undefined
  /** `false`: collects the available results without waiting. */
  readonly wait?: boolean | undefined
  /** Milliseconds between two polls; default 1000. */
  readonly pollMs?: number | undefined
  /** Called for each trial after it is recorded. */
  readonly onTrial?: ((trial: TrialRecord) => void) | undefined
}

/**
 * Collects the results of a published study in records until none is left: each once, even with several collectors.
 * @throws SptError `studies/unknown`, `records/…`
 */
export function collectResults(
  file: string,
  study: string,
  records: Records,
  { signal, wait = true, pollMs = 1000, onTrial }: CollectOptions = {},
): Promise<{ readonly kept: number; readonly left: number }> {
  return withQueue(file, async (queue) => {
    records.addStudy(queue.study(study).study)
    let left = missing(records, study, queue.trials(study))
    for (let kept = 0; ; ) {
      const collected = queue.results(study, left).flatMap((r) => (r ? [r.record] : []))
      kept += collected.length > 0 ? records.add(...collected) : 0
      for (const trial of collected) onTrial?.(trial)
      left = missing(records, study, left)
      if (left.length === 0 || !wait || signal?.aborted) return { kept, left: left.length }
      await pause(pollMs, signal)
    }
  })
}

/** Trials without a record, or measured with less effort. */
const missing = (records: Records, study: string, trials: readonly TrialKey[]): readonly TrialKey[] =>
  trials.filter(({ point, share = 1 }) => {
    const recorded = records.get(trialId(study, point))
    return !recorded || (recorded.outcome.status === 'measured' && (recorded.share ?? 1) < share)
  })

/** Removes a study and its trials from the file; results of trials in progress are discarded. */
export const unpublishStudy = (file: string, study: string): Promise<void> =>
  withQueue(file, (queue) => queue.remove(queue.study(study).study.id))

/** Resolves after the time, or when the signal aborts. */
const pause = (ms: number, signal: AbortSignalLike | undefined): Promise<void> =>
  setTimeout(ms, undefined, signal && { signal: signal as AbortSignal }).catch(() => {})
