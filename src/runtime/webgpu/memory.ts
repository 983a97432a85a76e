/**
 * Device memory. WebGPU reports exhausted memory only after `createBuffer` has returned, so a buffer stores the result of its
 * allocation, and its first use reports an error. Sizes are rounded up to 16 bytes: empty bindings are not allowed, copies move
 * whole words, and an `array<vec4<f32>>` view then covers every element.
 */

import { SptError } from '../../ast/diagnostics/diagnostic.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import type { DeviceBuffer, DeviceLimits, HostArray } from '../device.ts'
import {
  checkAlloc,
  checkBuffer,
  checkRange,
  expectBuffer,
  expectData,
  expectLabel,
  type Owned,
} from '../device-checks.ts'
import { BUFFER_ALIGN } from './limits.ts'
import { type Session, validationError } from './session.ts'

/** Values of `GPUBufferUsage`, which is not a global outside browsers. */
export const USAGE = {
  mapRead: 0x1,
  copySrc: 0x4,
  copyDst: 0x8,
  uniform: 0x40,
  storage: 0x80,
  queryResolve: 0x200,
} as const
const MAP_READ = 0x1

/** Transfers are split into pieces of this size, because the API stages each piece in additional memory. */
const PIECE = 16 * 2 ** 20
/** Maximum number of pieces in flight. */
const PIECES_IN_FLIGHT = 4

const roundUp = (n: number, multiple: number): number => Math.ceil(n / multiple) * multiple

let nextId = 0

export class GpuBuffer implements DeviceBuffer, Owned {
  readonly id = nextId++
  readonly owner: Session
  readonly gpu: GPUBuffer
  freed = false
  /** Resolves to the device's allocation error; `undefined` if the allocation succeeded. */
  readonly allocationError: Promise<SptError | undefined>
  /** True once the device has confirmed the allocation. */
  isConfirmed = false
  /** Called when the buffer is freed, to drop its cache entries. */
  readonly onFree = new Set<() => void>()

  constructor(
    session: Session,
    readonly bytes: number,
    readonly label: string,
  ) {
    this.owner = session
    const { value, failure } = session.scoped(() =>
      session.device.createBuffer({
        label,
        size: Math.max(roundUp(bytes, BUFFER_ALIGN), BUFFER_ALIGN),
        usage: USAGE.storage | USAGE.copySrc | USAGE.copyDst,
      }),
    )
    this.gpu = value
    this.allocationError = failure.then((f) => {
      this.isConfirmed = f === undefined
      if (f === undefined) return undefined
      return f.kind === 'memory' ? outOfMemory(label, bytes) : validationError(`alloc ${label}`, f.message)
    })
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
    this.gpu.destroy()
    for (const drop of this.onFree) drop()
    this.onFree.clear()
  }
}

function outOfMemory(label: string, bytes: number): SptError {
  return new SptError({
    code: 'device/out-of-memory',
    message: `the device has no memory left for ${label} (${bytes} bytes)`,
    hint: 'free buffers that are no longer used, or run on a device with more memory',
  })
}

export class Memory {
  constructor(
    private readonly session: Session,
    private readonly limits: DeviceLimits,
  ) {}

  /** The buffer behind a handle; it must be live and belong to this device. @throws SptError as `checkBuffer` */
  resolve(buffer: DeviceBuffer, call: string): GpuBuffer {
    checkBuffer(buffer, this.session, call)
    return buffer as GpuBuffer
  }

  alloc(bytes: number, label: string): GpuBuffer {
    expectLabel(label, 'a buffer')
    this.session.checkAlive(`alloc ${label}`)
    checkAlloc(bytes, label, this.limits)
    return new GpuBuffer(this.session, bytes, label)
  }

  async upload(handle: DeviceBuffer, data: HostArray, byteOffset = 0): Promise<void> {
    expectBuffer(handle, 'an upload')
    expectData(data)
    const call = `upload to ${handle.label}`
    this.session.checkAlive(call)
    const buffer = this.resolve(handle, call)
    checkRange(buffer, byteOffset, data.byteLength, 'uploading')
    await buffer.ready()
    const source = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    const start = byteOffset - (byteOffset % 4)
    const end = roundUp(byteOffset + source.length, 4)
    // Whole words are written directly. A partial word at either end is read first, so that its other bytes are kept.
    const head = Math.min(start === byteOffset ? 0 : 4 - (byteOffset % 4), source.length)
    const tail = head === source.length ? 0 : (source.length - head) % 4
    if (head > 0) await this.#patch(buffer, start, byteOffset - start, source.subarray(0, head), call)
    if (tail > 0) await this.#patch(buffer, end - 4, 0, source.subarray(source.length - tail), call)
    await this.#write(buffer, byteOffset + head, source.subarray(head, source.length - tail), call)
  }

