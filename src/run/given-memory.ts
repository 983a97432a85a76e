/** Device memory that an executable is given: it stays that of whoever gives it. */
import type { Kernel1 } from '../ir/stage1.ts'
import type { DeviceBuffer } from '../runtime/device.ts'
import type { ValueArray } from '../storage/tensor.ts'
import type { Bound } from './bind/index.ts'

/** Tensors that were on the device before: on the host, only their shapes are bound. */
export interface Residents {
  readonly tensors: readonly string[]
  /**
   * Buffers whose arrays are on the device (by name; they may be longer): they are used where they are and stay the
   * caller's; only where the program packs arrays, they are copied.
   */
  readonly buffers: ReadonlyMap<string, DeviceBuffer>
  /**
   * What is bound, with the entries that the tensors have now.
   * @param values of a buffer; `null` where the program has no use for it
   */
  whole(bound: Bound, values: (buffer: string) => Promise<ValueArray | null>): Promise<Bound>
  /** Their memory may be others' once they are freed. @throws SptError `device/freed` */
  check(): void
}

/** Memory that several executables use; whoever gives it fills it, and nobody writes what is only read. */
export interface SharedMemory {
  /** By buffer of the program: what is only read holds what is bound, anything else is overwritten by each run. */
  readonly buffers: ReadonlyMap<string, DeviceBuffer>
  /** Called when the executable is freed, which may be more than once. */
  release(): void
}

export interface Origin {
  readonly resident?: Residents
  readonly shared?: SharedMemory
  /** The kernel as written, where errors are to say of which coordinates they are. */
  readonly source?: Kernel1
}
