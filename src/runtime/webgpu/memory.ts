/** Transfers between the host and device memory, and checks of handles. */

import type { DeviceBuffer, DeviceLimits, HostArray, NativeRange } from '../device.ts'
import {
  checkAlloc,
  checkBuffer,
  checkRange,
  expectBuffer,
  expectData,
  expectLabel,
  failForeignBuffer,
  failFreedBuffer,
} from '../device-checks.ts'
import { bindingBytes, GpuBuffer, outOfMemory, roundUp } from './buffer.ts'
import { checkGpuBuffer, checkUnmapped, checkUsage, Probe, USAGE } from './callers-buffer.ts'
import { type Session, validationError } from './session.ts'

const MAP_READ = 0x1

/** Transfers are split into pieces of this size, because the API stages each piece in additional memory. */
const PIECE = 16 * 2 ** 20
/** Maximum number of pieces in flight. */
const PIECES_IN_FLIGHT = 4

export type Memory = ReturnType<typeof memoryOn>

export function memoryOn(session: Session, limits: DeviceLimits) {
  const probes = new Probe(session)
  /** The buffer behind a handle; it must be live and belong to this device. @throws SptError as `checkBuffer` */
  const resolve = (buffer: DeviceBuffer, call: string): GpuBuffer => {
    checkBuffer(buffer, session, call)
    return buffer as GpuBuffer
  }
  const alloc = (bytes: number, label: string): GpuBuffer => {
    expectLabel(label, 'a buffer')
    session.checkAlive(`alloc ${label}`)
    checkAlloc(bytes, label, limits)
    return new GpuBuffer(session, bytes, label)
  }
  /** @throws SptError as `Device.wrap` */
  const wrap = async ({ memory, offset, bytes }: NativeRange, label: string): Promise<GpuBuffer> => {
    expectLabel(label, 'a buffer')
    const call = `wrap ${label}`
    session.checkAlive(call)
    checkAlloc(bytes, label, limits)
    checkGpuBuffer(memory, { offset, size: bindingBytes(bytes) }, label, session.device.limits)
    const buffer = new GpuBuffer(session, bytes, label, memory as GPUBuffer, offset)
    try {
      await probeBuffer(buffer, call)
    } catch (e) {
      buffer.free()
      throw e
    }
    return buffer
  }
  /** Checks that WebGPU accepts a buffer; the caller may have destroyed or mapped it. @throws SptError `device/usage`, `device/foreign-buffer`, `device/freed-buffer` */
  const probeBuffer = async (buffer: GpuBuffer, call: string): Promise<void> => {
    if (buffer.isOwn) return
    checkUnmapped(buffer, call)
    const { value: use, failure } = session.scoped(() => probes.bind(buffer))
    if (await session.wait(failure, call)) failForeignBuffer(buffer, call)
    // The submission makes WebGPU check that the buffer is not destroyed.
    const { failure: inUse } = session.scoped(use)
    if (await session.wait(inUse, call)) failFreedBuffer(buffer, call)
  }
  const upload = async (handle: DeviceBuffer, data: HostArray, byteOffset = 0): Promise<void> => {
    expectBuffer(handle, 'an upload')
    expectData(data)
    const call = `upload to ${handle.label}`
    session.checkAlive(call)
    const buffer = resolve(handle, call)
    checkRange(buffer, byteOffset, data.byteLength, 'uploading')
    checkUsage(buffer, 'copyDst', call)
    await buffer.ready()
    const source = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    const start = byteOffset - (byteOffset % 4)
    const end = roundUp(byteOffset + source.length, 4)
    // Whole words are written directly. A partial word at either end is read first, so that its other bytes are kept.
    const head = Math.min(start === byteOffset ? 0 : 4 - (byteOffset % 4), source.length)
    const tail = head === source.length ? 0 : (source.length - head) % 4
    if (head > 0) await patch(buffer, start, byteOffset - start, source.subarray(0, head), call)
    if (tail > 0) await patch(buffer, end - 4, 0, source.subarray(source.length - tail), call)
    await write(buffer, byteOffset + head, source.subarray(head, source.length - tail), call)
  }
  const patch = async (
    buffer: GpuBuffer,
    wordOffset: number,
    byteInWord: number,
    bytes: Uint8Array,
    call: string,
  ): Promise<void> => {
    const word = new Uint8Array(await read(buffer, wordOffset, 4, call))
    word.set(bytes, byteInWord)
    await write(buffer, wordOffset, word, call)
  }
  const write = async (
    buffer: GpuBuffer,
    offset: number,
    source: Uint8Array,
    call: string,
  ): Promise<void> => {
    const { device } = session
    for (let offsetInData = 0, piece = 1; offsetInData < source.length; offsetInData += PIECE, piece++) {
      const part = source.subarray(offsetInData, offsetInData + PIECE)
      resolve(buffer, call)
      const { failure } = session.scoped(() =>
        device.queue.writeBuffer(
          buffer.gpu,
          buffer.offset + offset + offsetInData,
          part.buffer as ArrayBuffer,
          part.byteOffset,
          part.length,
        ),
      )
      const last = offsetInData + PIECE >= source.length
      if (!last && piece % PIECES_IN_FLIGHT !== 0) continue
      const error = await session.wait(failure, call)
      if (error?.kind === 'memory') throw outOfMemory(`the transfer to ${buffer.label}`, part.length)
      if (error) await probeBuffer(buffer, call)
      if (error) throw validationError(call, error.message)
      if (!last) await session.wait(device.queue.onSubmittedWorkDone(), call)
    }
  }
  const download = async (handle: DeviceBuffer, length?: number): Promise<ArrayBuffer> => {
    expectBuffer(handle, 'a download')
    const bytes = length ?? handle.bytes
    const call = `download from ${handle.label}`
    session.checkAlive(call)
    const buffer = resolve(handle, call)
    checkRange(buffer, 0, bytes, 'downloading')
    checkUsage(buffer, 'copySrc', call)
    await buffer.ready()
    return read(buffer, 0, bytes, call)
  }
  const read = async (
    buffer: GpuBuffer,
    offset: number,
    bytes: number,
    call: string,
  ): Promise<ArrayBuffer> => {
    const out = new Uint8Array(bytes)
    if (bytes === 0) return out.buffer
    const { device } = session
    const size = Math.min(roundUp(bytes, 4), PIECE)
    const { value: staging, failure } = session.scoped(() =>
      device.createBuffer({ label: call, size, usage: USAGE.mapRead | USAGE.copyDst }),
    )
    try {
      const error = await session.wait(failure, call)
      if (error) throw outOfMemory(`the transfer from ${buffer.label}`, size)
      for (let offsetInData = 0; offsetInData < bytes; offsetInData += PIECE) {
        resolve(buffer, call)
        const part = Math.min(bytes - offsetInData, PIECE)
        const padded = roundUp(part, 4)
        const { failure } = session.scoped(() => {
          const encoder = device.createCommandEncoder({ label: call })
          encoder.copyBufferToBuffer(buffer.gpu, buffer.offset + offset + offsetInData, staging, 0, padded)
          device.queue.submit([encoder.finish()])
        })
        const mapping = staging.mapAsync(MAP_READ, 0, padded)
        const [error] = await session.wait(Promise.all([failure, mapping]), call)
        if (error) await probeBuffer(buffer, call)
        if (error) throw validationError(call, error.message)
        out.set(new Uint8Array(staging.getMappedRange(0, padded), 0, part), offsetInData)
        staging.unmap()
      }
    } finally {
      staging.destroy()
    }
    return out.buffer
  }
  return { resolve, alloc, wrap, probeBuffer, upload, download }
}
