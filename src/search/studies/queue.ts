/** Trials of a study as jobs in its device's queue, and their results. */
import type { Job, Queue } from 'bullmq'
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { TrialRecord } from '../records/types.ts'
import { type Engine, jobId, studyKey, trialsKey } from './connection.ts'
import type { SharedReport, SharedStudy, SharedTrial } from './types.ts'

/** Number of jobs per call. */
const BATCH = 500
/** Number of attempts for a trial whose worker failed. */
const ATTEMPTS = 2

/** Data of a job. */
export interface TrialJob {
  readonly study: string
  readonly trial: SharedTrial
}

/** Fields that identify a trial within its study. */
export type TrialKey = Pick<SharedTrial, 'point' | 'share'>

/** A trial with its result. */
export interface Collected {
  readonly record: TrialRecord
  /** `null` if the worker never sent one. */
  readonly report: SharedReport | null
}

export const chunks = <T>(list: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(list.length / BATCH) }, (_, k) => list.slice(k * BATCH, (k + 1) * BATCH))

/** Adds trials; returns the number of trials that were new, or had failed on a worker. */
export async function addTrials(
  { redis }: Engine,
  queue: Queue,
  shared: SharedStudy,
  requested: readonly SharedTrial[],
): Promise<number> {
  const { id } = shared.study
  const trials = [...new Map(requested.map((t) => [jobId(id, t.point, t.share), t])).values()]
  // Stored before its trials, which workers may take at once.
  await redis.set(studyKey(id), JSON.stringify(shared))
  // Concurrent collectors wait for all trials, and publishing again adds those that this process did not reach.
  for (const part of chunks(trials))
    await redis.sadd(
      trialsKey(id),
      ...part.map(({ point, share }) => JSON.stringify(share === undefined ? { point } : { point, share })),
    )
  let added = 0
  for (const part of chunks(trials)) {
    const existing = await resultsOf(queue, id, part)
    // Trials that failed on every worker may succeed on another one.
    const retried = part.filter((_, k) => existing[k]?.report === null)
    await Promise.all(retried.map((t) => queue.remove(jobId(id, t.point, t.share))))
    await queue.addBulk(
      part.map((trial) => ({
        name: shared.kernel,
        data: { study: id, trial } satisfies TrialJob,
        opts: { jobId: jobId(id, trial.point, trial.share), attempts: ATTEMPTS },
      })),
    )
    added += retried.length + existing.filter((found) => found === null).length
  }
  return added
}

/** Results in order: `undefined` if not done, `null` if missing. */
export const resultsOf = (
  queue: Queue,
  study: string,
  trials: readonly TrialKey[],
): Promise<readonly (Collected | undefined | null)[]> =>
  Promise.all(
    trials.map(async ({ point, share }) => {
      const job = (await queue.getJob(jobId(study, point, share))) as Job<TrialJob> | undefined
      return job ? (job.finishedOn === undefined ? undefined : resultOf(job, study)) : null
    }),
  )

function resultOf(job: Job<TrialJob>, study: string): Collected {
  const { point, share, trace, predicted, terms } = job.data.trial
  const given = { study, point, share, trace, predicted, terms }
  const report = job.returnvalue as SharedReport | null
  // Fields of the report override those of the trial.
  if (report) {
    const { compared, ...kept } = report
    return { record: { ...given, ...compared, ...kept }, report }
  }
  // The worker was killed in each attempt, or never sent a result, so the outcome does not concern the point.
  const message = job.failedReason ?? 'the worker sent no result'
  const outcome = { status: 'failed', code: 'studies/worker', message } as const
  return { record: { ...given, outcome, time: job.finishedOn! }, report: null }
}

/** The study as it was published; `undefined` if it was not. */
export async function sharedStudy({ redis }: Engine, id: string): Promise<SharedStudy | undefined> {
  const text = await redis.get(studyKey(id))
  return text === null ? undefined : (JSON.parse(text) as SharedStudy)
}

/** A study with all trials that were published of it. @throws SptError `studies/unknown` */
export async function publishedStudy(
  engine: Engine,
  id: string,
): Promise<{ readonly shared: SharedStudy; readonly trials: readonly TrialKey[] }> {
  const shared = await sharedStudy(engine, id)
  if (!shared) return unknownStudy(engine, id)
  const members = await engine.redis.smembers(trialsKey(id))
  return { shared, trials: members.map((text) => JSON.parse(text) as TrialKey) }
}

export const unknownStudy = ({ address }: Engine, id: string): never =>
  fail({
    code: 'studies/unknown',
    message: `there is no study ${id} at ${address}`,
    expected: 'a published study',
    hint: 'publish the study again; finished trials are kept',
  })
