/** The cpu device: emitted JavaScript over typed arrays, on the calling thread. Works in any JavaScript host. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type {
  Command,
  CompiledModule,
  Device,
  DeviceBuffer,
  DeviceEvent,
  DeviceLimits,
  Graph,
  HostArray,
  ModuleText,
  Stream,
} from '../device.ts'
import {
  checkAlloc,
  checkBuffer,
  checkCommands,
  checkEntry,
  checkRange,
  checkRepeats,
  checkTarget,
  expectBuffer,
  expectCommands,
  expectData,
  expectLabel,
  expectModule,
  failDisposed,
  type HandleState,
} from '../device-checks.ts'
import { checkStream, failFreed, type InOrder, InOrderEvent, InOrderStream } from '../in-order.ts'
import { Outcomes } from '../outcomes.ts'
import { CpuBuffer, CpuModule, chunkRanges, execute } from './execution.ts'

/** Largest ArrayBuffer of current engines. */
const MAX_BUFFER = 2 ** 33
/** Entries contain the loop over the grid, with 32-bit indices. */
const MAX_GRID = 2 ** 31 - 1

const LIMITS: DeviceLimits = {
  maxBufferBytes: MAX_BUFFER,
  maxBindingBytes: MAX_BUFFER,
  maxBuffersPerLaunch: Number.POSITIVE_INFINITY,
  maxThreadsPerBlock: 1024,
  maxBlockDim: [1024, 1024, 64],
  maxGridDim: [MAX_GRID, MAX_GRID, MAX_GRID],
  maxSharedBytes: 2 ** 30,
}

/** Creates the cpu device. It needs `new Function`, which a page's content security policy can forbid. */
export const createCpuDevice = (): Device => new CpuDevice()

/** Commands run when they are queued, so nothing is in flight. */
class CpuGraph implements Graph {
  readonly #check: () => void
  readonly #commands: readonly Command[]
  readonly #order: InOrder
  #freed = false

  constructor(commands: readonly Command[], order: InOrder, check: () => void) {
    this.#commands = commands
    this.#order = order
    this.#check = check
  }

  launch(stream?: Stream): void {
    if (this.#freed) failFreed('the graph')
    checkStream(stream, this.#order)
    this.#check()
    execute(this.#commands)
  }

  async time(repeats: number, between?: Graph): Promise<number[]> {
    checkRepeats(repeats, between)
    const main = new InOrderStream('of run', this.#order)
    return Array.from({ length: repeats }, () => {
      between?.launch(main)
      const start = performance.now()
      this.launch()
      return performance.now() - start
    })
  }

  free(): void {
    this.#freed = true
  }
}

export const CPU_FEATURES: ReadonlySet<string> = new Set(['f64'])

class CpuDevice implements Device {
  readonly kind = 'cpu'
  readonly name = 'JavaScript'
  readonly limits = LIMITS
  readonly features = CPU_FEATURES
  readonly #order: InOrder = {
    now: async () => BigInt(Math.round(performance.now() * 1e6)),
    finish: () => this.#outcomes.settle(),
  }
  readonly #outcomes = new Outcomes()
  #disposed = false

  alloc(bytes: number, label: string): DeviceBuffer {
    expectLabel(label, 'a buffer')
    this.#checkAlive(`alloc ${label}`)
    checkAlloc(bytes, label, this.limits)
    try {
      return new CpuBuffer(bytes, label, this)
    } catch {
      return fail({
        code: 'device/out-of-memory',
        message: `no memory for the ${bytes} bytes of ${label}`,
        hint: 'use a smaller size, or free buffers',
      })
    }
  }

  async upload(buffer: DeviceBuffer, data: HostArray, byteOffset = 0): Promise<void> {
    expectBuffer(buffer, 'an upload')
    expectData(data)
    const memory = this.#checkedMemory(buffer, `upload to ${buffer.label}`)
    checkRange(buffer, byteOffset, data.byteLength, 'uploading')
    for (const [offset, n] of chunkRanges(data.byteLength))
      new Uint8Array(memory, byteOffset + offset, n).set(
        new Uint8Array(data.buffer, data.byteOffset + offset, n),
      )
  }

  async download(buffer: DeviceBuffer, length?: number): Promise<ArrayBuffer> {
    expectBuffer(buffer, 'a download')
    const bytes = length ?? buffer.bytes
    const memory = this.#checkedMemory(buffer, `download from ${buffer.label}`)
    checkRange(buffer, 0, bytes, 'downloading')
    return memory.slice(0, bytes)
  }

  async compile(module: ModuleText): Promise<CompiledModule> {
    expectModule(module)
    this.#checkAlive(`compile ${module.name}`)
    checkTarget(module, 'js')
    for (const entry of module.entries) checkEntry(module, entry, this.limits)
    return new CpuModule(module, this)
  }

  async run(commands: readonly Command[]): Promise<void> {
    this.#check(commands)
    execute(commands)
    await this.#outcomes.settleCompleted(commands)
  }

  async time(commands: readonly Command[], repeats: number, between?: Graph): Promise<number[]> {
    checkRepeats(repeats, between)
    this.#check(commands)
    const main = new InOrderStream('of run', this.#order)
    const times = Array.from({ length: repeats }, () => {
      between?.launch(main)
      const start = performance.now()
      execute(commands)
      return performance.now() - start
    })
    await this.#outcomes.settleCompleted(commands)
    return times
  }

  async graph(commands: readonly Command[]): Promise<Graph> {
    this.#check(commands)
    const recorded = [...commands]
    const graph = new CpuGraph(recorded, this.#order, () => this.#check(recorded))
    return this.#outcomes.graph(graph, recorded)
  }

  stream(label: string): Stream {
    expectLabel(label, 'a stream')
    this.#checkAlive(`stream ${label}`)
    return new InOrderStream(label, this.#order)
  }

  event(): DeviceEvent {
    this.#checkAlive('event')
    return new InOrderEvent(this.#order)
  }

  async finish(): Promise<void> {
    this.#checkAlive('finish')
    await this.#outcomes.settle()
  }

  async dispose(): Promise<void> {
    this.#disposed = true
  }

  #checkAlive(call: string): void {
    if (this.#disposed) failDisposed(this.name, call)
  }

  #bufferState(b: DeviceBuffer): HandleState {
    if (!(b instanceof CpuBuffer) || b.owner !== this) return 'foreign'
    return b.freed ? 'freed' : 'live'
  }

  #checkedMemory(buffer: DeviceBuffer, call: string): ArrayBuffer {
    this.#checkAlive(call)
    checkBuffer(buffer, this.#bufferState(buffer), call)
    return (buffer as CpuBuffer).memory
  }

  #check(commands: readonly Command[]): void {
    expectCommands(commands)
    this.#checkAlive('run')
    checkCommands(commands, this.limits, {
      buffer: (b) => this.#bufferState(b),
      module: (m) => {
        if (!(m instanceof CpuModule) || m.owner !== this) return 'foreign'
        return m.released ? 'freed' : 'live'
      },
    })
  }
}
