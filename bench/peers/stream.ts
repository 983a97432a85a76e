/**
 * A stream for libraries that are called through their C interface, in the same (primary) context as the device under
 * test, with its own memory, events and graphs: their calls are timed as the device times its launches.
 */

import { type CudaDriver, check, type Handle, initDriver, loadDriver } from '../../src/runtime/cuda/driver.ts'
import { type Ffi, loadFfi } from '../../src/runtime/cuda/ffi.ts'
import { thisMachine } from '../../src/runtime/cuda/libraries.ts'
import type { HostArray } from '../../src/runtime/device.ts'
import { median } from '../support.ts'

/** Graphs and copies, which the driver's table of `src/` need not have. */
interface MoreCalls {
  cuStreamBeginCapture_v2(stream: Handle, mode: number): number
  cuStreamEndCapture(stream: Handle, graph: BigUint64Array): number
  cuGraphInstantiateWithFlags(executable: BigUint64Array, graph: Handle, flags: bigint): number
  cuGraphLaunch(executable: Handle, stream: Handle): number
  cuGraphExecDestroy(executable: Handle): number
  cuGraphDestroy(graph: Handle): number
  cuMemcpyDtoDAsync_v2(to: bigint, from: bigint, bytes: number, stream: Handle): number
}

const PARAMETERS: Readonly<Record<keyof MoreCalls, string>> = {
  cuStreamBeginCapture_v2: 'uintptr_t, int32_t',
  cuStreamEndCapture: 'uintptr_t, void *',
  cuGraphInstantiateWithFlags: 'void *, uintptr_t, uint64_t',
  cuGraphLaunch: 'uintptr_t, uintptr_t',
  cuGraphExecDestroy: 'uintptr_t',
  cuGraphDestroy: 'uintptr_t',
  cuMemcpyDtoDAsync_v2: 'uint64_t, uint64_t, size_t, uintptr_t',
}

const NON_BLOCKING = 1
const CAPTURE_RELAXED = 2
/** What is written between runs to empty the L2 cache. */
export const FLUSH_BYTES = 256 * 2 ** 20
/** Clears that keep the device busy while the host queues what is timed. */
const HEAD_START = 24
/** Calls in one graph. */
const COPIES = 20

/** Device memory; `address` for C calls. */
export interface Memory {
  readonly address: bigint
  readonly bytes: number
}

export class PeerStream {
  readonly ffi: Ffi
  readonly driver: CudaDriver
  readonly handle: Handle
  readonly #more: MoreCalls
  readonly #context: Handle
  readonly #events: Handle[] = []
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
    const library = ffi.load(driver.path)
    const more: Partial<Record<keyof MoreCalls, unknown>> = {}
    for (const [name, parameters] of Object.entries(PARAMETERS)) {
      const bound = library.bind(`int32_t ${name}(${parameters})`)
      if (!bound) throw new Error(`the driver has no ${name}`)
      more[name as keyof MoreCalls] = bound
    }
    this.#more = more as unknown as MoreCalls
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

  free(...all: readonly (Memory | undefined)[]): void {
    this.enter()
    this.finish()
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

  copy(to: Memory, from: Memory): void {
    this.#check(
      'cuMemcpyDtoDAsync_v2',
      this.#more.cuMemcpyDtoDAsync_v2(to.address, from.address, from.bytes, this.handle),
    )
  }

  /** Waits for all that is queued. */
  finish(): void {
    check(this.driver, 'cuStreamSynchronize', this.driver.calls.cuStreamSynchronize(this.handle))
  }

  /** Microseconds of each of `repeats` calls of `enqueue`, which queues on the stream. */
  time(
    enqueue: () => void,
    repeats: number,
    options: { readonly warmUps?: number; readonly flush?: boolean } = {},
  ): number[] {
    this.enter()
    const events = this.#takeEvents(2 * repeats)
    const record = (event: Handle): void =>
      check(this.driver, 'cuEventRecord', this.driver.calls.cuEventRecord(event, this.handle))
    for (let k = 0; k < HEAD_START; k++) this.fill(this.#flush, 0)
    for (let k = 0; k < (options.warmUps ?? 10); k++) enqueue()
    for (let k = 0; k < repeats; k++) {
      if (options.flush) this.fill(this.#flush, 0)
      record(events[2 * k]!)
      enqueue()
      record(events[2 * k + 1]!)
    }
    this.finish()
    const out = new Float32Array(1)
    const times = Array.from({ length: repeats }, (_, k) => {
      const code = this.driver.calls.cuEventElapsedTime(out, events[2 * k]!, events[2 * k + 1]!)
      check(this.driver, 'cuEventElapsedTime', code)
      return 1000 * out[0]!
    })
    this.#events.push(...events)
    return times
  }

  /** Microseconds of one of the calls in a graph of `COPIES`, one after the other: the median over `repeats` replays. */
  timeGraph(enqueue: () => void, repeats: number): number {
    this.enter()
    const out = new BigUint64Array(1)
    this.#check('cuStreamBeginCapture_v2', this.#more.cuStreamBeginCapture_v2(this.handle, CAPTURE_RELAXED))
    let failure: unknown
    try {
      for (let k = 0; k < COPIES; k++) enqueue()
    } catch (error) {
      failure = error
    }
    const captured = this.#more.cuStreamEndCapture(this.handle, out)
    if (failure !== undefined) throw failure
    this.#check('cuStreamEndCapture', captured)
    const graph = out[0]!
    this.#check('cuGraphInstantiateWithFlags', this.#more.cuGraphInstantiateWithFlags(out, graph, 0n))
    const executable = out[0]!
    try {
      const replay = (): void =>
        this.#check('cuGraphLaunch', this.#more.cuGraphLaunch(executable, this.handle))
      return median(this.time(replay, repeats, { warmUps: 3 })) / COPIES
    } finally {
      this.#more.cuGraphExecDestroy(executable)
      this.#more.cuGraphDestroy(graph)
    }
  }

  close(): void {
    this.enter()
    this.finish()
    for (const event of this.#events) this.driver.calls.cuEventDestroy_v2(event)
    for (const { address } of this.#live.values()) this.driver.calls.cuMemFree_v2(address)
    this.driver.calls.cuStreamDestroy_v2(this.handle)
  }

  #check(call: string, code: number): void {
    if (code !== 0) throw new Error(`${call} failed with CUDA error ${code}`)
  }

  #takeEvents(count: number): Handle[] {
    const out = new BigUint64Array(1)
    while (this.#events.length < count) {
      check(this.driver, 'cuEventCreate', this.driver.calls.cuEventCreate(out, 0))
      this.#events.push(out[0]!)
    }
    return this.#events.splice(0, count)
  }
}
