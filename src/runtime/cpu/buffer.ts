/** Buffers of the cpu device: ranges of an `ArrayBuffer`, allocated or of the caller. */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { arrayClass } from '../../ir/values/arrays.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import type { DeviceBuffer, HostArray } from '../device.ts'
import type { Owned } from '../device-checks.ts'

export class CpuBuffer implements DeviceBuffer, Owned {
  #memory: ArrayBuffer | null
  readonly #views = new Map<Dtype, HostArray>()

  constructor(
    readonly bytes: number,
    readonly label: string,
    readonly owner: object,
    memory: ArrayBuffer,
    readonly offset = 0,
  ) {
    this.#memory = memory
  }

  /** True also for memory that its owner has transferred to another thread. */
  get freed(): boolean {
    return this.#memory === null || this.#memory.byteLength < this.bytes
  }

  get memory(): ArrayBuffer {
    invariant(this.#memory, `${this.label} was freed`)
    return this.#memory
  }

  view(dtype: Dtype): HostArray {
    const make = (): HostArray => {
      const type = arrayClass(dtype)
      const length = Math.floor((this.memory.byteLength - this.offset) / type.BYTES_PER_ELEMENT)
      return new type(this.memory, this.offset, length)
    }
    return getOrAdd(this.#views, dtype, make)
  }

  free(): void {
    this.#memory = null
    this.#views.clear()
  }
}
