/** Memory that belongs to a caller of the library, on each device. */
import type { NativeMemory } from '../../src/device.ts'
import { type Device, devices } from '../../src/node.ts'
import { findAdapter } from '../../src/runtime/webgpu/node.ts'

/** `STORAGE`, `COPY_SRC` and `COPY_DST` of `GPUBufferUsage`. */
const STORAGE = 0x80 | 0x4 | 0x8

/** Memory of the caller on a device, with the values in float32. */
export interface Callers {
  readonly device: Device
  make(bytes: number): NativeMemory
  write(memory: NativeMemory, offset: number, values: Float32Array<ArrayBuffer>): void
  read(memory: NativeMemory): Promise<Float32Array>
  close(): Promise<void>
}

export async function onCpu(): Promise<Callers> {
  const device = await devices.cpu()
  return {
    device,
    make: (bytes) => new ArrayBuffer(bytes),
    write: (m, offset, values) => new Float32Array(m as ArrayBuffer, offset, values.length).set(values),
    read: async (m) => new Float32Array((m as ArrayBuffer).slice(0)),
    close: () => device.dispose(),
  }
}

export async function onWebGpu(): Promise<Callers & { readonly gpu: GPUDevice }> {
  const found = await findAdapter()
  if ('reason' in found) throw new Error(found.reason)
  const gpu = await found.adapter.requestDevice()
  const device = await devices.webgpu({ device: gpu })
  return {
    device,
    gpu,
    make: (size) => gpu.createBuffer({ size, usage: STORAGE }),
    write: (m, offset, values) => gpu.queue.writeBuffer(m as unknown as GPUBuffer, offset, values),
    read: async (m) => {
      const from = m as unknown as GPUBuffer
      const to = gpu.createBuffer({ size: from.size, usage: 0x1 | 0x8 })
      const encoder = gpu.createCommandEncoder()
      encoder.copyBufferToBuffer(from, 0, to, 0, from.size)
      gpu.queue.submit([encoder.finish()])
      await to.mapAsync(0x1)
      return new Float32Array(to.getMappedRange().slice(0))
    },
    close: async () => {
      await device.dispose()
      gpu.destroy()
    },
  }
}
