/**
 * A stream for libraries that are called through their C interface, in the same (primary) context as the device under
 * test, with its own memory, events and graphs: their calls are timed as the device times its launches.
 */

import { type CudaDriver, check, type Handle, initDriver, loadDriver } from '../../src/runtime/cuda/driver.ts'
import { type Ffi, loadFfi } from '../../src/runtime/cuda/ffi.ts'
import { thisMachine } from '../../src/runtime/cuda/libraries.ts'
import type { HostArray } from '../../src/runtime/device.ts'

const NON_BLOCKING = 1
const CAPTURE_RELAXED = 2
/** What is written between runs to empty the L2 cache. */
const FLUSH_BYTES = 256 * 2 ** 20
const RECORD_EXTERNAL = 1

/** Device memory; `address` for C calls. */
export interface Memory {
  readonly address: bigint
  readonly bytes: number
}

/** Calls of a library between two events. */
export interface PeerTimer {
  /** Microseconds of a call, `repeats` times; with `flush`, after 256 MB have been written. */
  time(repeats: number, flush?: boolean): number[]
  free(): void
}

export class PeerStream {
  readonly ffi: Ffi
  readonly driver: CudaDriver
  readonly handle: Handle
  readonly #context: Handle
  readonly #live = new Map<bigint, Memory>()
  readonly #flush: Memory

  static async open(ordinal = 0): Promise<PeerStream> {
    const ffi = await loadFfi()
    const driver = loadDriver(ffi, thisMachine())
    initDriver(driver)
    return new PeerStream(ffi, driver, ordinal)
  }

  private constructor(ffi: Ffi, driver: CudaDriver, ordinal: number) {
    this.ffi = ffi
    this.driver = driver
    const out = new BigUint64Array(1)
    check(driver, 'cuDevicePrimaryCtxRetain', driver.calls.cuDevicePrimaryCtxRetain(out, ordinal))
    this.#context = out[0]!
    this.enter()
    check(driver, 'cuStreamCreate', driver.calls.cuStreamCreate(out, NON_BLOCKING))
    this.handle = out[0]!
    this.#flush = this.alloc(FLUSH_BYTES)
  }

