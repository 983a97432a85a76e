/** A memory pool: released device memory is reused at once, because commands run in order. */
import { getOrAdd } from '../../../../ir/memoize.ts'
import type { Device, DeviceBuffer } from '../../../../runtime/device.ts'

/**
 * Small released buffers are held back until the commands that use them are submitted, so that these commands stay
 * independent. Limits in bytes: in total and per buffer.
 */
const MAX_HELD_BYTES = 2 ** 28
const MAX_HELD_BUFFER = 2 ** 22

export class Pool {
  readonly #device: Device
  readonly #spare = new Map<number, DeviceBuffer[]>()
  readonly #resting: DeviceBuffer[] = []
  #restingBytes = 0
  #bytes = 0
  #peak = 0

  constructor(device: Device) {
    this.#device = device
  }

  /** Allocated bytes, without pooled ones. */
  get bytes(): number {
    return this.#bytes
  }

  /** The maximum since `resetPeak`, including buffers that are held back. */
  get peak(): number {
    return this.#peak
  }

  resetPeak(): void {
    this.#peak = this.#bytes
  }

  /** A buffer of at least `bytes`, uninitialised. @throws SptError `device/out-of-memory`, `device/buffer-too-large` */
  allocate(bytes: number, label: string): DeviceBuffer {
    const size = this.#sizeClass(bytes)
    const memory = this.#spare.get(size)?.pop() ?? this.#device.alloc(size, label)
    this.#bytes += size
    this.#peak = Math.max(this.#peak, this.#bytes + this.#restingBytes)
    return memory
  }

  /** Returns a buffer to the pool. `hasPending`: pending commands may use the buffer. */
  put(memory: DeviceBuffer, hasPending: boolean): void {
    this.#bytes -= memory.bytes
    const fitsHeld = memory.bytes <= MAX_HELD_BUFFER && this.#restingBytes + memory.bytes <= MAX_HELD_BYTES
    if (fitsHeld && hasPending) {
      this.#resting.push(memory)
      this.#restingBytes += memory.bytes
    } else this.#reuse(memory)
  }

  /** Makes held-back buffers available, because the commands that use them have been submitted. */
  releaseHeld(): void {
    for (const memory of this.#resting) this.#reuse(memory)
    this.#resting.length = 0
    this.#restingBytes = 0
  }

  trim(): void {
    for (const list of this.#spare.values()) for (const m of list) m.free()
    this.#spare.clear()
  }

  #reuse(memory: DeviceBuffer): void {
    getOrAdd(this.#spare, memory.bytes, () => []).push(memory)
  }

  /** Rounds sizes up to eight classes per power of two, so that memory can be reused; respects the device's limits. */
  #sizeClass(bytes: number): number {
    const { maxBufferBytes, maxBindingBytes } = this.#device.limits
    const minimum = Math.max(256, bytes)
    const step = 2 ** Math.max(8, Math.floor(Math.log2(minimum)) - 3)
    const size = Math.ceil(minimum / step) * step
    return size > Math.min(maxBufferBytes, maxBindingBytes) ? Math.ceil(minimum / 4) * 4 : size
  }
}
