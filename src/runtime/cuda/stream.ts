/** Streams and events of CUDA. */
import type { DeviceEvent, Stream } from '../device.ts'
import { DISPOSE } from '../dispose.ts'
import { failForeign, failFreed, failNotRecorded } from '../in-order.ts'
import type { Outcomes } from '../outcomes.ts'
import type { CudaContext, CudaQueue } from './context.ts'
import { type Handle, obtain } from './driver.ts'
import { CUDA } from './errors.ts'

export class CudaStream implements Stream {
  readonly #queue: CudaQueue
  #freed = false

  constructor(
    readonly context: CudaContext,
    readonly label: string,
    queue: CudaQueue,
    private readonly outcomes: Outcomes,
  ) {
    this.#queue = queue
  }

  /** The queue of the stream. @throws SptError `device/freed` */
  get queue(): CudaQueue {
    if (this.#freed) failFreed(`the stream ${this.label}`)
    return this.#queue
  }

  record(event: DeviceEvent): void {
    const cudaEvent = checkEvent(event, this.context)
    const { queue, context } = this
    context.inContext(`recording an event on ${this.label}`, () => {
      queue.busy = true
      context.call('cuEventRecord', cudaEvent.handle, queue.handle)
      cudaEvent.recorded = true
    })
  }

  wait(event: DeviceEvent): void {
    const cudaEvent = checkEvent(event, this.context)
    const { queue, context } = this
    context.inContext(`waiting for an event on ${this.label}`, () => {
      queue.busy = true
      context.call('cuStreamWaitEvent', queue.handle, cudaEvent.handle, 0)
    })
  }

  async finish(): Promise<void> {
    await this.context.waitIdle(`finishing the stream ${this.label}`, this.queue)
    await this.outcomes.settle(this)
  }

  free(): void {
    if (this.#freed) return
    this.#freed = true
    const { context } = this
    if (context.isUsable) context.inContext(`freeing ${this.label}`, () => context.closeQueue(this.#queue))
  }

  [DISPOSE](): void {
    this.free()
  }
}

export class CudaEvent implements DeviceEvent {
  readonly #handle: Handle
  recorded = false
  #freed = false

  /** Creates an event. The context must be current. `events`: live events, which are released with the device. */
  constructor(
    readonly context: CudaContext,
    private readonly events: Set<CudaEvent>,
  ) {
    this.#handle = obtain(context.driver, 'cuEventCreate', 0)
    events.add(this)
  }

  get handle(): Handle {
    if (this.#freed) failFreed('the event')
    return this.#handle
  }

  async since(earlier: DeviceEvent): Promise<number> {
    const { context } = this
    const start = checkEvent(earlier, context)
    if (!start.recorded || !this.recorded) failNotRecorded()
    for (const event of [start, this]) {
      await context.poll('waiting for an event', () => {
        const code = context.calls.cuEventQuery(event.handle)
        if (code === CUDA.NOT_READY) return false
        context.check('cuEventQuery', code)
        return true
      })
    }
    return context.inContext('reading an event', () => {
      const out = new Float32Array(1)
      context.call('cuEventElapsedTime', out, start.handle, this.handle)
      return out[0]!
    })
  }

  free(): void {
    if (this.#freed) return
    const { context } = this
    if (context.isUsable) context.inContext('freeing an event', () => this.release())
    else this.#freed = true
  }

  [DISPOSE](): void {
    this.free()
  }

  /** Destroys the event. The context must be current. */
  release(): void {
    this.#freed = true
    this.events.delete(this)
    this.context.calls.cuEventDestroy_v2(this.#handle)
  }
}

function checkEvent(event: DeviceEvent, context: CudaContext): CudaEvent {
  if (!(event instanceof CudaEvent) || event.context !== context) failForeign('the event')
  return event
}

/** Maximum number of event pairs in use. */
const MAX_TIMED = 128

/** Measures device times of queued work with pairs of events. */
export type Timer = ReturnType<typeof timerOn>

export function timerOn(/** Maximum number of event pairs in use. */ context: CudaContext) {
  const pool: Handle[] = []
  /** Milliseconds of each repeat of the work queued by `queue` on the main queue; `between` queues work before each repeat, unmeasured. */
  const time = async (repeats: number, queue: () => void, between: () => void): Promise<number[]> => {
    const times: number[] = []
    while (times.length < repeats) {
      times.push(...(await timeBatch(Math.min(MAX_TIMED, repeats - times.length), queue, between)))
    }
    return times
  }
  /** Destroys the events. The context must be current. */
  const release = (): void => {
    for (const event of pool) context.calls.cuEventDestroy_v2(event)
    pool.length = 0
  }
  const timeBatch = async (count: number, queue: () => void, between: () => void): Promise<number[]> => {
    const { main } = context
    const events = takeEvents(2 * count)
    const record = (event: Handle): void => context.call('cuEventRecord', event, main.handle)
    try {
      context.inContext('timing', () => {
        context.join()
        for (let i = 0; i < count; i++) {
          between()
          record(events[2 * i]!)
          queue()
          record(events[2 * i + 1]!)
        }
      })
      await context.waitIdle('timing', main)
      return context.inContext('timing', () =>
        Array.from({ length: count }, (_, i) => {
          const out = new Float32Array(1)
          context.call('cuEventElapsedTime', out, events[2 * i]!, events[2 * i + 1]!)
          return out[0]!
        }),
      )
    } finally {
      pool.push(...events)
    }
  }
  const takeEvents = (count: number): Handle[] =>
    context.inContext('timing', () => {
      while (pool.length < count) pool.push(obtain(context.driver, 'cuEventCreate', 0))
      return pool.splice(0, count)
    })
  return { time, release }
}