  /** Makes the context current: before calls of a library. */
  enter(): void {
    check(this.driver, 'cuCtxSetCurrent', this.driver.calls.cuCtxSetCurrent(this.#context))
  }

  alloc(bytes: number): Memory {
    this.enter()
    const out = new BigUint64Array(1)
    check(this.driver, 'cuMemAlloc_v2', this.driver.calls.cuMemAlloc_v2(out, Math.max(bytes, 256)))
    const memory = { address: out[0]!, bytes }
    this.#live.set(memory.address, memory)
    return memory
  }

  /** After a fault nothing can be given back, and nothing is said of it: the fault itself has been. */
  free(...all: readonly (Memory | undefined)[]): void {
    this.driver.calls.cuCtxSetCurrent(this.#context)
    this.driver.calls.cuStreamSynchronize(this.handle)
    for (const m of all) if (m && this.#live.delete(m.address)) this.driver.calls.cuMemFree_v2(m.address)
  }

  upload(data: HostArray): Memory {
    const memory = this.alloc(data.byteLength)
    const { calls } = this.driver
    const code = calls.cuMemcpyHtoDAsync_v2(memory.address, data, data.byteLength, this.handle)
    check(this.driver, 'cuMemcpyHtoDAsync_v2', code)
    this.finish()
    return memory
  }

  download<T extends HostArray>(from: Memory, into: T): T {
    this.enter()
    const { calls } = this.driver
    const code = calls.cuMemcpyDtoHAsync_v2(into, from.address, into.byteLength, this.handle)
    check(this.driver, 'cuMemcpyDtoHAsync_v2', code)
    this.finish()
    return into
  }

  /** Queues a fill with one byte. */
  fill(memory: Memory, byte: number): void {
    this.enter()
    const { calls } = this.driver
    const code = calls.cuMemsetD8Async(memory.address, byte, memory.bytes, this.handle)
    check(this.driver, 'cuMemsetD8Async', code)
  }

  /** Waits for all that is queued. */
  finish(): void {
    check(this.driver, 'cuStreamSynchronize', this.driver.calls.cuStreamSynchronize(this.handle))
  }

  /**
   * Records `copies` calls of `enqueue`, which queues on the stream, between two events: as our own device does for what
   * it measures. Nothing of it runs yet.
   */
  graph(enqueue: () => void, copies: number): PeerTimer {
    this.enter()
    const { calls } = this.driver
    const [start, end] = [this.#event(), this.#event()]
    const record = (event: Handle): void =>
      check(
        this.driver,
        'cuEventRecordWithFlags',
        calls.cuEventRecordWithFlags(event, this.handle, RECORD_EXTERNAL),
      )
    const out = new BigUint64Array(1)
    const began = calls.cuStreamBeginCapture_v2(this.handle, CAPTURE_RELAXED)
    check(this.driver, 'cuStreamBeginCapture_v2', began)
    try {
      record(start)
      for (let k = 0; k < copies; k++) enqueue()
      record(end)
    } catch (error) {
      // The stream has to leave the capture, whatever became of it.
      calls.cuStreamEndCapture(this.handle, out)
      throw error
    }
    check(this.driver, 'cuStreamEndCapture', calls.cuStreamEndCapture(this.handle, out))
    const graph = out[0]!
    const made = calls.cuGraphInstantiateWithFlags(out, graph, 0n)
    calls.cuGraphDestroy(graph)
    check(this.driver, 'cuGraphInstantiateWithFlags', made)
    const executable = out[0]!
    check(this.driver, 'cuGraphUpload', calls.cuGraphUpload(executable, this.handle))
    const elapsed = new Float32Array(1)
    return {
      time: (repeats, flush = false) =>
        Array.from({ length: repeats }, () => {
          if (flush) this.fill(this.#flush, 0)
          check(this.driver, 'cuGraphLaunch', calls.cuGraphLaunch(executable, this.handle))
          this.finish()
          const code = calls.cuEventElapsedTime(elapsed, start, end)
          check(this.driver, 'cuEventElapsedTime', code)
          return (1000 * elapsed[0]!) / copies
        }),
      free: () => {
        this.enter()
        this.finish()
        calls.cuGraphExecDestroy(executable)
        for (const event of [start, end]) calls.cuEventDestroy_v2(event)
      },
    }
  }

  /** The same without a graph, for what cannot be recorded in one: the host queues call after call. */
  calls(enqueue: () => void, copies: number): PeerTimer {
    this.enter()
    const { calls } = this.driver
    const [start, end] = [this.#event(), this.#event()]
    const elapsed = new Float32Array(1)
    return {
      time: (repeats, flush = false) =>
        Array.from({ length: repeats }, () => {
          // While the device writes this, the host queues what is timed.
          this.fill(this.#flush, 0)
          if (!flush) enqueue()
          check(this.driver, 'cuEventRecord', calls.cuEventRecord(start, this.handle))
          for (let k = 0; k < copies; k++) enqueue()
          check(this.driver, 'cuEventRecord', calls.cuEventRecord(end, this.handle))
          this.finish()
          const code = calls.cuEventElapsedTime(elapsed, start, end)
          check(this.driver, 'cuEventElapsedTime', code)
          return (1000 * elapsed[0]!) / copies
        }),
      free: () => {
        for (const event of [start, end]) calls.cuEventDestroy_v2(event)
      },
    }
  }

  close(): void {
    this.driver.calls.cuCtxSetCurrent(this.#context)
    this.driver.calls.cuStreamSynchronize(this.handle)
    for (const { address } of this.#live.values()) this.driver.calls.cuMemFree_v2(address)
    this.driver.calls.cuStreamDestroy_v2(this.handle)
  }

  #event(): Handle {
    const out = new BigUint64Array(1)
    check(this.driver, 'cuEventCreate', this.driver.calls.cuEventCreate(out, 0))
    return out[0]!
  }
}
