/** Device memory that an executable is given: it stays that of whoever gives it. */
import { fail } from '../ast/diagnostic.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import type { DeviceBuffer } from '../runtime/device.ts'
import { checkBuffer } from '../runtime/device-checks.ts'
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
  /** Whether they are one kernel on the same data, under different schedules: then new values may be written by any of them. */
  readonly isOwn?: boolean
  /** By buffer of the program: what is only read holds what is bound, anything else is overwritten by each run. */
  readonly buffers: ReadonlyMap<string, DeviceBuffer>
  /** Called when the executable is freed, which may be more than once. */
  release(): void
}

/** Memory of one executable that others read: it is freed with the last of them. */
export class CountedMemory {
  readonly buffer: DeviceBuffer
  #isOwned = true
  #readers = 0

  constructor(buffer: DeviceBuffer) {
    this.buffer = buffer
  }

  /** Whether whoever writes it has it. */
  get isOwned(): boolean {
    return this.#isOwned
  }

  get freed(): boolean {
    return !this.#isOwned && this.#readers === 0
  }

  /** What is returned may be called more than once. @throws SptError `device/freed` */
  hold(what: string): () => void {
    if (this.freed)
      fail({
        code: 'device/freed',
        message: `${what} has been freed, with the kernel that writes it`,
        hint: 'free a kernel after the last one that reads its outputs has been prepared',
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

  /** Of whoever writes it; readers keep it. */
  free(): void {
    this.#isOwned = false
    this.#freeUnused()
  }

  #freeUnused(): void {
    if (this.freed) this.buffer.free()
  }
}

/** Outputs of an executable that others may read. */
export class LentOutputs {
  readonly #lent = new Map<string, CountedMemory>()

  of(name: string, buffer: DeviceBuffer): CountedMemory {
    const lent = this.#lent.get(name) ?? new CountedMemory(buffer)
    this.#lent.set(name, lent)
    return lent
  }

  /** To the executable itself it is freed with the rest, whoever reads it. @throws SptError `device/freed-buffer` */
  check(): void {
    for (const { buffer, isOwned } of this.#lent.values())
      if (!isOwned) checkBuffer(buffer, 'freed', 'a kernel that was freed')
  }
}

export interface Origin {
  readonly resident?: Residents
  readonly shared?: SharedMemory
  /** The kernel as written, where errors are to say of which coordinates they are. */
  readonly source?: Kernel1
}
