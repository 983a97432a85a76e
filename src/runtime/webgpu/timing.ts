/** The device's clock: a pair of timestamps around each repeat, read back at the end. */
import { USAGE } from './memory.ts'
import type { Session } from './session.ts'

/** Maximum number of timestamps in a query set. */
const MAX_QUERIES = 4096
export const REPEATS_PER_CLOCK = MAX_QUERIES / 2

export class Clock {
  readonly #session: Session
  readonly querySet: GPUQuerySet
  readonly #resolved: GPUBuffer
  readonly #staging: GPUBuffer
  readonly #count: number

  constructor(session: Session, repeats: number) {
    const { device } = session
    this.#session = session
    this.#count = 2 * repeats
    this.querySet = device.createQuerySet({ type: 'timestamp', count: this.#count })
    const size = 8 * this.#count
    this.#resolved = device.createBuffer({ size, usage: USAGE.queryResolve | USAGE.copySrc })
    this.#staging = device.createBuffer({ size, usage: USAGE.mapRead | USAGE.copyDst })
  }

  /** Milliseconds between the two timestamps of each repeat; not positive where the clock is too coarse. */
  async read(call: string): Promise<number[]> {
    const encoder = this.#session.device.createCommandEncoder()
    encoder.resolveQuerySet(this.querySet, 0, this.#count, this.#resolved, 0)
    encoder.copyBufferToBuffer(this.#resolved, 0, this.#staging, 0, 8 * this.#count)
    this.#session.device.queue.submit([encoder.finish()])
    await this.#session.wait(this.#staging.mapAsync(USAGE.mapRead), call)
    const ticks = new BigInt64Array(this.#staging.getMappedRange())
    const times: number[] = []
    for (let k = 0; k < this.#count; k += 2) times.push(Number(ticks[k + 1]! - ticks[k]!) / 1e6)
    this.#staging.unmap()
    return times
  }

  free(): void {
    this.querySet.destroy()
    this.#resolved.destroy()
    this.#staging.destroy()
  }
}

/** Reads the device's clock in nanoseconds after all submitted work has finished. */
export async function readDeviceClock(session: Session, call: string): Promise<bigint> {
  const { device } = session
  const querySet = device.createQuerySet({ type: 'timestamp', count: 1 })
  const resolved = device.createBuffer({ size: 8, usage: USAGE.queryResolve | USAGE.copySrc })
  const staging = device.createBuffer({ size: 8, usage: USAGE.mapRead | USAGE.copyDst })
  try {
    const encoder = device.createCommandEncoder()
    encoder.beginComputePass({ timestampWrites: { querySet, endOfPassWriteIndex: 0 } }).end()
    encoder.resolveQuerySet(querySet, 0, 1, resolved, 0)
    encoder.copyBufferToBuffer(resolved, 0, staging, 0, 8)
    device.queue.submit([encoder.finish()])
    await session.wait(staging.mapAsync(USAGE.mapRead), call)
    return new BigInt64Array(staging.getMappedRange())[0]!
  } finally {
    querySet.destroy()
    resolved.destroy()
    staging.destroy()
  }
}
