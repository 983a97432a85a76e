/** The cpu device: emitted JavaScript over typed arrays, on the calling thread. Works in any JavaScript host. */

import { failAs, failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument, show } from '../../ast/diagnostics/expect-argument.ts'
import type {
  Command,
  CompiledModule,
  Device,
  DeviceBuffer,
  DeviceLimits,
  GpuEncoderLike,
  Graph,
  HostArray,
  ModuleText,
  NativeRange,
  Stream,
} from '../device.ts'
import {
  checkAlloc,
  checkBuffer,
  checkEntry,
  checkRange,
  checkRepeats,
  checkTarget,
  entryOf,
  expectBuffer,
  expectCommands,
  expectData,
  expectLabel,
  expectModule,
  expectStream,
  failDisposed,
  type Owned,
} from '../device-checks.ts'
import { checkStream, InOrderDevice, InOrderStream, inOrderGraph } from '../in-order.ts'
import { CpuBuffer } from './buffer.ts'

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

export const CPU_FEATURES: ReadonlySet<string> = new Set(['f64'])

class CpuDevice extends InOrderDevice implements Device {
  readonly kind = 'cpu'
  readonly name = 'JavaScript'
  readonly limits = LIMITS
  readonly features = CPU_FEATURES
  protected readonly owner = this
  #disposed = false

  alloc(bytes: number, label: string): DeviceBuffer {
    expectLabel(label, 'a buffer')
    this.checkAlive(`alloc ${label}`)
    checkAlloc(bytes, label, this.limits)
    try {
      // Rounded up to 8 bytes, so that a view of any type covers the buffer.
      return new CpuBuffer(bytes, label, this, new ArrayBuffer(Math.ceil(bytes / 8) * 8))
    } catch {
      return failWith('device/out-of-memory', `no memory for the ${bytes} bytes of ${label}`, {
        hint: 'use a smaller size, or free buffers',
      })
    }
  }

  async wrap({ memory: own, offset, bytes }: NativeRange, label: string): Promise<DeviceBuffer> {
    expectLabel(label, 'a buffer')
    this.checkAlive(`wrap ${label}`)
    expectArgument(own instanceof ArrayBuffer, `the memory of ${label}`, own, 'an ArrayBuffer')
    const memory = own as ArrayBuffer
    checkAlloc(bytes, label, this.limits)
    if (
      !(
        Number.isSafeInteger(offset) &&
        offset >= 0 &&
        offset % 8 === 0 &&
        offset + bytes <= memory.byteLength
      )
    )
      failAs('device/range', {
        message: `${label} needs ${bytes} bytes from byte ${show(offset)} on, and the ArrayBuffer has ${memory.byteLength}`,
        expected: 'a range within the buffer that begins at a multiple of 8',
      })
    return new CpuBuffer(bytes, label, this, memory, offset)
  }

  native(buffer: DeviceBuffer): NativeRange {
    expectBuffer(buffer, 'native')
    const { memory, offset, bytes } = this.#resolve(buffer, 'native')
    return { memory, offset, bytes }
  }

  record(commands: readonly Command[], into: Stream | GpuEncoderLike): void {
    expectCommands(commands)
    expectStream(into as Stream)
    checkStream(into as Stream, this.order)
    this.check(commands, 'run')
    execute(commands)
    this.outcomes.markQueued(commands, into as Stream)
  }

  async upload(buffer: DeviceBuffer, data: HostArray, byteOffset = 0): Promise<void> {
    expectBuffer(buffer, 'an upload')
    expectData(data)
    const { memory, offset: start } = this.#resolve(buffer, `upload to ${buffer.label}`)
    checkRange(buffer, byteOffset, data.byteLength, 'uploading')
    forEachChunk(data.byteLength, (offset, n) =>
      new Uint8Array(memory, start + byteOffset + offset, n).set(
        new Uint8Array(data.buffer, data.byteOffset + offset, n),
      ),
    )
  }

  async download(buffer: DeviceBuffer, length?: number): Promise<ArrayBuffer> {
    expectBuffer(buffer, 'a download')
    const bytes = length ?? buffer.bytes
    const { memory, offset } = this.#resolve(buffer, `download from ${buffer.label}`)
    checkRange(buffer, 0, bytes, 'downloading')
    return memory.slice(offset, offset + bytes)
  }

