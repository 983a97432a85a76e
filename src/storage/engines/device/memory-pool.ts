/**
 * A memory pool: a device's memory that is taken again after it is given back; commands run in order, whoever used it
 * comes first.
 */
import type { Device, DeviceBuffer } from '../../../runtime/device.ts'

/** Memory that is given back waits for the commands that use it, as far as it is small: they stay independent. */
const MOST_RESTING = 2 ** 28
const MOST_RESTING_ONE = 2 ** 22

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

  /** Bytes that are taken. */
  get bytes(): number {
    return this.#bytes
  }

  /** The most there were since `resetPeak`, with those that could not be taken yet. */
  get peak(): number {
    return this.#peak
  }

  resetPeak(): void {
    this.#peak = this.#bytes
  }

  /** At least `bytes`, uninitialised. @throws SptError `device/out-of-memory`, `device/buffer-too-large` */
  take(bytes: number, label: string): DeviceBuffer {
    const size = this.#sizeClass(bytes)
    const memory = this.#spare.get(size)?.pop() ?? this.#device.alloc(size, label)
    this.#bytes += size
    this.#peak = Math.max(this.#peak, this.#bytes + this.#restingBytes)
    return memory
  }

  /** `used`: commands that have not been run may use it. */
  give(memory: DeviceBuffer, used: boolean): void {
    this.#bytes -= memory.bytes
    const rests = memory.bytes <= MOST_RESTING_ONE && this.#restingBytes + memory.bytes <= MOST_RESTING
    if (rests && used) {
      this.#resting.push(memory)
      this.#restingBytes += memory.bytes
    } else this.#reuse(memory)
  }

  /** The commands are on their way to the device: what rested can be taken. */
  wake(): void {
    for (const memory of this.#resting) this.#reuse(memory)
    this.#resting.length = 0
    this.#restingBytes = 0
  }

  /** Frees all that is not taken. */
  trim(): void {
    for (const list of this.#spare.values()) for (const m of list) m.free()
    this.#spare.clear()
  }

  #reuse(memory: DeviceBuffer): void {
    const list = this.#spare.get(memory.bytes)
    if (list) list.push(memory)
    else this.#spare.set(memory.bytes, [memory])
  }

  /** Sizes come in eight steps for each power of two, so that memory is used again; within the device's limits. */
  #sizeClass(bytes: number): number {
    const { maxBufferBytes, maxBindingBytes } = this.#device.limits
    const least = Math.max(256, bytes)
    const step = 2 ** Math.max(8, Math.floor(Math.log2(least)) - 3)
    const size = Math.ceil(least / step) * step
    return size > Math.min(maxBufferBytes, maxBindingBytes) ? Math.ceil(least / 4) * 4 : size
  }
}
