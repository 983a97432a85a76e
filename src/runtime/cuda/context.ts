/** A CUDA context with its queues: makes it current, waits for queues, and rejects calls after a fault. */
import { setImmediate, setTimeout } from 'node:timers/promises'
import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import { failDisposed } from '../device-checks.ts'
import type { Chip } from './chip.ts'
import { type CudaDriver, callError, check, type DriverCalls, type Handle, invoke, obtain } from './driver.ts'
import type { MemoryState } from './errors.ts'
import { CUDA, CudaCallError, driverError, faultError, isSticky, outOfMemory } from './errors.ts'

const STREAM_NON_BLOCKING = 1
const EVENT_DISABLE_TIMING = 2
/** A wait polls without a pause up to SPIN_MS, then once per event-loop turn up to YIELD_MS, then every millisecond. */
const SPIN_MS = 0.2
const YIELD_MS = 20

export interface CudaQueue {
  readonly handle: Handle
  /** False for a stream of the caller. */
  readonly isOwn: boolean
  /** Event that is recorded to make another queue wait for this one. */
  readonly joinEvent: Handle
  /** True if work was queued since the queue was last seen idle. */
  busy: boolean
  /** Display names of kernels queued since then, one of which may have caused a fault. */
  readonly kernels: Set<string>
}

export class CudaContext {
  readonly calls: DriverCalls
  /** The queue of `run` and of transfers. */
  readonly main: CudaQueue
  readonly #queues = new Set<CudaQueue>()
  readonly #handle: Handle
  #fault: string | undefined
  #disposed = false

