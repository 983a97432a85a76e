/** Device memory that is passed to an executable, and owned by the caller. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { DeviceBuffer } from '../../runtime/device.ts'
import { failFreedBuffer } from '../../runtime/device-checks.ts'
import type { ValueArray } from '../../storage/tensor.ts'
import type { Bound } from '../bind/index.ts'

/** Tensors that were on the device before. On the host, only their shapes are bound. */
export interface Residents {
  readonly tensors: readonly string[]
  /**
   * Device buffers of these tensors by name, possibly longer than needed. They are used in place and owned by the caller; arrays packed
   * into arenas are copied.
   */
  readonly buffers: ReadonlyMap<string, DeviceBuffer>
  /** Returns the host data with the current entries of the tensors. `values` downloads a buffer; `null` if the program does not use it. */
  whole(bound: Bound, values: (buffer: string) => Promise<ValueArray | null>): Promise<Bound>
  check(): void
}

/** Memory that several executables share. The owner uploads it, and no executable writes the inputs. */
export interface SharedMemory {
  /** True if the executables are one kernel on the same data under different schedules, so each may write new values. */
  readonly isOwn?: boolean
  /** Device buffers by name in the program: inputs contain the bound values, others are overwritten by each run. */
  readonly buffers: ReadonlyMap<string, DeviceBuffer>
  /** Called when the executable is freed; may be called repeatedly. */
  release(): void
}

/** Reference-counted memory of an executable that others read. It is freed with its last user. */
export class CountedMemory {
  readonly buffer: DeviceBuffer
  #isOwned = true
  #readers = 0

  constructor(buffer: DeviceBuffer) {
    this.buffer = buffer
  }

  /** False after the writing executable has been freed. */
  get isOwned(): boolean {
    return this.#isOwned
  }

  get freed(): boolean {
    return !this.#isOwned && this.#readers === 0
  }

  /** Adds a reader; the returned function removes it, and may be called repeatedly. Throws SptError `device/freed`. */
  hold(what: string): () => void {
    if (this.freed)
      failWith('device/freed', `${what} has been freed, with the kernel that writes it`, {
        hint: 'free a kernel after preparing the last kernel that reads the outputs',
      })
    this.#readers++
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      this.#readers--
      this.#freeUnused()
    }
  }

  /** Releases the writer's ownership; readers keep the memory. */
  free(): void {
    this.#isOwned = false
    this.#freeUnused()
  }

  #freeUnused(): void {
    if (this.freed) this.buffer.free()
  }
}

/** Outputs of an executable that other kernels may read. */
export class LentOutputs {
  readonly #lent = new Map<string, CountedMemory>()

  of(name: string, buffer: DeviceBuffer): CountedMemory {
    const lent = this.#lent.get(name) ?? new CountedMemory(buffer)
    this.#lent.set(name, lent)
    return lent
  }

  /** Throws SptError `device/freed-buffer` if the executable itself has been freed, even if others still read its outputs. */
  check(): void {
    for (const { buffer, isOwned } of this.#lent.values())
      if (!isOwned) failFreedBuffer(buffer, 'a kernel that was freed')
  }
}

export interface Origin {
  readonly resident?: Residents
  readonly shared?: SharedMemory
  /** The kernel as written, which lets errors name coordinates; undefined if they need not. */
  readonly source?: Kernel1
}
