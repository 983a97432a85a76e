/** Trials of one study that run on workers. */

import { setTimeout } from 'node:timers/promises'
import type { Queue } from 'bullmq'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { trialId } from '../records/identity.ts'
import type { Records } from '../records/index.ts'
import type { TrialRecord } from '../records/types.ts'
import {
  addTrials,
  type Collected,
  chunks,
  connectEngine,
  DEVICES_KEY,
  type Engine,
  jobId,
  openQueue,
  queueName,
  resultsOf,
  studyKey,
  type TrialKey,
  trialsKey,
  unknownStudy,
  withEngine,
  withQueue,
  withStudy,
} from './queue.ts'
import type { SharedStudy, SharedTrial } from './rebuild.ts'
import type { Served } from './worker.ts'

export interface RemoteOptions {
  /** Seconds without a worker, or without a response of the server, after which the study fails; default 60. */
  readonly idleSeconds?: number | undefined
  /** Milliseconds between two polls; default 200. */
  readonly pollMs?: number | undefined
  /** Called when there is no worker, and for connection errors. */
  readonly onNote?: ((line: string) => void) | undefined
}

const IDLE_SECONDS = 60
const EVERY_MS = 200
/** Milliseconds without a worker, after there was one, until this is reported. */
const GONE_MS = 5000

export class RemoteTrials {
  readonly #engine: Engine
  readonly #queue: Queue
  readonly #shared: SharedStudy
  readonly #idleMs: number
  readonly #pollMs: number
  readonly #note: (line: string) => void

  private constructor(engine: Engine, shared: SharedStudy, options: RemoteOptions) {
    const { device, compiler } = shared.study
    const { idleSeconds = IDLE_SECONDS, pollMs = EVERY_MS, onNote } = options
    this.#engine = engine
    this.#queue = openQueue(engine, queueName(device, compiler))
    this.#shared = shared
    this.#idleMs = 1000 * idleSeconds
    this.#pollMs = pollMs
    let last = ''
    this.#note = (line) => {
      if (line !== last) onNote?.(line)
      last = line
    }
    engine.redis.on('error', (e: Error) => this.#note(`${engine.address}: ${e.message}`))
  }

  /** @throws SptError `studies/unavailable`, `studies/address`, `studies/unreachable`, `studies/version` */
  static async open(url: string, shared: SharedStudy, options: RemoteOptions = {}): Promise<RemoteTrials> {
    return new RemoteTrials(await connectEngine(url), shared, options)
  }

  get queue(): string {
    return this.#queue.name
  }

  /** Number of workers that take trials of the queue. */
  workers(signal?: AbortSignal): Promise<number> {
    return this.#awaitAnswer(this.#queue.getWorkersCount(), signal)
  }

