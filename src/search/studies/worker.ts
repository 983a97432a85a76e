/** A worker: evaluates trials of its device's queue, one at a time. */
import { hostname } from 'node:os'
import type { Worker } from 'bullmq'
import { failWith, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Device } from '../../runtime/device.ts'
import { compilerVersion, deviceIdentity } from '../records/identity.ts'
import type { DeviceIdentity } from '../records/types.ts'
import type { TrialJob } from './queue.ts'
import { connectEngine, DEVICES_KEY, openQueue, PREFIX, queueName, sharedStudy } from './queue.ts'
import type { SharedReport, SharedResult, SharedStudy, SharedTrial } from './rebuild.ts'

/** Milliseconds after which an unresponsive worker counts as dead. A trial may block its thread for long. */
const LOCK_MS = 60_000
/** Number of lost workers after which a trial counts as their cause. */
const MAX_LOST = 2
/** Number of consecutive failures after which the worker itself counts as broken. */
const MAX_BROKEN = 3
/** Milliseconds that closing a connection may take. */
const CLOSING_MS = 5000
/** Milliseconds between two checks for remaining work. */
const IDLE_LOOK_MS = 250

/**
 * Evaluates one trial. Failures of the point are outcomes. If it throws, the trial is retried, by another worker if possible.
 * Diagnostics report errors of the study, except those of devices; other errors are the worker's own.
 */
export type Evaluate = (
  study: SharedStudy,
  trial: SharedTrial,
  context: { readonly signal: AbortSignal },
) => Promise<SharedResult>

export interface WorkerOptions {
  /** Ends the worker after its current trial. */
  readonly signal?: AbortSignal | undefined
  /**
   * Seconds without work after which it ends, unless another worker runs a trial of its queue, which it may have to take
   * over. Default: it waits for more.
   */
  readonly idleSeconds?: number | undefined
  /** Name of the worker in records; default: host and process. */
  readonly name?: string | undefined
  /** Milliseconds after which other workers take over an unresponsive worker's trial; 60,000. */
  readonly lockMs?: number | undefined
  readonly onTrial?: ((study: SharedStudy, trial: SharedTrial, report: SharedReport) => void) | undefined
  /** Called when it listens to a queue, and for connection errors. */
  readonly onNote?: ((line: string) => void) | undefined
}

/** Device and compiler served by the workers of a queue. */
export interface Served {
  readonly device: DeviceIdentity
  readonly compiler: string
}

/**
 * Evaluates trials until it is stopped; use one worker per device. If a worker dies during a trial, another repeats it after
 * `lockMs`. Waits while the server is unreachable. Returns the number of trials.
 * @throws SptError `studies/unavailable`, `studies/address`, `studies/unreachable`, `studies/version`;
 * `studies/broken-worker` if three trials in a row broke
 */
export async function runWorker(
  url: string,
  device: Device | DeviceIdentity,
  evaluate: Evaluate,
  options: WorkerOptions = {},
): Promise<number> {
  const { signal, idleSeconds, lockMs = LOCK_MS, onNote } = options
  const identity = 'limits' in device ? deviceIdentity(device) : device
  const engine = await connectEngine(url)
  const compiler = compilerVersion()
  const queue = queueName(identity, compiler)
  const studies = new Map<string, SharedStudy>()
  const ending = new AbortController()
  const state = { done: 0, failBroken: 0, busy: false, since: Date.now(), fault: undefined as unknown }

  const studyOf = async (id: string): Promise<SharedStudy> => {
    const found = studies.get(id) ?? (await sharedStudy(engine, id))
    if (!found) throw new Error(`study ${id} was forgotten`)
    studies.set(id, found)
    return found
  }
  const attempt = async ({ study, trial }: TrialJob): Promise<SharedReport> => {
    const shared = await studyOf(study)
    try {
      const result = await evaluate(shared, trial, { signal: ending.signal })
      const report = { ...result, worker: options.name ?? `${hostname()}:${process.pid}`, time: Date.now() }
      state.done++
      state.failBroken = 0
      options.onTrial?.(shared, trial, report)
      return report
    } catch (e) {
      if (isWorkerError(e) && ++state.failBroken >= MAX_BROKEN) {
        state.fault = e
        ending.abort()
      }
      throw e
    }
  }
  await engine.redis.hset(DEVICES_KEY, queue, JSON.stringify({ device: identity, compiler } satisfies Served))
  const worker = new engine.bullmq.Worker<TrialJob, SharedReport>(
    queue,
    async (job) => {
      state.busy = true
      try {
        return await attempt(job.data)
      } finally {
        state.busy = false
        state.since = Date.now()
      }
    },
    {
      connection: engine.redis,
      prefix: PREFIX,
      concurrency: 1,
      lockDuration: lockMs,
      stalledInterval: lockMs / 2,
      maxStalledCount: MAX_LOST,
      // Other workers may hold the jobs that this one waits for.
      drainDelay: 1,
    },
  )
  const jobs = openQueue(engine, queue)
  // An unresponsive server counts as having no jobs.
  const hasOpen = (): Promise<boolean> =>
    Promise.race([
      jobs.getJobCountByTypes('active', 'waiting', 'delayed').then((n) => n > 0),
      new Promise<boolean>((resolve) => setTimeout(resolve, CLOSING_MS, false)),
    ]).catch(() => false)
  let last = ''
  worker.on('error', (e) => {
    if (e.message !== last) onNote?.(e.message)
    last = e.message
  })
  onNote?.(`waits for trials of ${queue} at ${engine.address}`)
  try {
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearInterval(timer)
        signal?.removeEventListener('abort', end)
        ending.signal.removeEventListener('abort', end)
        resolve()
      }
      const isIdle = (): boolean =>
        idleSeconds !== undefined && !state.busy && Date.now() - state.since >= 1000 * idleSeconds
      let looks = false
      const timer = setInterval(async () => {
        if (looks || !isIdle()) return
        looks = true
        if (!(await hasOpen()) && isIdle()) end()
        looks = false
      }, IDLE_LOOK_MS)
      signal?.addEventListener('abort', end)
      ending.signal.addEventListener('abort', end)
      if (signal?.aborted) end()
    })
    ending.abort()
    await closeWorker(worker, () => state.busy)
  } finally {
    engine.close()
  }
  if (state.fault !== undefined) failBroken(state.fault)
  return state.done
}

/** True if the error is the worker's own. Errors that reject a study would occur in other workers too. */
const isWorkerError = (e: unknown): boolean =>
  !(e instanceof SptError) || e.diagnostics.some((d) => d.code.startsWith('device/'))

/**
 * Closes the worker after its current trial. If the server is unreachable, the connection would be awaited forever;
 * BullMQ's pending call cannot be cancelled, and ends when the server returns.
 */
async function closeWorker(worker: Worker, busy: () => boolean): Promise<void> {
  const ended = worker.close().then(() => true)
  const late = (): Promise<boolean> => new Promise((resolve) => setTimeout(resolve, CLOSING_MS, false))
  ended.catch(() => {})
  while (!(await Promise.race([ended, late()]))) if (!busy()) return
}

function failBroken(fault: unknown): never {
  if (fault instanceof SptError) throw fault
  return failWith(
    'studies/broken-worker',
    `${MAX_BROKEN} trials in a row broke: ${fault instanceof Error ? fault.message : String(fault)}`,
    { hint: 'check the device (spt doctor); other workers continue with the remaining trials' },
  )
}
