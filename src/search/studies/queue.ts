/** Trials of a study as jobs in its device's queue, and their results. */
import type { Job, Queue } from 'bullmq'
import { fail } from '../../ast/diagnostic.ts'
import type { TrialRecord } from '../records/types.ts'
import { type Engine, jobId, studyKey, trialsKey } from './connection.ts'
import type { SharedReport, SharedStudy, SharedTrial } from './types.ts'

/** Jobs in one call. */
const BATCH = 500
/** Times that a trial is begun whose worker broke. */
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
  /** `null`: its worker never sent one. */
  readonly report: SharedReport | null
}

export const chunks = <T>(list: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(list.length / BATCH) }, (_, k) => list.slice(k * BATCH, (k + 1) * BATCH))

/** Gives how many were not there, or could not be done. */
export async function addTrials(
  { redis }: Engine,
  queue: Queue,
  shared: SharedStudy,
  given: readonly SharedTrial[],
): Promise<number> {
  const { id } = shared.study
  const trials = [...new Map(given.map((t) => [jobId(id, t.point, t.share), t])).values()]
  // Before its trials, which workers may take at once.
  await redis.set(studyKey(id), JSON.stringify(shared))
  // Whoever collects meanwhile waits for all of them, and whoever publishes again adds what this process did not come to.
  for (const part of chunks(trials))
    await redis.sadd(
      trialsKey(id),
      ...part.map(({ point, share }) => JSON.stringify(share === undefined ? { point } : { point, share })),
    )
  let added = 0
  for (const part of chunks(trials)) {
    const there = await resultsOf(queue, id, part)
    // Of those that no worker could do, another one may be able to.
    const again = part.filter((_, k) => there[k]?.report === null)
    await Promise.all(again.map((t) => queue.remove(jobId(id, t.point, t.share))))
    await queue.addBulk(
      part.map((trial) => ({
        name: shared.kernel,
        data: { study: id, trial } satisfies TrialJob,
        opts: { jobId: jobId(id, trial.point, trial.share), attempts: ATTEMPTS },
      })),
    )
    added += again.length + there.filter((found) => found === null).length
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
  // What went wrong before it was done again is still said of it.
  if (report) {
    const { compared, ...kept } = report
    return { record: { ...given, ...compared, ...kept }, report }
  }
  // Its worker was killed each time, or never sent a result: nobody can say what the point has to do with it.
  const message = job.failedReason ?? 'the worker sent no result'
  const outcome = { status: 'failed', code: 'studies/worker', message } as const
  return { record: { ...given, outcome, time: job.finishedOn! }, report: null }
}

/** The study as it was published; `undefined` where it was not. */
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
    expected: 'one that was published',
    hint: 'publish the study again; finished trials are kept',
  })