  async compile(module: ModuleText): Promise<CompiledModule> {
    expectModule(module)
    this.checkAlive(`compile ${module.name}`)
    checkTarget(module, 'js')
    for (const entry of module.entries) checkEntry(module, entry, this.limits)
    return new CpuModule(module, this)
  }

  async run(commands: readonly Command[]): Promise<void> {
    expectCommands(commands)
    this.check(commands, 'run')
    execute(commands)
    await this.outcomes.settleCompleted(commands)
  }

  async time(commands: readonly Command[], repeats: number, between?: Graph): Promise<number[]> {
    checkRepeats(repeats, between)
    expectCommands(commands)
    this.check(commands, 'run')
    const times = this.#times(commands, repeats, between)
    await this.outcomes.settleCompleted(commands)
    return times
  }

  #times(commands: readonly Command[], repeats: number, between?: Graph): number[] {
    const main = new InOrderStream('of run', this.order)
    return Array.from({ length: repeats }, () => {
      between?.launch(main)
      const start = performance.now()
      execute(commands)
      return performance.now() - start
    })
  }

  async graph(commands: readonly Command[]): Promise<Graph> {
    expectCommands(commands)
    this.check(commands, 'run')
    const recorded = [...commands]
    const graph = inOrderGraph(this.order, {
      check: () => this.check(recorded, 'run'),
      replay: () => execute(recorded),
      time: async (repeats, between) => this.#times(recorded, repeats, between),
      free: () => {},
    })
    return this.outcomes.graph(graph, recorded)
  }

  async dispose(): Promise<void> {
    this.#disposed = true
  }

  protected checkAlive(call: string): void {
    if (this.#disposed) failDisposed(this.name, call)
  }

  protected async now(): Promise<bigint> {
    return BigInt(Math.round(performance.now() * 1e6))
  }

  /** Commands run when they are queued, so nothing is in flight. */
  protected async waitIdle(): Promise<void> {}

  #resolve(buffer: DeviceBuffer, call: string): CpuBuffer {
    this.checkAlive(call)
    checkBuffer(buffer, this, call)
    return buffer as CpuBuffer
  }
}

type Fn = (...args: (HostArray | number | boolean)[]) => void

class CpuModule implements CompiledModule, Owned {
  readonly functions: Readonly<Record<string, Fn>>
  freed = false

  constructor(
    readonly text: ModuleText,
    readonly owner: object,
  ) {
    this.functions = functionsOf(text)
  }

  release(): void {
    this.freed = true
  }
}

/** Splits a range of bytes, because a `Uint8Array` is limited to 4 GiB and an `ArrayBuffer` may be larger. */
function forEachChunk(bytes: number, use: (offset: number, length: number) => void): void {
  for (let at = 0; at < bytes; at += CHUNK_BYTES) use(at, Math.min(CHUNK_BYTES, bytes - at))
}
const CHUNK_BYTES = 2 ** 30

function functionsOf(module: ModuleText): Readonly<Record<string, Fn>> {
  const text = `"use strict";\n${module.text.replace(/^export /gm, '')}\nreturn { ${module.entries.map((e) => e.name).join(', ')} };`
  try {
    return new Function(text)() as Record<string, Fn>
  } catch (error) {
    return failAs('device/compile', {
      message: `the emitted JavaScript of ${module.name} does not compile: ${error instanceof Error ? error.message : String(error)}`,
      hint:
        error instanceof EvalError
          ? 'the page forbids `new Function`: allow unsafe-eval, or import the emitted module'
          : 'this is a bug of sparsetile; please report the kernel',
    })
  }
}

/** Runs checked commands. */
function execute(commands: readonly Command[]): void {
  for (const c of commands) {
    if (c.kind === 'clear') {
      const { memory, offset: start, bytes } = c.buffer as CpuBuffer
      forEachChunk(bytes, (offset, n) => new Uint8Array(memory, start + offset, n).fill(0))
      continue
    }
    const module = c.module as CpuModule
    const args = entryOf(c).args.map((spec, k) => {
      const value = c.args[k]
      if (spec.kind === 'buffer') return (value as CpuBuffer).view(spec.dtype)
      return spec.dtype === 'bool' ? value !== 0 : (value as number)
    })
    module.functions[c.entry]!(...args)
  }
}