  constructor(
    readonly driver: CudaDriver,
    readonly chip: Chip & { readonly device: number },
    private readonly memoryState: (requested: number, label: string) => MemoryState,
  ) {
    this.calls = driver.calls
    this.#handle = obtain(driver, 'cuDevicePrimaryCtxRetain', chip.device)
    try {
      this.call('cuCtxSetCurrent', this.#handle)
      this.main = this.openQueue()
    } catch (error) {
      this.calls.cuDevicePrimaryCtxRelease_v2(chip.device)
      throw error
    }
  }

  /** True if the context is neither disposed of nor faulted. */
  get isUsable(): boolean {
    return !this.#disposed && this.#fault === undefined
  }

  check(call: keyof DriverCalls, code: number): void {
    check(this.driver, call, code)
  }

  call<C extends keyof DriverCalls>(call: C, ...args: Parameters<NonNullable<DriverCalls[C]>>): void {
    invoke(this.driver, call, ...args)
  }

  /** Makes the context current. @throws SptError `device/disposed`, `device/lost` */
  enter(action: string): void {
    if (this.#disposed) failDisposed(this.chip.name, action)
    if (this.#fault) {
      failAs('device/lost', {
        message: `the device ${this.chip.name} cannot be used any more after a fault: ${this.#fault}`,
        hint: 'start a new process; after a kernel fault, CUDA rejects all work of a process',
      })
    }
    this.call('cuCtxSetCurrent', this.#handle)
  }

  /** Runs `body` in the context, and translates failed driver calls to diagnostics. */
  inContext<T>(action: string, body: () => T): T {
    try {
      this.enter(action)
      return body()
    } catch (error) {
      throw this.translate(error, action)
    }
  }

  /** Translates a failed driver call to a diagnostic. `culprit`: the kernel, if only one can have faulted. */
  translate(error: unknown, action: string, culprit?: string): unknown {
    if (!(error instanceof CudaCallError)) return error
    if (isSticky(error.code)) {
      const inFlight = [...this.#queues].flatMap((q) => [...q.kernels])
      const fault = faultError(error, culprit === undefined ? inFlight : [culprit], culprit !== undefined)
      this.#fault = fault.diagnostics[0]!.message
      return fault
    }
    if (error.code === CUDA.OUT_OF_MEMORY) return outOfMemory(this.memoryState(0, action))
    return driverError(error, action)
  }

  /** Creates a queue, or adopts the caller's stream. The context must be current. */
  openQueue(callers?: Handle): CudaQueue {
    const isOwn = callers === undefined
    const handle = callers ?? obtain(this.driver, 'cuStreamCreate', STREAM_NON_BLOCKING)
    const out = new BigUint64Array(1)
    const code = this.calls.cuEventCreate(out, EVENT_DISABLE_TIMING)
    if (code !== CUDA.SUCCESS && isOwn) this.calls.cuStreamDestroy_v2(handle)
    this.check('cuEventCreate', code)
    const queue: CudaQueue = { handle, isOwn, joinEvent: out[0]!, busy: false, kernels: new Set() }
    this.#queues.add(queue)
    return queue
  }

  /** Waits for the queue's work and destroys the queue. The context must be current. */
  closeQueue(queue: CudaQueue): void {
    this.#synchronize(queue)
    this.#queues.delete(queue)
    this.#destroyQueue(queue)
  }

  #destroyQueue(queue: CudaQueue): void {
    this.calls.cuEventDestroy_v2(queue.joinEvent)
    if (queue.isOwn) this.calls.cuStreamDestroy_v2(queue.handle)
  }

  /** Records a queued kernel. With `wait`, waits for it, so that a fault is attributed to it. */
  noteLaunch(queue: CudaQueue, kernel: string, wait: boolean): void {
    queue.busy = true
    if (!wait) {
      queue.kernels.add(kernel)
      return
    }
    const code = this.calls.cuStreamSynchronize(queue.handle)
    if (code === CUDA.SUCCESS) return
    throw this.translate(callError(this.driver, 'cuStreamSynchronize', code), `kernel ${kernel}`, kernel)
  }

  /** Orders later work of the main queue after all work queued so far in any queue. The context must be current. */
  join(): void {
    for (const queue of this.#queues) {
      if (queue === this.main || !queue.busy) continue
      this.call('cuEventRecord', queue.joinEvent, queue.handle)
      this.call('cuStreamWaitEvent', this.main.handle, queue.joinEvent, 0)
    }
  }

  /** Resolves when a queue, or every queue, is idle. */
  async waitIdle(action: string, queue?: CudaQueue): Promise<void> {
    for (const q of queue ? [queue] : [...this.#queues]) {
      await this.poll(action, () => {
        const code = this.#queues.has(q) ? this.calls.cuStreamQuery(q.handle) : CUDA.SUCCESS
        if (code === CUDA.NOT_READY) return false
        this.check('cuStreamQuery', code)
        q.busy = false
        q.kernels.clear()
        return true
      })
    }
  }

  /** Polls a condition, with growing pauses. */
  async poll(action: string, isDone: () => boolean): Promise<void> {
    const start = performance.now()
    // `dispose` waits for the queues itself.
    while (!this.#disposed) {
      if (this.inContext(action, isDone)) return
      const waited = performance.now() - start
      if (waited > YIELD_MS) await setTimeout(1)
      else if (waited > SPIN_MS) await setImmediate()
    }
  }

  /** Frees a resource after all work has finished; does nothing after a fault or disposal. */
  release(action: string, free: () => void): void {
    if (!this.isUsable) return
    this.inContext(action, () => {
      this.drain()
      free()
    })
  }

  /** Waits for all work before memory or code is freed. The context must be current. */
  drain(): void {
    for (const queue of this.#queues) if (queue.busy) this.#synchronize(queue)
  }

  #synchronize(queue: CudaQueue): void {
    this.call('cuStreamSynchronize', queue.handle)
    queue.busy = false
    queue.kernels.clear()
  }

  /** Destroys the context after `release` has freed its resources. Idempotent. */
  dispose(release: () => void): void {
    if (this.#disposed) return
    this.#disposed = true
    // After a fault these calls return its error code, which is ignored; the context is still released.
    this.calls.cuCtxSetCurrent(this.#handle)
    for (const queue of this.#queues) this.calls.cuStreamSynchronize(queue.handle)
    release()
    for (const queue of this.#queues) this.#destroyQueue(queue)
    this.#queues.clear()
    this.calls.cuDevicePrimaryCtxRelease_v2(this.chip.device)
  }
}
