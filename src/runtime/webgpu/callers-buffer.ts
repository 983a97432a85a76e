/** Checks of a caller's `GPUBuffer` and `GPUCommandEncoder`, before WebGPU rejects them with a message of its own. */
import { failAs } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument, isRecord, show } from '../../ast/diagnostics/expect-argument.ts'
import type { GpuEncoderLike, NativeMemory, Stream } from '../device.ts'
import type { Session } from './session.ts'

/** Values of `GPUBufferUsage`, which is not a global outside browsers. */
export const USAGE = {
  mapRead: 0x1,
  copySrc: 0x4,
  copyDst: 0x8,
  uniform: 0x40,
  storage: 0x80,
  indirect: 0x100,
  queryResolve: 0x200,
} as const

const USAGE_NAMES = { storage: 'STORAGE', copySrc: 'COPY_SRC', copyDst: 'COPY_DST' } as const

interface Labelled {
  readonly gpu: GPUBuffer
  readonly label: string
}

/** @throws SptError `device/usage` */
export function checkUsage({ gpu, label }: Labelled, usage: keyof typeof USAGE_NAMES, call: string): void {
  if ((gpu.usage & USAGE[usage]) !== 0) return
  failAs('device/usage', {
    message: `${call}: the GPUBuffer of ${label} lacks the usage ${USAGE_NAMES[usage]}`,
    expected: 'STORAGE to run kernels, COPY_SRC to read, COPY_DST to write values from the host',
    hint: `create it with usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST`,
  })
}

/** @throws SptError `device/usage` */
export function checkUnmapped({ gpu, label }: Labelled, call: string): void {
  if (gpu.mapState === 'unmapped') return
  failAs('device/usage', {
    message: `${call}: the GPUBuffer of ${label} is ${gpu.mapState === 'mapped' ? 'mapped' : 'being mapped'}`,
    expected: 'an unmapped buffer',
    hint: 'call buffer.unmap() first',
  })
}

/** Checks that memory is a `GPUBuffer` that kernels can use in this range. @throws SptError `api/argument`, `device/usage`, `device/range` */
export function checkGpuBuffer(
  memory: NativeMemory,
  { offset, size }: { readonly offset: number; readonly size: number },
  label: string,
  { minStorageBufferOffsetAlignment: align }: GPUSupportedLimits,
): void {
  const isBuffer =
    isRecord(memory) && ['size', 'usage'].every((n) => typeof memory[n] === 'number') && 'mapState' in memory
  expectArgument(isBuffer, `the memory of ${label}`, memory, 'a GPUBuffer')
  const gpu = memory as unknown as GPUBuffer
  checkUsage({ gpu, label }, 'storage', `wrap ${label}`)
  if (!(Number.isSafeInteger(offset) && offset >= 0 && offset % align === 0))
    failAs('device/range', {
      message: `${label} begins at byte ${show(offset)} of the GPUBuffer`,
      expected: `a multiple of ${align}, the minStorageBufferOffsetAlignment of the device`,
    })
  if (offset + size > gpu.size)
    failAs('device/range', {
      message: `${label} needs ${size} bytes from byte ${offset} on, and the GPUBuffer has ${gpu.size}`,
      expected: `a GPUBuffer of at least ${offset + size} bytes: the bytes of the elements, rounded up to 16`,
    })
}

/** @throws SptError `api/argument` */
export function expectEncoder(
  into: Stream | GpuEncoderLike,
): asserts into is GpuEncoderLike & GPUCommandEncoder {
  const isEncoder = isRecord(into) && typeof into.beginComputePass === 'function'
  expectArgument(
    isEncoder,
    'the encoder',
    into,
    'a GPUCommandEncoder of the device, or a stream from device.stream',
  )
}

/** A kernel without an effect, whose submission makes WebGPU check the buffers that the kernel binds. */
export class Probe {
  #pipeline: GPUComputePipeline | undefined

  constructor(private readonly session: Session) {}

  /** Binds a buffer, which must belong to the device. The result submits the kernel; the buffer must not be destroyed. */
  bind({ binding }: { readonly binding: GPUBufferBinding }): () => void {
    const { device } = this.session
    const code = PROBE_TEXT
    this.#pipeline ??= device.createComputePipeline({
      layout: 'auto',
      compute: { module: device.createShaderModule({ label: 'probe', code }) },
    })
    const pipeline = this.#pipeline
    const entries = [{ binding: 0, resource: binding }]
    const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries })
    return () => {
      const encoder = device.createCommandEncoder({ label: 'probe' })
      const pass = encoder.beginComputePass()
      pass.setPipeline(pipeline)
      pass.setBindGroup(0, group)
      pass.dispatchWorkgroups(1)
      pass.end()
      device.queue.submit([encoder.finish()])
    }
  }
}

const PROBE_TEXT = `@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(1) fn probe() { _ = arrayLength(&x); }`
