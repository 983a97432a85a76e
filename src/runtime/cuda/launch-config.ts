/** `CUlaunchConfig` with its attributes, where a launch has any; laid out as in cuda.h of CUDA 11.8 to 13. */
import type { Entry } from '../device.ts'
import type { Handle } from './driver.ts'

const CONFIG_BYTES = 56
const ATTRIBUTE_BYTES = 72

/** `CUlaunchAttributeID`: the dimensions of a cluster; whether the launch may begin before the one before it ends. */
const ATTRIBUTE = { cluster: 4, overlaps: 6 } as const
const MOST_ATTRIBUTES = 2

/** Byte offsets of `CUlaunchConfig`. */
const AT = { grid: 0, block: 12, shared: 24, stream: 32, attributes: 40, count: 48 } as const
/** Byte offset of the value in `CUlaunchAttribute`. */
const VALUE = 8

export interface LaunchShape extends Pick<Entry, 'block' | 'sharedBytes' | 'cluster'> {
  readonly grid: readonly [number, number, number]
  /** Programmatic stream serialization: the kernel itself waits for the launch before it. */
  readonly overlaps: boolean
}

/** One block of host memory: the driver reads it before the launch returns. */
export class LaunchConfig {
  readonly #bytes = new Uint8Array(CONFIG_BYTES)
  readonly #config: DataView
  readonly #attributes: DataView

  /** `addressOf` gives the address of a host block that never moves. */
  constructor(addressOf: (block: ArrayBuffer) => bigint) {
    this.#config = new DataView(this.#bytes.buffer)
    const attributes = new ArrayBuffer(MOST_ATTRIBUTES * ATTRIBUTE_BYTES)
    this.#attributes = new DataView(attributes)
    this.#config.setBigUint64(AT.attributes, addressOf(attributes), true)
  }

  fill({ grid, block, sharedBytes, cluster, overlaps }: LaunchShape, stream: Handle): Uint8Array {
    for (let d = 0; d < 3; d++) {
      this.#config.setUint32(AT.grid + 4 * d, grid[d]!, true)
      this.#config.setUint32(AT.block + 4 * d, block[d]!, true)
    }
    this.#config.setUint32(AT.shared, sharedBytes, true)
    this.#config.setBigUint64(AT.stream, stream, true)
    let count = 0
    if (cluster) this.#attribute(count++, ATTRIBUTE.cluster, cluster)
    if (overlaps) this.#attribute(count++, ATTRIBUTE.overlaps, [1])
    this.#config.setUint32(AT.count, count, true)
    return this.#bytes
  }

  #attribute(at: number, id: number, words: readonly number[]): void {
    const start = at * ATTRIBUTE_BYTES
    this.#attributes.setUint32(start, id, true)
    for (const [k, word] of words.entries()) this.#attributes.setUint32(start + VALUE + 4 * k, word, true)
  }
}
