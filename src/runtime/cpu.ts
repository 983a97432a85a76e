/** The cpu device: emitted JavaScript over typed arrays, on the calling thread. Works in any JavaScript host. */
import { fail, invariant } from '../ast/diagnostic.ts'
import { arrayClass } from '../ir/arrays.ts'
import type { Dtype } from '../ir/dtype.ts'
import {
  checkRepeats,
  expectBuffer,
  expectCommands,
  expectData,
  expectLabel,
  expectModule,
} from './check-calls.ts'
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
} from './device.ts'
import {
  checkAlloc,
  checkBuffer,
  checkCommands,
  checkEntry,
  checkRange,
  checkTarget,
  failDisposed,
  type HandleState,
} from './device-checks.ts'
import { checkStream, failFreed, type InOrder, InOrderEvent, InOrderStream } from './in-order.ts'

type Fn = (...args: (HostArray | number | boolean)[]) => void

/** Largest ArrayBuffer of current engines. */
const MAX_BUFFER = 2 ** 33
/** Entries loop over the grid themselves, in 32-bit indices. */
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

class CpuBuffer implements DeviceBuffer {
  readonly bytes: number
  readonly label: string
  readonly owner: object
  #memory: ArrayBuffer | null
  readonly #views = new Map<Dtype, HostArray>()

  constructor(bytes: number, label: string, owner: object) {
    this.bytes = bytes
    this.label = label
    this.owner = owner
    // A whole number of 8-byte words, so that a view of any type covers it.
    this.#memory = new ArrayBuffer(Math.ceil(bytes / 8) * 8)
  }

  get freed(): boolean {
    return this.#memory === null
  }

  get memory(): ArrayBuffer {
    invariant(this.#memory, `${this.label} was freed`)
    return this.#memory
  }

  view(dtype: Dtype): HostArray {
    let v = this.#views.get(dtype)
    if (!v) {
      v = new (arrayClass(dtype))(this.memory)
      this.#views.set(dtype, v)
    }
    return v
  }

  free(): void {
    this.#memory = null
    this.#views.clear()
  }
}

class CpuModule implements CompiledModule {
  readonly text: ModuleText
  readonly owner: object
  readonly functions: Readonly<Record<string, Fn>>
  released = false

  constructor(text: ModuleText, owner: object) {
    this.text = text
    this.owner = owner
    this.functions = functionsOf(text)
  }

  release(): void {
    this.released = true
  }
}

/** Creates the cpu device. It needs `new Function`, which a page's content security policy can forbid. */
export const createCpuDevice = (): Device => new CpuDevice()

/** Runs its commands when they are queued: nothing is ever under way. */
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

/** Offsets and lengths: an array of bytes holds 4 GiB at most, a memory more. */
const pieces = (bytes: number): (readonly [at: number, length: number])[] =>
  Array.from({ length: Math.ceil(bytes / PIECE) }, (_, k) => [k * PIECE, Math.min(PIECE, bytes - k * PIECE)])
const PIECE = 2 ** 30

class CpuDevice implements Device {
  readonly kind = 'cpu'
  readonly name = 'JavaScript'
  readonly limits = LIMITS
  readonly features = CPU_FEATURES
  readonly #order: InOrder = {
    now: async () => BigInt(Math.round(performance.now() * 1e6)),
    finish: async () => {},
  }
  #disposed = false

  alloc(bytes: number, label: string): DeviceBuffer {
    expectLabel(label, 'a buffer')
    this.#alive(`alloc ${label}`)
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
    const memory = this.#own(buffer, `upload to ${buffer.label}`)
    checkRange(buffer, byteOffset, data.byteLength, 'uploading')
    for (const [at, n] of pieces(data.byteLength))
      new Uint8Array(memory, byteOffset + at, n).set(new Uint8Array(data.buffer, data.byteOffset + at, n))
  }

