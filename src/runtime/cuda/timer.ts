/** Measures device times of queued work with pairs of events. */
import type { CudaContext } from './context.ts'
import type { Handle } from './driver.ts'

/** Maximum number of event pairs in use. */
const MAX_TIMED = 128

export class Timer {
  readonly #context: CudaContext
  /** Pool of events. */
  readonly #events: Handle[] = []

  constructor(context: CudaContext) {
    this.#context = context
  }

  /**
   * Milliseconds of each repeat of the work queued by `queue` on the main queue; `between` queues work before each repeat,
   * unmeasured.
   */
  async time(repeats: number, queue: () => void, between: () => void): Promise<number[]> {
    const times: number[] = []
    while (times.length < repeats) {
      times.push(...(await this.#timeBatch(Math.min(MAX_TIMED, repeats - times.length), queue, between)))
    }
    return times
  }

  /** Destroys the events. The context must be current. */
  release(): void {
    for (const event of this.#events) this.#context.calls.cuEventDestroy_v2(event)
    this.#events.length = 0
  }

  async #timeBatch(count: number, queue: () => void, between: () => void): Promise<number[]> {
    const { calls, main } = this.#context
    const events = this.#takeEvents(2 * count)
    const record = (event: Handle): void =>
      this.#context.check('cuEventRecord', calls.cuEventRecord(event, main.handle))
    try {
      this.#context.inContext('timing', () => {
        this.#context.join()
        for (let i = 0; i < count; i++) {
          between()
          record(events[2 * i]!)
          queue()
          record(events[2 * i + 1]!)
        }
      })
      await this.#context.waitIdle('timing', main)
      return this.#context.inContext('timing', () =>
        Array.from({ length: count }, (_, i) => {
          const out = new Float32Array(1)
          const code = calls.cuEventElapsedTime(out, events[2 * i]!, events[2 * i + 1]!)
          this.#context.check('cuEventElapsedTime', code)
          return out[0]!
        }),
      )
    } finally {
      this.#events.push(...events)
    }
  }

  #takeEvents(count: number): Handle[] {
    return this.#context.inContext('timing', () => {
      const out = new BigUint64Array(1)
      while (this.#events.length < count) {
        this.#context.check('cuEventCreate', this.#context.calls.cuEventCreate(out, 0))
        this.#events.push(out[0]!)
      }
      return this.#events.splice(0, count)
    })
  }
}
