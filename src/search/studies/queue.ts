/** Trials of a study as jobs in its device's queue, and their results. */

import { createHash } from 'node:crypto'
import type { Job, Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { fail, failWith, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { nameText } from '../../ast/diagnostics/expect-argument.ts'
import { importOptional } from '../../ast/diagnostics/optional-packages.ts'
import { trialId } from '../records/identity.ts'
import type { DeviceIdentity, TrialRecord } from '../records/types.ts'
import type { Point } from '../types.ts'
import type { SharedReport, SharedStudy, SharedTrial } from './rebuild.ts'

const BATCH = 500
/** Number of attempts for a trial whose worker failed. */
const ATTEMPTS = 2

export interface TrialJob {
  readonly study: string
  readonly trial: SharedTrial
}

/** Fields that identify a trial within its study. */
export type TrialKey = Pick<SharedTrial, 'point' | 'share'>

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

/**
 * Works on a published study: all trials that were published of it, and their queue.
 * @throws SptError `studies/unknown`, and as `connectEngine`
 */
export async function withStudy<T>(
  url: string,
  id: string,
  work: (study: {
    readonly engine: Engine
    readonly queue: Queue
    readonly shared: SharedStudy
    readonly trials: readonly TrialKey[]
  }) => Promise<T>,
): Promise<T> {
  return withEngine(url, async (engine) => {
    const shared = (await sharedStudy(engine, id)) ?? unknownStudy(engine, id)
    const members = await engine.redis.smembers(trialsKey(id))
    const trials = members.map((text) => JSON.parse(text) as TrialKey)
    return withQueue(engine, shared, (queue) => work({ engine, queue, shared, trials }))
  })
}

/** @throws SptError as `connectEngine` */
export async function withEngine<T>(url: string, work: (engine: Engine) => Promise<T>): Promise<T> {
  const engine = await connectEngine(url)
  try {
    return await work(engine)
  } finally {
    engine.close()
  }
}

/** Works on the queue of a study's device. */
export async function withQueue<T>(
  engine: Engine,
  { study }: SharedStudy,
  work: (queue: Queue) => Promise<T>,
): Promise<T> {
  const queue = openQueue(engine, queueName(study.device, study.compiler))
  try {
    return await work(queue)
  } finally {
    await queue.close()
  }
}

export const unknownStudy = ({ address }: Engine, id: string): never =>
  failWith('studies/unknown', `there is no study ${id} at ${address}`, {
    expected: 'a published study',
    hint: 'publish the study again; finished trials are kept',
  })

// Redis and its queues, through `ioredis` and `bullmq`, which are optional.

/** Milliseconds until the first connection fails; after that, reconnection is unlimited. */
const PATIENCE_MS = 5000
/** Milliseconds between attempts to reconnect. */
const RECONNECT_MS = 500
/** Minimum version of Redis that the queues require. */
const MIN_VERSION = 5

export const PREFIX = 'sparsetile'
export const studyKey = (id: string): string => `${PREFIX}:study:${id}`
export const trialsKey = (id: string): string => `${studyKey(id)}:trials`
/** Redis key of the devices of workers, by the name of their queue. */
export const DEVICES_KEY = `${PREFIX}:devices`

/** Job id with a prefix, because BullMQ reserves numbers for its own ids. */
export const jobId = (study: string, point: Point, share = 1): string =>
  `trial-${trialId(study, point)}${share === 1 ? '' : `-${share}`}`

/** One queue for each kind of device, chip, driver and compiler, so that workers only get trials whose times hold for them. */
export function queueName({ kind, name, driver }: DeviceIdentity, compiler: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([kind, name, driver, compiler]))
    .digest('hex')
  return `${kind}-${name.replace(/[^A-Za-z0-9]+/g, '-')}-${hash.slice(0, 12)}`
}

export interface Engine {
  readonly bullmq: typeof import('bullmq')
  readonly redis: Redis
  /** The server without its password. */
  readonly address: string
  close(): void
}

/** @throws SptError `studies/unavailable`, `studies/address`, `studies/unreachable` */
export async function connectEngine(url: string): Promise<Engine> {
  const address = addressOf(url)
  const { bullmq, Client } = await packages()
  const redis = new Client(url, {
    lazyConnect: true,
    connectTimeout: PATIENCE_MS,
    // Commands wait without limit, so that a restarted server is reconnected.
    maxRetriesPerRequest: null,
    retryStrategy: () => RECONNECT_MS,
  })
  let last = ''
  redis.on('error', (e: Error) => {
    last = e.message
  })
  const late = new Promise<never>((_, reject) =>
    setTimeout(() => reject(new Error(last || 'it does not answer')), PATIENCE_MS).unref(),
  )
  try {
    const about = await Promise.race([redis.connect().then(() => redis.info('server')), late])
    checkVersion(about, address)
  } catch (e) {
    redis.disconnect()
    if (e instanceof SptError) throw e
    failWith(
      'studies/unreachable',
      `there is no Redis at ${address} that can be used: ${last || (e as Error).message}`,
      {
        expected: 'a running server',
        hint: 'start a server (redis-server --appendonly yes), and check the address and password',
      },
    )
  }
  return { bullmq, redis, address, close: () => redis.disconnect() }
}

/** A server without a reported version is accepted. */
function checkVersion(about: string, address: string): void {
  const version = /^redis_version:((\d+)\S*)/m.exec(about)
  if (!version || Number(version[2]) >= MIN_VERSION) return
  failWith('studies/version', `the Redis at ${address} is of version ${version[1]}`, {
    expected: `version ${MIN_VERSION} or later`,
    hint: 'start a newer server',
  })
}

interface Packages {
  readonly bullmq: typeof import('bullmq')
  readonly Client: typeof Redis
}

async function packages(): Promise<Packages> {
  const packages = await importOptional('shared studies need', 'bullmq ioredis', async () => ({
    bullmq: await import('bullmq'),
    Client: (await import('ioredis')).Redis,
  }))
  return 'reason' in packages
    ? failWith('studies/unavailable', packages.reason, { hint: packages.hint })
    : packages
}

function addressOf(url: string): string {
  let parsed: URL | undefined
  try {
    parsed = new URL(url)
  } catch {
    // Reported below.
  }
  if (parsed && /^rediss?:$/.test(parsed.protocol) && parsed.hostname !== '')
    return `${parsed.hostname}:${parsed.port || '6379'}`
  return fail({
    code: 'studies/address',
    // An invalid address may contain a password.
    message: `${/:.*@/.test(url) ? 'what was given' : nameText(url)} is not the address of a Redis server`,
    expected: 'redis://HOST:PORT, with a password redis://:PASSWORD@HOST:PORT, encrypted rediss://…',
  })
}

/** Opens a queue, whose connection stays open when the queue is closed. @throws errors of the connection */
export function openQueue({ bullmq, redis }: Engine, name: string): Queue {
  const queue = new bullmq.Queue(name, { connection: redis, prefix: PREFIX })
  // Errors are those of the connection, which reconnects.
  queue.on('error', () => {})
  return queue
}
