/** Publishes trials of a study for workers, and collects their results. */
import { setTimeout } from 'node:timers/promises'
import { trialId } from '../records/identity.ts'
import type { Records } from '../records/index.ts'
import type { TrialRecord } from '../records/types.ts'
import {
  addTrials,
  chunks,
  connectEngine,
  jobId,
  openQueue,
  publishedStudy,
  queueName,
  resultsOf,
  studyKey,
  type TrialKey,
  trialsKey,
} from './queue.ts'
import type { SharedStudy, SharedTrial } from './types.ts'

/**
 * Adds trials to the queue of the study's device. One that is there already, waiting, being done or done, is not added
 * again: a trial is its hash. Gives the queue, and how many are new.
 * @throws SptError `studies/unavailable`, `studies/address`, `studies/unreachable`, `studies/version`
 */
export async function publishStudy(
  url: string,
  shared: SharedStudy,
  trials: readonly SharedTrial[],
): Promise<{ readonly queue: string; readonly added: number }> {
  const engine = await connectEngine(url)
  const name = queueName(shared.study.device, shared.study.compiler)
  const queue = openQueue(engine, name)
  try {
    return { queue: name, added: await addTrials(engine, queue, shared, trials) }
  } finally {
    await queue.close()
    engine.close()
  }
}

export interface CollectOptions {
  /** Ends with the results collected so far. */
  readonly signal?: AbortSignal | undefined
  /** `false`: collects the available results without waiting. */
  readonly wait?: boolean | undefined
  /** Milliseconds between two polls; default 1000. */
  readonly pollMs?: number | undefined
  /** Called for each trial after it is recorded. */
  readonly onTrial?: ((trial: TrialRecord) => void) | undefined
}

/**
 * Collects the results of a published study in records until none is left: each once, even with several collectors. Waits
 * while the server is unreachable.
 * @throws SptError `studies/unknown` in addition to those of `publishStudy`, `records/…`
 */
export async function collectResults(
  url: string,
  study: string,
  records: Records,
  { signal, wait = true, pollMs = 1000, onTrial }: CollectOptions = {},
): Promise<{ readonly kept: number; readonly left: number }> {
  const engine = await connectEngine(url)
  try {
    const { shared, trials } = await publishedStudy(engine, study)
    const queue = openQueue(engine, queueName(shared.study.device, shared.study.compiler))
    try {
      records.addStudy(shared.study)
      let left = missing(records, study, trials)
      for (let kept = 0; ; ) {
        for (const part of chunks(left)) {
          const collected = (await resultsOf(queue, study, part)).flatMap((r) => (r ? [r.record] : []))
          kept += collected.length > 0 ? records.add(...collected) : 0
          for (const trial of collected) onTrial?.(trial)
        }
        left = missing(records, study, left)
        if (left.length === 0 || !wait || signal?.aborted) return { kept, left: left.length }
        await pause(pollMs, signal)
      }
    } finally {
      await queue.close()
    }
  } finally {
    engine.close()
  }
}

/** Trials without a record, or measured with less effort. */
const missing = (records: Records, study: string, trials: readonly TrialKey[]): readonly TrialKey[] =>
  trials.filter(({ point, share = 1 }) => {
    const recorded = records.get(trialId(study, point))
    return !recorded || (recorded.outcome.status === 'measured' && (recorded.share ?? 1) < share)
  })

/** Removes a study and its trials from the server; results of trials in progress are discarded. */
export async function unpublishStudy(url: string, study: string): Promise<void> {
  const engine = await connectEngine(url)
  try {
    const { shared, trials } = await publishedStudy(engine, study)
    const queue = openQueue(engine, queueName(shared.study.device, shared.study.compiler))
    for (const part of chunks(trials))
      await Promise.all(part.map((t) => queue.remove(jobId(study, t.point, t.share))))
    await engine.redis.del(studyKey(study), trialsKey(study))
    await queue.close()
  } finally {
    engine.close()
  }
}

/** Resolves after the time, or when the signal aborts. */
export const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  setTimeout(ms, undefined, signal && { signal }).catch(() => {})
