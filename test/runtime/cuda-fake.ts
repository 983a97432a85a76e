/** A CUDA driver of JavaScript: device memory is host memory, a kernel is a function, a fault is sticky. */
import type { Chip } from '../../src/runtime/cuda/chip.ts'
import type { KernelCompiler } from '../../src/runtime/cuda/compiler.ts'
import { CudaDevice } from '../../src/runtime/cuda/device.ts'
import type { CudaDriver, DriverCalls } from '../../src/runtime/cuda/driver.ts'
import type { ArgSpec, Entry, ModuleText } from '../../src/runtime/device.ts'
import { FakeStreams } from './cuda-fake-streams.ts'

/** What a kernel of the fake sees: its arguments' slots and the memory behind an address. */
export interface FakeLaunch {
  readonly grid: readonly number[]
  readonly block: readonly number[]
  readonly sharedBytes: number
  readonly cluster: readonly number[] | undefined
  /** May begin before the launch before it has finished. */
  readonly overlaps: boolean
  slot(index: number): DataView
  memory(address: bigint): Uint8Array
}
/** Returns the code of a fault, or nothing. */
export type FakeKernel = (launch: FakeLaunch) => number | undefined

export const FAKE_CHIP: Chip & { readonly device: number } = {
  device: 0,
  ordinal: 0,
  name: 'fake',
  major: 9,
  minor: 0,
  multiprocessors: 4,
  warpSize: 32,
  maxThreadsPerBlock: 1024,
  maxThreadsPerMultiprocessor: 2048,
  maxBlocksPerMultiprocessor: 32,
  clusters: true,
  tensorMaps: true,
  maxBlockDim: [1024, 1024, 64],
  maxGridDim: [2147483647, 65535, 65535],
  sharedPerBlock: 49152,
  sharedPerBlockOptin: 232448,
  sharedPerMultiprocessor: 233472,
  registersPerBlock: 65536,
  registersPerMultiprocessor: 65536,
  l2Bytes: 2 ** 22,
  memoryBytes: 2 ** 20,
}

/** Fills an out parameter; success. */
export function put(out: Int32Array | Float32Array, value: number): 0
export function put(out: BigUint64Array, value: bigint): 0
export function put(out: { [index: number]: number | bigint }, value: number | bigint): 0 {
  out[0] = value
  return 0
}

const STRING_BASE = 0x5000n
/** Addresses of host blocks are this far apart. */
const HOST_STEP = 0x10_0000n
const HOST_BASE = 0x9000_0000n

export class FakeDriver implements CudaDriver {
  readonly path = 'fake'
  readonly log: string[] = []
  readonly memory = new Map<bigint, Uint8Array>()
  readonly kernels = new Map<string, FakeKernel>()
  /** What `cuFuncGetAttribute` answers by attribute. */
  readonly attributes = new Map<number, number>([
    [0, 1024],
    [4, 32],
  ])
  /** Calls that fail, by name, once each. */
  readonly failing = new Map<keyof DriverCalls, number>()
  /** How often the stream is still busy when asked. */
  busy = 0
  sticky = 0
  memoryBytes = FAKE_CHIP.memoryBytes
  /** Launches that overlap; `recording`: the capture with them. */
  refuses: 'nothing' | 'launches' | 'recording' = 'nothing'
  #next = 0x1000_0000n
  readonly streams = new FakeStreams()
  readonly #host: ArrayBuffer[] = []
  #current = 0n
  #functions: string[] = []
  #strings: string[] = []

  readonly calls: DriverCalls = this.#table()

  get held(): number {
    return [...this.memory.values()].reduce((sum, block) => sum + block.length, 0)
  }