  /**
   * Outcomes of trials, in their order. Completed trials are not repeated.
   * @param onDone called for each trial when it completes, so that its result survives a cancellation of the others
   * @throws SptError `studies/no-workers` without any worker, `studies/unreachable`, `studies/unknown` if the study is
   * deleted meanwhile; the abort reason of `signal`
   */
  async run(
    trials: readonly SharedTrial[],
    signal?: AbortSignal,
    onDone?: (at: number, done: Collected) => void,
  ): Promise<readonly Collected[]> {
    const { id } = this.#shared.study
    await this.#awaitAnswer(addTrials(this.#engine, this.#queue, this.#shared, trials), signal)
    const results: Collected[] = []
    let pending = [...trials.keys()]
    let hadWorker = false
    for (let since = Date.now(); ; ) {
      const found = await this.#awaitAnswer(
        resultsOf(
          this.#queue,
          id,
          pending.map((k) => trials[k]!),
        ),
        signal,
      )
      if (found.includes(null)) unknownStudy(this.#engine, id)
      for (const [n, k] of pending.entries()) {
        const done = found[n]
        if (!done) continue
        results[k] = done
        onDone?.(k, done)
      }
      const unfinished = pending.filter((_, n) => !found[n])
      if (unfinished.length === 0) return results
      // Existing workers may be busy with trials of other studies.
      if (unfinished.length < pending.length || (await this.workers(signal)) > 0) {
        since = Date.now()
        hadWorker = true
      } else if (Date.now() - since > this.#idleMs) await this.#noWorkers()
      else if (!hadWorker) this.#note(`no worker takes trials of ${this.queue} yet: waits for one`)
      // After a restart of the server, workers reconnect one by one.
      else if (Date.now() - since > GONE_MS)
        this.#note(`no worker takes trials of ${this.queue} any more: waits for one`)
      pending = unfinished
      await pause(this.#pollMs, signal)
      signal?.throwIfAborted()
    }
  }

  async #noWorkers(): Promise<never> {
    const { kind, name, driver } = this.#shared.study.device
    const others = await this.#awaitAnswer(this.#others())
    return failWith(
      'studies/no-workers',
      `no worker at ${this.#engine.address} takes trials for ${name} (${driver}) with compiler ${this.#shared.study.compiler}`,
      {
        notes: others.map(
          ({ device, compiler }) =>
            `there is one for ${device.kind} ${device.name} (${device.driver}) with compiler ${compiler}`,
        ),
        expected: 'a worker with the same device, driver and compiler',
        hint: `start a worker on each machine: spt tune --worker URL --device ${kind}; published trials stay there`,
      },
    )
  }

  /** Devices of other queues that have workers. */
  async #others(): Promise<readonly Served[]> {
    const all = await this.#engine.redis.hgetall(DEVICES_KEY)
    const served = await Promise.all(
      Object.entries(all).map(async ([name, text]) => {
        const queue = openQueue(this.#engine, name)
        const count = name === this.queue ? 0 : await queue.getWorkersCount()
        await queue.close()
        return count > 0 ? [JSON.parse(text) as Served] : []
      }),
    )
    return served.flat()
  }

  /** Awaits an answer of the server, with a timeout and cancellation by the signal. */
  async #awaitAnswer<T>(answer: Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted()
    // Errors after the race are ignored.
    answer.catch(() => {})
    const ended = new AbortController()
    const late = pause(this.#idleMs, ended.signal).then(() => {
      if (ended.signal.aborted) return new Promise<never>(() => {})
      return failWith(
        'studies/unreachable',
        `Redis at ${this.#engine.address} has not answered for ${this.#idleMs / 1000} s`,
        {
          expected: 'a running server',
          hint: 'restart the server: published and finished trials remain if the server keeps a file (--appendonly yes)',
        },
      )
    })
    let abort = (): void => {}
    const aborted = new Promise<never>((_, reject) => {
      abort = () => reject(signal!.reason)
      signal?.addEventListener('abort', abort, { once: true })
    })
    try {
      return await Promise.race([answer, late, aborted])
    } finally {
      ended.abort()
      signal?.removeEventListener('abort', abort)
    }
  }

  /** Closes the connection; published trials remain. */
  async close(): Promise<void> {
    // An unreachable server is not waited for.
    if (this.#engine.redis.status === 'ready') await this.#queue.close()
    this.#engine.close()
  }
}

// Publishes trials of a study for workers, and collects their results.

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
  return withEngine(url, (engine) =>
    withQueue(engine, shared, async (queue) => ({
      queue: queue.name,
      added: await addTrials(engine, queue, shared, trials),
    })),
  )
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
  return withStudy(url, study, async ({ queue, shared, trials }) => {
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
  })
}

/** Trials without a record, or measured with less effort. */
const missing = (records: Records, study: string, trials: readonly TrialKey[]): readonly TrialKey[] =>
  trials.filter(({ point, share = 1 }) => {
    const recorded = records.get(trialId(study, point))
    return !recorded || (recorded.outcome.status === 'measured' && (recorded.share ?? 1) < share)
  })

/** Removes a study and its trials from the server; results of trials in progress are discarded. */
export async function unpublishStudy(url: string, study: string): Promise<void> {
  await withStudy(url, study, async ({ engine, queue, trials }) => {
    for (const part of chunks(trials))
      await Promise.all(part.map((t) => queue.remove(jobId(study, t.point, t.share))))
    await engine.redis.del(studyKey(study), trialsKey(study))
  })
}

/** Resolves after the time, or when the signal aborts. */
const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  setTimeout(ms, undefined, signal && { signal }).catch(() => {})