  async #patch(
    buffer: GpuBuffer,
    wordOffset: number,
    byteInWord: number,
    bytes: Uint8Array,
    call: string,
  ): Promise<void> {
    const word = new Uint8Array(await this.#read(buffer, wordOffset, 4, call))
    word.set(bytes, byteInWord)
    await this.#write(buffer, wordOffset, word, call)
  }

  async #write(buffer: GpuBuffer, offset: number, source: Uint8Array, call: string): Promise<void> {
    const { device } = this.session
    for (let offsetInData = 0, piece = 1; offsetInData < source.length; offsetInData += PIECE, piece++) {
      const part = source.subarray(offsetInData, offsetInData + PIECE)
      this.resolve(buffer, call)
      const { failure } = this.session.scoped(() =>
        device.queue.writeBuffer(
          buffer.gpu,
          offset + offsetInData,
          part.buffer as ArrayBuffer,
          part.byteOffset,
          part.length,
        ),
      )
      const last = offsetInData + PIECE >= source.length
      if (!last && piece % PIECES_IN_FLIGHT !== 0) continue
      const error = await this.session.wait(failure, call)
      if (error?.kind === 'memory') throw outOfMemory(`the transfer to ${buffer.label}`, part.length)
      if (error) throw validationError(call, error.message)
      if (!last) await this.session.wait(device.queue.onSubmittedWorkDone(), call)
    }
  }

  async download(handle: DeviceBuffer, length?: number): Promise<ArrayBuffer> {
    expectBuffer(handle, 'a download')
    const bytes = length ?? handle.bytes
    const call = `download from ${handle.label}`
    this.session.checkAlive(call)
    const buffer = this.resolve(handle, call)
    checkRange(buffer, 0, bytes, 'downloading')
    await buffer.ready()
    return this.#read(buffer, 0, bytes, call)
  }

  async #read(buffer: GpuBuffer, offset: number, bytes: number, call: string): Promise<ArrayBuffer> {
    const out = new Uint8Array(bytes)
    if (bytes === 0) return out.buffer
    const { device } = this.session
    const size = Math.min(roundUp(bytes, 4), PIECE)
    const { value: staging, failure } = this.session.scoped(() =>
      device.createBuffer({ label: call, size, usage: USAGE.mapRead | USAGE.copyDst }),
    )
    try {
      const error = await this.session.wait(failure, call)
      if (error) throw outOfMemory(`the transfer from ${buffer.label}`, size)
      for (let offsetInData = 0; offsetInData < bytes; offsetInData += PIECE) {
        this.resolve(buffer, call)
        const part = Math.min(bytes - offsetInData, PIECE)
        const padded = roundUp(part, 4)
        const encoder = device.createCommandEncoder({ label: call })
        encoder.copyBufferToBuffer(buffer.gpu, offset + offsetInData, staging, 0, padded)
        device.queue.submit([encoder.finish()])
        await this.session.wait(staging.mapAsync(MAP_READ, 0, padded), call)
        out.set(new Uint8Array(staging.getMappedRange(0, padded), 0, part), offsetInData)
        staging.unmap()
      }
    } finally {
      staging.destroy()
    }
    return out.buffer
  }
}

// Zero-fill as a dispatch. `clearBuffer` is a copy command, which ends the compute pass and synchronises
// before and after. A small kernel stays in the pass.

const THREADS = 256
/** Buffer sizes are multiples of the 16 bytes of an element. */
const TEXT = `@group(0) @binding(0) var<storage, read_write> out: array<vec4<u32>>;
@compute @workgroup_size(${THREADS})
fn clear(@builtin(global_invocation_id) at: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var k = at.x; k < arrayLength(&out); k += groups.x * ${THREADS}u) {
    out[k] = vec4<u32>();
  }
}`

interface ClearLaunch {
  readonly pipeline: GPUComputePipeline
  readonly group: GPUBindGroup
  readonly grid: readonly [number, number, number]
}

export class Clears {
  #pipeline: GPUComputePipeline | undefined
  readonly #groups = new Map<GpuBuffer, GPUBindGroup>()

  constructor(private readonly session: Session) {}

  /** The dispatch for a buffer; `undefined` for a buffer that is too large to be bound. */
  launchFor(buffer: GpuBuffer): ClearLaunch | undefined {
    const { limits } = this.session.device
    if (buffer.gpu.size > limits.maxStorageBufferBindingSize) return undefined
    const pipeline = this.#compile()
    const groups = Math.ceil(buffer.gpu.size / (16 * THREADS))
    return {
      pipeline,
      group: this.#bindGroup(buffer, pipeline),
      grid: [Math.min(groups, limits.maxComputeWorkgroupsPerDimension), 1, 1],
    }
  }

  #compile(): GPUComputePipeline {
    const { device } = this.session
    this.#pipeline ??= device.createComputePipeline({
      label: 'clear',
      layout: 'auto',
      compute: { module: device.createShaderModule({ label: 'clear', code: TEXT }), entryPoint: 'clear' },
    })
    return this.#pipeline
  }

  #bindGroup(buffer: GpuBuffer, pipeline: GPUComputePipeline): GPUBindGroup {
    return getOrAdd(this.#groups, buffer, () => {
      buffer.onFree.add(() => this.#groups.delete(buffer))
      return this.session.device.createBindGroup({
        label: 'clear',
        layout: pipeline.getBindGroupLayout(0),
        entries: [{ binding: 0, resource: { buffer: buffer.gpu } }],
      })
    })
  }
}
