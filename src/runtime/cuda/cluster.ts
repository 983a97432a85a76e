/** `CUlaunchConfig` with one attribute, the dimensions of a cluster; laid out as in cuda.h of CUDA 11.8 to 13. */
import { invariant } from '../../ast/diagnostic.ts'
import type { Entry } from '../device.ts'
import type { Handle } from './driver.ts'

const CONFIG_BYTES = 56
const ATTRIBUTE_BYTES = 72
const CLUSTER_DIMENSION = 4

/** Byte offsets of `CUlaunchConfig`. */
const AT = { grid: 0, block: 12, shared: 24, stream: 32, attributes: 40, count: 48 } as const
/** Byte offset of the value in `CUlaunchAttribute`. */
const VALUE = 8

/** One block of host memory: the driver reads it before the launch returns. */
export class ClusterConfig {
  readonly #bytes = new Uint8Array(CONFIG_BYTES)
  readonly #config: DataView
  readonly #attribute: DataView

  /** `addressOf` gives the address of a host block that never moves. */
  constructor(addressOf: (block: ArrayBuffer) => bigint) {
    this.#config = new DataView(this.#bytes.buffer)
    this.#attribute = new DataView(new ArrayBuffer(ATTRIBUTE_BYTES))
    this.#attribute.setUint32(0, CLUSTER_DIMENSION, true)
    this.#config.setBigUint64(AT.attributes, addressOf(this.#attribute.buffer as ArrayBuffer), true)
    this.#config.setUint32(AT.count, 1, true)
  }

  fill(entry: Entry, grid: readonly [number, number, number], stream: Handle): Uint8Array {
    const { cluster } = entry
    invariant(cluster, `${entry.name} has no clusters`)
    for (let d = 0; d < 3; d++) {
      this.#config.setUint32(AT.grid + 4 * d, grid[d]!, true)
      this.#config.setUint32(AT.block + 4 * d, entry.block[d]!, true)
      this.#attribute.setUint32(VALUE + 4 * d, cluster[d]!, true)
    }
    this.#config.setUint32(AT.shared, entry.sharedBytes, true)
    this.#config.setBigUint64(AT.stream, stream, true)
    return this.#bytes
  }
}
