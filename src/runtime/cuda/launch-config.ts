/** `CUlaunchConfig` for launches with attributes, in the layout of cuda.h (CUDA 11.8 to 13). */
import type { Entry } from '../device.ts'
import type { Handle } from './driver.ts'

const CONFIG_BYTES = 56
const ATTRIBUTE_BYTES = 72

/** `CUlaunchAttributeID`: cluster dimensions; programmatic stream serialization. */
const ATTRIBUTE = { cluster: 4, overlaps: 6 } as const
const MAX_ATTRIBUTES = 2

/** Byte offsets of `CUlaunchConfig`. */
const OFFSETS = { grid: 0, block: 12, shared: 24, stream: 32, attributes: 40, count: 48 } as const
/** Byte offset of the value in `CUlaunchAttribute`. */
const VALUE = 8

export interface LaunchShape extends Pick<Entry, 'block' | 'sharedBytes' | 'cluster'> {
  readonly grid: readonly [number, number, number]
  /** Programmatic stream serialization: the kernel itself waits for the previous launch. */
  readonly overlaps: boolean
}

/** One configuration for all launches, because the driver reads it before the launch returns. */
export class LaunchConfig {
  readonly #bytes = new Uint8Array(CONFIG_BYTES)
  readonly #config: DataView
  readonly #attributes: DataView

  /** @param addressOf - Returns the address of a host block that never moves */
  constructor(addressOf: (block: ArrayBuffer) => bigint) {
    this.#config = new DataView(this.#bytes.buffer)
    const attributes = new ArrayBuffer(MAX_ATTRIBUTES * ATTRIBUTE_BYTES)
    this.#attributes = new DataView(attributes)
    this.#config.setBigUint64(OFFSETS.attributes, addressOf(attributes), true)
  }

  fill({ grid, block, sharedBytes, cluster, overlaps }: LaunchShape, stream: Handle): Uint8Array {
    for (let d = 0; d < 3; d++) {
      this.#config.setUint32(OFFSETS.grid + 4 * d, grid[d]!, true)
      this.#config.setUint32(OFFSETS.block + 4 * d, block[d]!, true)
    }
    this.#config.setUint32(OFFSETS.shared, sharedBytes, true)
    this.#config.setBigUint64(OFFSETS.stream, stream, true)
    let count = 0
    if (cluster) this.#attribute(count++, ATTRIBUTE.cluster, cluster)
    if (overlaps) this.#attribute(count++, ATTRIBUTE.overlaps, [1])
    this.#config.setUint32(OFFSETS.count, count, true)
    return this.#bytes
  }

  #attribute(index: number, id: number, words: readonly number[]): void {
    const start = index * ATTRIBUTE_BYTES
    this.#attributes.setUint32(start, id, true)
    for (const [k, word] of words.entries()) this.#attributes.setUint32(start + VALUE + 4 * k, word, true)
  }
}
