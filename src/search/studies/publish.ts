/** A study's trials, put where workers find them, and its results, taken from there. */
import { setTimeout } from 'node:timers/promises'
import type { Job, Queue } from 'bullmq'
import { fail } from '../../ast/diagnostic.ts'
import type { Records } from '../records/index.ts'
import type { TrialRecord } from '../records/types.ts'
import type { Point } from '../types.ts'
import { connectEngine, type Engine, jobId, openQueue, queueName, studyKey, trialsKey } from './connection.ts'
import type { SharedReport, SharedStudy, SharedTrial } from './types.ts'

/** Jobs in one call. */
const BATCH = 500
/** Times that a trial is begun whose worker broke. */
const ATTEMPTS = 2

export interface Job1 {
  readonly study: string
  readonly trial: SharedTrial
}

const chunks = <T>(list: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(list.length / BATCH) }, (_, k) => list.slice(k * BATCH, (k + 1) * BATCH))

/**
 * Adds trials to the queue of the study's device. One that is there already, waiting, being done or done, is not added
 * again: a trial is its hash. Gives the queue, and how many are new.
 * @throws SptError `studies/unavailable`, `studies/address`, `studies/unreachable`
 */
export async function publishStudy(
  url: string,
  shared: SharedStudy,
  trials: readonly SharedTrial[],
): Promise<{ readonly queue: string; readonly added: number }> {
  const engine = await connectEngine(url)
  const { id, device, compiler } = shared.study
  const name = queueName(device, compiler)
  const queue = openQueue(engine, name)
  try {
    // Before its trials, which workers may take at once.
    await engine.redis.set(studyKey(id), JSON.stringify(shared))
    let added = 0
    for (const part of chunks(trials)) {
      await queue.addBulk(
        part.map((trial) => ({
          name: shared.kernel,
          data: { study: id, trial } satisfies Job1,
          opts: { jobId: jobId(id, trial.point), attempts: ATTEMPTS },
        })),
      )
      added += await engine.redis.sadd(trialsKey(id), ...part.map((t) => JSON.stringify(t.point)))
    }
    return { queue: name, added }
  } finally {
    await queue.close()
    engine.close()
  }
}

export interface CollectOptions {
  /** Ends it with what there is. */
  readonly signal?: AbortSignal | undefined
  /** `false`: takes what is there, and does not wait for the rest. */
  readonly wait?: boolean | undefined
  /** Milliseconds between looks at what is left; 1000. */
  readonly everyMs?: number | undefined
  /** Told of each once it is kept. */
  readonly onTrial?: ((trial: TrialRecord) => void) | undefined
}

/**
 * Keeps the results of a published study in records until none is left: each once, whoever else collects. A server that
 * goes away is waited for.
 * @throws SptError `studies/unknown` besides those of `publishStudy`, `records/…`
 */
export async function collectResults(
  url: string,
  study: string,
  records: Records,
  { signal, wait = true, everyMs = 1000, onTrial }: CollectOptions = {},
): Promise<{ readonly kept: number; readonly left: number }> {
  const engine = await connectEngine(url)
  try {
    const { shared, points } = await published(engine, study)
    const queue = openQueue(engine, queueName(shared.study.device, shared.study.compiler))
    try {
      records.addStudy(shared.study)
      let left = records.missing(study, points)
      for (let kept = 0; ; ) {
        for (const part of chunks(left)) {
          const found = await resultsOf(queue, study, part)
          kept += found.length > 0 ? records.add(...found) : 0
          for (const trial of found) onTrial?.(trial)
        }
        left = records.missing(study, left)
        if (left.length === 0 || !wait || signal?.aborted) return { kept, left: left.length }
        await pause(everyMs, signal)
      }
    } finally {
      await queue.close()
    }
  } finally {
    engine.close()
  }
}

/** Forgets a study and its trials at the server, done or not: what is being done has nowhere to go. */
export async function forgetStudy(url: string, study: string): Promise<void> {
  const engine = await connectEngine(url)
  try {
    const { shared, points } = await published(engine, study)
    const queue = openQueue(engine, queueName(shared.study.device, shared.study.compiler))
    for (const part of chunks(points)) await Promise.all(part.map((p) => queue.remove(jobId(study, p))))
    await engine.redis.del(studyKey(study), trialsKey(study))
    await queue.close()
  } finally {
    engine.close()
  }
}

/** The study as it was published; `undefined` where it was not. */
export async function sharedStudy({ redis }: Engine, id: string): Promise<SharedStudy | undefined> {
  const text = await redis.get(studyKey(id))
  return text === null ? undefined : (JSON.parse(text) as SharedStudy)
}

async function published(
  engine: Engine,
  id: string,
): Promise<{ readonly shared: SharedStudy; readonly points: readonly Point[] }> {
  const shared = await sharedStudy(engine, id)
  if (!shared)
    return fail({
      code: 'studies/unknown',
      message: `there is no study ${id} at ${engine.address}`,
      expected: 'one that was published',
      hint: 'publish it again: what is done stays done',
    })
  const points = (await engine.redis.smembers(trialsKey(id))).map((text) => JSON.parse(text) as Point)
  return { shared, points }
}

async function resultsOf(queue: Queue, study: string, points: readonly Point[]): Promise<TrialRecord[]> {
  const jobs = await Promise.all(points.map((p) => queue.getJob(jobId(study, p))))
  return jobs.flatMap((job) => (job?.finishedOn === undefined ? [] : [trialOf(job as Job<Job1>, study)]))
}

function trialOf(job: Job<Job1>, study: string): TrialRecord {
  const { point, trace, predicted, terms } = job.data.trial
  const given = { study, point, trace, predicted, terms }
  const report = job.returnvalue as SharedReport | null
  // What went wrong before it was done again is still said of it.
  if (report) return { ...given, ...report }
  // Its worker was killed each time, or never sent a result: nobody can say what the point has to do with it.
  const message = job.failedReason ?? 'the worker sent no result'
  return { ...given, outcome: { status: 'failed', code: 'studies/worker', message }, time: job.finishedOn! }
}

/** Resolves as well where the signal aborts. */
const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  setTimeout(ms, undefined, signal && { signal }).catch(() => {})
