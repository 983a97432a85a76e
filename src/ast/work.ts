/**
 * Long work as coroutines: generators that yield promises, or `undefined` between two steps. A host call runs a coroutine to its end at
 * once (`runSync`); `Work` runs it with pauses, in which timers and signals are handled, until an `AbortSignal` aborts it.
 */
import { invariant } from './diagnostics/diagnostic.ts'
import { expectOptions } from './diagnostics/expect-argument.ts'
import { expectValue, FUNCTION, SIGNAL } from './diagnostics/value-kinds.ts'

export type Coroutine<T> = Generator<Promise<unknown> | undefined, T, unknown>

export function* waitFor<T>(promise: Promise<T>): Coroutine<T> {
  return (yield promise) as T
}

// biome-ignore lint/correctness/useYield: it waits for nothing
export function* ready<T>(value: T): Coroutine<T> {
  return value
}

/** Runs a coroutine that never waits. */
export function runSync<T>(steps: Coroutine<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    invariant(value === undefined, 'the host waits for nothing')
  }
}

/** Runs a coroutine and awaits its promises, with a pause after each step; `around` wraps each segment of execution between two waits. */
export async function runAsync<T>(
  steps: Coroutine<T>,
  around: <R>(resume: () => R) => R = (resume) => resume(),
  pause: () => Promise<void> | undefined = () => undefined,
): Promise<T> {
  try {
    let step = around(() => steps.next())
    while (!step.done) {
      let value: unknown
      try {
        if (step.value !== undefined) value = await step.value
        const paused = pause()
        if (paused !== undefined) await paused
      } catch (e) {
        step = around(() => steps.throw(e))
        continue
      }
      step = around(() => steps.next(value))
    }
    return step.value
  } finally {
    // Also ends the generators that this generator delegates to.
    steps.return(undefined as never)
  }
}

/** A coroutine whose segments run within `around`. */
export function* within<T>(steps: Coroutine<T>, around: <R>(resume: () => R) => R): Coroutine<T> {
  let step = around(() => steps.next())
  while (!step.done) {
    const value = yield step.value
    step = around(() => steps.next(value))
  }
  return step.value
}

/** A part of a long call that has begun. */
export interface Progress {
  /** A phase, such as `lower`, `compile`, `convert` or `upload`. */
  readonly phase: string
  /** The item of the phase: a pass, a kernel, a tensor or a file. */
  readonly item?: string
}

/** The members of an `AbortSignal` that are used; TypeScript declares `AbortSignal` only with the types of the DOM or of Node. */
export interface AbortSignalLike {
  readonly aborted: boolean
  // biome-ignore lint/suspicious/noExplicitAny: as the platform declares it
  readonly reason: any
  throwIfAborted(): void
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** Options of long calls. */
export interface WorkOptions {
  /** An `AbortSignal` that ends the call: it rejects with the reason of the signal, and leaves nothing allocated. */
  readonly signal?: AbortSignalLike | undefined
  /** Called when a part of the call begins. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

/** Names of `WorkOptions`. */
export const WORK_OPTIONS = ['signal', 'onProgress'] as const

/** Milliseconds of work without a pause. */
const INTERVAL_MS = 20

/** A call in progress: its signal, its progress, and its pauses. */
export class Work {
  readonly #signal: AbortSignalLike | undefined
  readonly #onProgress: WorkOptions['onProgress']
  #last = performance.now()

  /** @throws SptError `api/argument`, and the reason of a signal that has aborted */
  constructor({ signal, onProgress }: WorkOptions = {}) {
    if (signal !== undefined) expectValue('signal', signal, SIGNAL)
    if (onProgress !== undefined) expectValue('onProgress', onProgress, FUNCTION)
    this.#signal = signal
    this.#onProgress = onProgress
    signal?.throwIfAborted()
  }

  /** Reports that a part begins. @throws the reason of an aborted signal */
  begin(phase: string, item?: string): void {
    this.#signal?.throwIfAborted()
    this.#onProgress?.(item === undefined ? { phase } : { phase, item })
  }

  /** Yields to the event loop if other events have waited for some time. Throws or rejects with the reason of an aborted signal. */
  checkpoint = (): Promise<void> | undefined => {
    this.#signal?.throwIfAborted()
    if (performance.now() - this.#last <= INTERVAL_MS) return undefined
    return nextTask().then(() => {
      this.#last = performance.now()
      this.#signal?.throwIfAborted()
    })
  }

  /** Runs a coroutine, with a checkpoint after each step. */
  run<T>(steps: Coroutine<T>): Promise<T> {
    return runAsync(steps, undefined, this.checkpoint)
  }

  /** Awaits an operation of a device or a file, and abandons it when the signal aborts; `undo` then frees its result. */
  async wait<T>(operation: Promise<T>, undo: (late: T) => void = () => {}): Promise<T> {
    const signal = this.#signal
    if (!signal) return operation
    let onAbort: (() => void) | undefined
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
    })
    try {
      return await Promise.race([operation, aborted])
    } catch (e) {
      if (signal.aborted) operation.then(undo, () => undefined)
      throw e
    } finally {
      signal.removeEventListener('abort', onAbort!)
    }
  }
}

/** The work of a call whose only options are `WorkOptions`. Throws SptError `api/…`, and the reason of a signal that has aborted. */
export function startWork(call: string, options: WorkOptions): Work {
  expectOptions(call, options, WORK_OPTIONS)
  return new Work(options)
}

interface Releasable {
  release(): void
}

/** Releases results that are or will be there. */
export function releaseAll(pending: Iterable<Promise<Releasable>>): void {
  for (const p of pending)
    void p.then(
      (result) => result.release(),
      () => {},
    )
}

/** Awaits all results. If one fails, rejects with its error, and releases the others. */
export async function allOrNone<T extends Releasable>(pending: readonly Promise<T>[]): Promise<T[]> {
  try {
    return await Promise.all(pending)
  } catch (e) {
    releaseAll(pending)
    throw e
  }
}

/** Resolves in a later task of the event loop, without the minimum delay of timers. */
function nextTask(): Promise<void> {
  const { setImmediate: soon } = globalThis as { setImmediate?: (f: () => void) => void }
  return new Promise((resolve) => {
    if (soon) return soon(resolve)
    const { port1, port2 } = new MessageChannel()
    const received = (): void => {
      port1.close()
      resolve()
    }
    Object.assign(port1, { onmessage: received })
    port2.postMessage(0)
  })
}
