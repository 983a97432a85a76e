/**
 * Buffers in device memory, allocated or of the caller. WebGPU reports exhausted memory only after `createBuffer` has returned, so a
 * buffer stores the result of its allocation, and its first use reports an error. Sizes are rounded up to 16 bytes: empty bindings are
 * not allowed, copies move whole words, and an `array<vec4<f32>>` view then covers every element.
 */
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { DeviceBuffer } from '../device.ts'
import type { Owned } from '../device-checks.ts'
import { USAGE } from './callers-buffer.ts'
import { BUFFER_ALIGN } from './limits.ts'
import { type Session, validationError } from './session.ts'

export const roundUp = (n: number, multiple: number): number => Math.ceil(n / multiple) * multiple

/** Bytes of a binding. */
export const bindingBytes = (bytes: number): number => Math.max(roundUp(bytes, BUFFER_ALIGN), BUFFER_ALIGN)

let nextId = 0

export class GpuBuffer implements DeviceBuffer, Owned {
  readonly id = nextId++
  readonly gpu: GPUBuffer
  /** Bytes of a binding: a multiple of 16. */
  readonly size: number
  /** False for a caller's `GPUBuffer`. */
  readonly isOwn: boolean
  freed = false
  /** Resolves to the device's allocation error; `undefined` if the allocation succeeded. */
  readonly allocationError: Promise<SptError | undefined>
  /** True once the device has confirmed the allocation. */
  isConfirmed = false
  /** Called when the buffer is freed, to drop its cache entries. */
  readonly onFree = new Set<() => void>()

  /** @param callers - The caller's memory; by default, memory is allocated */
  constructor(
    readonly owner: Session,
    readonly bytes: number,
    readonly label: string,
    callers?: GPUBuffer,
    readonly offset = 0,
  ) {
    this.size = bindingBytes(bytes)
    this.isOwn = callers === undefined
    const usage = USAGE.storage | USAGE.indirect | USAGE.copySrc | USAGE.copyDst
    const { value, failure } = owner.scoped(
      () => callers ?? owner.createBuffer({ label, size: this.size, usage }),
    )
    this.gpu = value
    this.allocationError = failure.then((f) => {
      this.isConfirmed = f === undefined
      if (f === undefined) return undefined
      return f.kind === 'memory' ? outOfMemory(label, bytes) : validationError(`alloc ${label}`, f.message)
    })
  }

  get binding(): GPUBufferBinding {
    return { buffer: this.gpu, offset: this.offset, size: this.size }
  }

  /** Rejects with `device/out-of-memory` if the allocation failed. */
  async ready(): Promise<void> {
    if (this.isConfirmed) return
    const error = await this.owner.wait(this.allocationError, `alloc ${this.label}`)
    // A new error for each call, because several calls may use the same failed allocation.
    if (error) throw new SptError(error.diagnostics)
  }

  free(): void {
    if (this.freed) return
    this.freed = true
    if (this.isOwn) this.owner.destroy(this.gpu)
    for (const drop of this.onFree) drop()
    this.onFree.clear()
  }
}

export function outOfMemory(label: string, bytes: number): SptError {
  return new SptError({
    code: 'device/out-of-memory',
    message: `the device has no memory left for ${label} (${bytes} bytes)`,
    hint: 'free buffers that are no longer used, or run on a device with more memory',
  })
}