  addressOf(block: ArrayBuffer): bigint {
    return HOST_BASE + HOST_STEP * BigInt(this.#host.push(block) - 1)
  }

  /** A copy of host memory at an address, as the driver makes it when it queues a call. */
  #read(address: bigint, bytes: number): DataView {
    const at = address - HOST_BASE
    const start = Number(at % HOST_STEP)
    return new DataView(this.#host[Number(at / HOST_STEP)]!.slice(start, start + bytes))
  }

  #launch(
    fn: bigint,
    shape: Omit<FakeLaunch, 'slot' | 'memory'>,
    stream: bigint,
    pointers: BigUint64Array,
  ): number {
    const kernel = this.kernels.get(this.#functions[Number(fn) - 1]!)!
    const slots = [...pointers].map((address) => this.#read(address, 8))
    this.streams.enqueue(stream, () => {
      this.sticky ||=
        kernel({ ...shape, slot: (i) => slots[i]!, memory: (address) => this.#block(address) }) ?? 0
    })
    return 0
  }

  readString(address: bigint): string {
    return this.#strings[Number(address - STRING_BASE)] ?? ''
  }

  #text(text: string, out: BigUint64Array): number {
    out[0] = STRING_BASE + BigInt(this.#strings.push(text) - 1)
    return 0
  }

  /** The first address and the bytes of the allocation around an address. */
  allocationOf(address: bigint): readonly [bigint, Uint8Array] | undefined {
    return [...this.memory].find(([base, { length }]) => address >= base && address <= base + BigInt(length))
  }

  #block(address: bigint): Uint8Array {
    const [base, block] = this.allocationOf(address) ?? []
    if (!block) throw new Error(`no memory at ${address}`)
    return block.subarray(Number(address - base!))
  }

  #table(): DriverCalls {
    const host = (h: ArrayBufferView | ArrayBuffer): Uint8Array =>
      ArrayBuffer.isView(h) ? new Uint8Array(h.buffer, h.byteOffset, h.byteLength) : new Uint8Array(h)
    const table: DriverCalls = {
      cuInit: () => 0,
      cuDriverGetVersion: (v) => put(v, 13000),
      cuDeviceGetCount: (c) => put(c, 1),
      cuDeviceGet: (d, ordinal) => put(d, ordinal),
      cuDeviceGetName: () => 0,
      cuDeviceGetAttribute: (v, a) => put(v, a),
      cuDeviceTotalMem_v2: (b) => put(b, 2n ** 20n),
      cuDevicePrimaryCtxRetain: (c) => put(c, 77n),
      cuDevicePrimaryCtxRelease_v2: () => 0,
      cuCtxSetCurrent: (c) => {
        this.#current = c
        return 0
      },
      cuMemGetInfo_v2: (free, total) => {
        free[0] = BigInt(this.memoryBytes - this.held)
        total[0] = BigInt(this.memoryBytes)
        return 0
      },
      cuPointerGetAttribute: (out, _attribute, address) =>
        this.allocationOf(address) ? put(out, FAKE_CHIP.device) : 1,
      cuMemGetAddressRange_v2: (start, size, address) => {
        const [base, bytes] = this.allocationOf(address) ?? []
        if (base === undefined) return 1
        size[0] = BigInt(bytes!.length)
        return put(start, base)
      },
      cuMemAlloc_v2: (out, bytes) => {
        if (bytes === 0) return 1
        if (this.held + bytes > this.memoryBytes) return 2
        out[0] = this.#next
        this.memory.set(this.#next, new Uint8Array(bytes).fill(0xa5))
        this.#next += 2n ** 24n
        return 0
      },
      cuMemFree_v2: (address) => (this.memory.delete(address) ? 0 : 1),
      cuMemcpyHtoDAsync_v2: (to, from, bytes, stream) => {
        const data = host(from).slice(0, bytes)
        this.streams.enqueue(stream, () => this.#block(to).set(data))
        return 0
      },
      cuMemcpyDtoHAsync_v2: (to, from, bytes, stream) => {
        this.streams.enqueue(stream, () => host(to).set(this.#block(from).subarray(0, bytes)))
        return 0
      },
      cuMemsetD8Async: (to, value, bytes, stream) => {
        this.streams.enqueue(stream, () => this.#block(to).fill(value, 0, bytes))
        return 0
      },
      cuStreamCreate: (s) => put(s, this.streams.make('stream')),
      cuStreamQuery: (stream) => {
        if (this.busy-- > 0) return 600
        this.streams.finish(stream)
        return this.sticky
      },
      cuStreamSynchronize: (stream) => {
        this.busy = 0
        this.streams.finish(stream)
        return this.sticky
      },
      cuStreamDestroy_v2: (stream) => this.streams.destroy('stream', stream),
      cuStreamWaitEvent: (stream, event) => this.streams.wait(stream, event),
      cuStreamBeginCapture_v2: (stream) => this.streams.beginCapture(stream),
      cuStreamEndCapture: (stream, out) => {
        const graph = this.streams.endCapture(stream)
        return graph === undefined ? 901 : put(out, graph)
      },
      cuGraphInstantiateWithFlags: (out, graph) => put(out, this.streams.instantiate(graph)),
      cuGraphUpload: () => 0,
      cuGraphLaunch: (executable, stream) => this.streams.replay(executable, stream),
      cuGraphExecDestroy: (executable) => this.streams.destroy('executable', executable),
      cuGraphDestroy: (graph) => this.streams.destroy('graph', graph),
      cuEventCreate: (e) => put(e, this.streams.make('event')),
      cuEventRecord: (event, stream) => this.streams.record(event, stream),
      cuEventRecordWithFlags: (event, stream, flags) => this.streams.record(event, stream, flags === 1),
      cuEventQuery: (event) => this.streams.happened(event) || this.sticky,
      cuEventElapsedTime: (ms, start, end) => {
        const time = this.streams.elapsed(start, end)
        return time === undefined ? 600 : put(ms, time)
      },
      cuEventDestroy_v2: (event) => this.streams.destroy('event', event),
      cuModuleLoadData: (m) => put(m, 99n),
      cuModuleUnload: () => 0,
      cuModuleGetFunction: (fn, _module, name) => {
        if (!this.kernels.has(name)) return 500
        fn[0] = BigInt(this.#functions.push(name))
        return 0
      },
      cuFuncGetAttribute: (v, a) => put(v, this.attributes.get(a) ?? 0),
      cuFuncSetAttribute: () => 0,
      cuLaunchKernel: (fn, gx, gy, gz, bx, by, bz, sharedBytes, stream, pointers) =>
        this.#launch(
          fn,
          { grid: [gx, gy, gz], block: [bx, by, bz], sharedBytes, cluster: undefined, overlaps: false },
          stream,
          pointers,
        ),
      cuLaunchKernelEx: (bytes, fn, pointers) => {
        const config = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
        const three = (view: DataView, at: number): number[] =>
          [0, 1, 2].map((d) => view.getUint32(at + 4 * d, true))
        const count = config.getUint32(48, true)
        const attributes = this.#read(config.getBigUint64(40, true), 72 * count)
        let cluster: number[] | undefined
        let overlaps = false
        for (let at = 0; at < 72 * count; at += 72) {
          const id = attributes.getUint32(at, true)
          if (id === 4) cluster = three(attributes, at + 8)
          else if (id === 6) overlaps = attributes.getUint32(at + 8, true) === 1
          else return 1
        }
        if (overlaps && this.refuses === 'launches') return 801
        if (overlaps && this.refuses === 'recording') return this.streams.spoil() ? 900 : 801
        const shape = {
          grid: three(config, 0),
          block: three(config, 12),
          sharedBytes: config.getUint32(24, true),
          cluster,
          overlaps,
        }
        return this.#launch(fn, shape, config.getBigUint64(32, true), pointers)
      },
      cuGetErrorName: (code, out) => this.#text(`CODE_${code}`, out),
      cuGetErrorString: (code, out) => this.#text(`text of ${code}`, out),
    }
    const free = new Set([
      'cuGetErrorName',
      'cuGetErrorString',
      'cuCtxSetCurrent',
      'cuDevicePrimaryCtxRetain',
    ])
    const wrapped = Object.entries(table).map(([name, call]) => [
      name,
      (...args: never[]): number => {
        this.log.push(name)
        const planned = this.failing.get(name as keyof DriverCalls)
        if (planned !== undefined) {
          this.failing.delete(name as keyof DriverCalls)
          return planned
        }
        if (/^cu(Mem|Stream|Event|Module|Func|Launch|Graph)/.test(name) && !free.has(name)) {
          if (this.#current !== 77n) return 201
          if (this.sticky) return this.sticky
        }
        return (call as (...a: never[]) => number)(...args)
      },
    ])
    return Object.fromEntries(wrapped)
  }
}

/** Images are the texts themselves; `images` counts what was asked for. */
export class FakeCompiler implements KernelCompiler {
  readonly target = { arch: 'sm_90a', output: 'cubin' } as const
  readonly images: { readonly name: string; readonly fresh: boolean }[] = []
  cached = false

  async image(module: ModuleText, fresh = false) {
    this.images.push({ name: module.name, fresh })
    return { bytes: new TextEncoder().encode(module.text), cached: this.cached && !fresh }
  }
}

/** What the device's own fills do. */
const fillZero: FakeKernel = ({ grid, slot, memory }) => {
  for (let k = 0; k < grid[1]!; k++)
    memory(slot(k).getBigUint64(0, true)).fill(0, 0, Number(slot(8 + k).getBigUint64(0, true)))
  return undefined
}

export function fakeDevice(syncEachLaunch = false, overlap = true) {
  const driver = new FakeDriver()
  driver.kernels.set('fill_zero', fillZero)
  const compiler = new FakeCompiler()
  const device = new CudaDevice({
    driver,
    chip: FAKE_CHIP,
    compiler,
    versions: 'fake',
    syncEachLaunch,
    overlap,
  })
  return { driver, compiler, device }
}

export const buffer = (name: string): ArgSpec => ({
  kind: 'buffer',
  name,
  dtype: 'f32',
  access: 'read_write',
})
export const scalar = (name: string, dtype: ArgSpec['dtype'] = 'i32'): ArgSpec => ({
  kind: 'scalar',
  name,
  dtype,
})

export function fakeModule(name: string, args: readonly ArgSpec[], change: Partial<Entry> = {}): ModuleText {
  return {
    target: 'cuda',
    name,
    text: `void ${name}`,
    entries: [{ name, args, block: [32, 1, 1], sharedBytes: 0, ...change }],
  }
}