  async download(buffer: DeviceBuffer, length?: number): Promise<ArrayBuffer> {
    expectBuffer(buffer, 'a download')
    const bytes = length ?? buffer.bytes
    const memory = this.#own(buffer, `download from ${buffer.label}`)
    checkRange(buffer, 0, bytes, 'downloading')
    return memory.slice(0, bytes)
  }

  async compile(module: ModuleText): Promise<CompiledModule> {
    expectModule(module)
    this.#alive(`compile ${module.name}`)
    checkTarget(module, 'js')
    for (const entry of module.entries) checkEntry(module, entry, this.limits)
    return new CpuModule(module, this)
  }

  async run(commands: readonly Command[]): Promise<void> {
    this.#check(commands)
    execute(commands)
  }

  async time(commands: readonly Command[], repeats: number, between?: Graph): Promise<number[]> {
    checkRepeats(repeats, between)
    this.#check(commands)
    const main = new InOrderStream('of run', this.#order)
    return Array.from({ length: repeats }, () => {
      between?.launch(main)
      const start = performance.now()
      execute(commands)
      return performance.now() - start
    })
  }

  async graph(commands: readonly Command[]): Promise<Graph> {
    this.#check(commands)
    const recorded = [...commands]
    return new CpuGraph(recorded, this.#order, () => this.#check(recorded))
  }

  stream(label: string): Stream {
    expectLabel(label, 'a stream')
    this.#alive(`stream ${label}`)
    return new InOrderStream(label, this.#order)
  }

  event(): DeviceEvent {
    this.#alive('event')
    return new InOrderEvent(this.#order)
  }

  async finish(): Promise<void> {
    this.#alive('finish')
  }

  async dispose(): Promise<void> {
    this.#disposed = true
  }

  #alive(call: string): void {
    if (this.#disposed) failDisposed(this.name, call)
  }

  #bufferState(b: DeviceBuffer): HandleState {
    if (!(b instanceof CpuBuffer) || b.owner !== this) return 'foreign'
    return b.freed ? 'freed' : 'live'
  }

  #own(buffer: DeviceBuffer, call: string): ArrayBuffer {
    this.#alive(call)
    checkBuffer(buffer, this.#bufferState(buffer), call)
    return (buffer as CpuBuffer).memory
  }

  #check(commands: readonly Command[]): void {
    expectCommands(commands)
    this.#alive('run')
    checkCommands(commands, this.limits, {
      buffer: (b) => this.#bufferState(b),
      module: (m) => {
        if (!(m instanceof CpuModule) || m.owner !== this) return 'foreign'
        return m.released ? 'freed' : 'live'
      },
    })
  }
}

function functionsOf(module: ModuleText): Readonly<Record<string, Fn>> {
  const text = `"use strict";\n${module.text.replace(/^export /gm, '')}\nreturn { ${module.entries.map((e) => e.name).join(', ')} };`
  try {
    return new Function(text)() as Record<string, Fn>
  } catch (error) {
    return fail({
      code: 'device/compile',
      message: `the emitted JavaScript of ${module.name} does not compile: ${error instanceof Error ? error.message : String(error)}`,
      hint:
        error instanceof EvalError
          ? 'the page forbids `new Function`: allow unsafe-eval, or import the emitted module'
          : 'this is a bug of sparsetile; please report the kernel',
    })
  }
}

/** Runs commands that were checked. */
function execute(commands: readonly Command[]): void {
  for (const c of commands) {
    if (c.kind === 'clear') {
      const { memory } = c.buffer as CpuBuffer
      for (const [at, n] of pieces(memory.byteLength)) new Uint8Array(memory, at, n).fill(0)
      continue
    }
    const module = c.module as CpuModule
    const entry = module.text.entries.find((e) => e.name === c.entry)
    const fn = module.functions[c.entry]
    invariant(entry && fn, `no entry ${c.entry}`)
    const args = entry.args.map((spec, k) => {
      const value = c.args[k]
      if (spec.kind === 'buffer') return (value as CpuBuffer).view(spec.dtype)
      return spec.dtype === 'bool' ? value !== 0 : (value as number)
    })
    fn(...args)
  }
}
