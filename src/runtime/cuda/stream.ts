/** Streams and events of the driver. */
import type { DeviceEvent, Stream } from '../device.ts'
import { failForeign, failFreed, failNotRecorded } from '../in-order.ts'
import type { Outcomes } from '../outcomes.ts'
import type { CudaContext, CudaQueue } from './context.ts'
import type { Handle } from './driver.ts'
import { CUDA } from './errors.ts'

export class CudaStream implements Stream {
  readonly label: string
  readonly context: CudaContext
  readonly #queue: CudaQueue
  readonly #outcomes: Outcomes
  #freed = false

  constructor(context: CudaContext, label: string, queue: CudaQueue, outcomes: Outcomes) {
    this.context = context
    this.label = label
    this.#queue = queue
    this.#outcomes = outcomes
  }

  /** Refuses a stream that was freed. */
  get queue(): CudaQueue {
    if (this.#freed) failFreed(`the stream ${this.label}`)
    return this.#queue
  }

  record(event: DeviceEvent): void {
    const own = ownEvent(event, this.context)
    const { queue } = this
    const { context } = this
    context.within(`recording an event on ${this.label}`, () => {
      queue.busy = true
      context.check('cuEventRecord', context.calls.cuEventRecord(own.handle, queue.handle))
      own.recorded = true
    })
  }

  wait(event: DeviceEvent): void {
    const own = ownEvent(event, this.context)
    const { queue } = this
    const { context } = this
    context.within(`waiting for an event on ${this.label}`, () => {
      queue.busy = true
      context.check('cuStreamWaitEvent', context.calls.cuStreamWaitEvent(queue.handle, own.handle, 0))
    })
  }

  async finish(): Promise<void> {
    await this.context.idle(`finishing the stream ${this.label}`, this.queue)
    await this.#outcomes.settle(this)
  }

  free(): void {
    if (this.#freed) return
    this.#freed = true
    const { context } = this
    if (context.usable) context.within(`freeing ${this.label}`, () => context.closeQueue(this.#queue))
  }
}

export class CudaEvent implements DeviceEvent {
  readonly context: CudaContext
  readonly #handle: Handle
  readonly #events: Set<CudaEvent>
  recorded = false
  #freed = false

  /** The context must be current. `events`: those not freed, for the end of the device. */
  constructor(context: CudaContext, events: Set<CudaEvent>) {
    const out = new BigUint64Array(1)
    context.check('cuEventCreate', context.calls.cuEventCreate(out, 0))
    this.context = context
    this.#handle = out[0]!
    this.#events = events
    events.add(this)
  }

  get handle(): Handle {
    if (this.#freed) failFreed('the event')
    return this.#handle
  }

  async since(earlier: DeviceEvent): Promise<number> {
    const { context } = this
    const from = ownEvent(earlier, context)
    if (!from.recorded || !this.recorded) failNotRecorded()
    for (const event of [from, this]) {
      await context.until('waiting for an event', () => {
        const code = context.calls.cuEventQuery(event.handle)
        if (code === CUDA.NOT_READY) return false
        context.check('cuEventQuery', code)
        return true
      })
    }
    return context.within('reading an event', () => {
      const out = new Float32Array(1)
      const code = context.calls.cuEventElapsedTime(out, from.handle, this.handle)
      context.check('cuEventElapsedTime', code)
      return out[0]!
    })
  }

  free(): void {
    if (this.#freed) return
    const { context } = this
    if (context.usable) context.within('freeing an event', () => this.release())
    else this.#freed = true
  }

  /** The context must be current. */
  release(): void {
    this.#freed = true
    this.#events.delete(this)
    this.context.calls.cuEventDestroy_v2(this.#handle)
  }
}

function ownEvent(event: DeviceEvent, context: CudaContext): CudaEvent {
  if (!(event instanceof CudaEvent) || event.context !== context) failForeign('the event')
  return event
}
