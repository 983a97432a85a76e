/**
 * A CUDA device: one context, a main queue for calls that wait, and additional streams. Elements are stored as on the host
 * (bool as a byte), so transfers copy bits unchanged.
 *
 * Work is queued in the order of the calls, when a method is called. A promise resolves when its work is done. A device belongs
 * to the thread that created it.
 */

import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument, nameText } from '../../ast/diagnostics/expect-argument.ts'
import type {
  Command,
  Device,
  DeviceBuffer,
  DeviceLimits,
  GpuEncoderLike,
  Graph,
  HostArray,
  Library,
  LibraryText,
  ModuleText,
  NativeRange,
  Stream,
} from '../device.ts'
import {
  checkRange,
  checkRepeats,
  disposedDevices,
  expectBuffer,
  expectCommands,
  expectData,
  expectLabel,
  expectModule,
  expectStream,
} from '../device-checks.ts'
import { ASYNC_DISPOSE } from '../dispose.ts'
import { failForeign } from '../in-order.ts'
import { Outcomes } from '../outcomes.ts'
import { type Chip, chipFeatures, chipLimits } from './chip.ts'
import type { KernelCompiler } from './compiler.ts'
import { CudaContext } from './context.ts'
import type { CudaDriver } from './driver.ts'
import type { Ffi } from './ffi.ts'
import { CudaGraph, type GraphHost } from './graph.ts'
import { Launcher } from './launch.ts'
import type { Machine } from './libraries.ts'
import { CudaLibrary } from './library-call.ts'
import { allocHost, type CudaBuffer, CudaMemory, FILL } from './memory.ts'
import { type CudaModule, CudaModules, checkRequirements } from './module.ts'
import { MAX_ARGUMENTS } from './pack-arguments.ts'
import { CudaEvent, CudaStream, type Timer, timerOn } from './stream.ts'

export interface CudaDeviceParts {
  readonly driver: CudaDriver
  readonly chip: Chip & { readonly device: number }
  readonly compiler: KernelCompiler
  /** Versions of the driver and of NVRTC. */
  readonly versions: string
  /** Wait after each launch, so that a fault names its kernel exactly. */
  readonly syncEachLaunch: boolean
  /** Allows launches that wait for their predecessor themselves to begin before it has finished. */
  readonly overlap: boolean
  /** Loader of vendor libraries; without it the device has none. */
  readonly libraries?: { readonly ffi: Pick<Ffi, 'load'>; readonly machine: Machine } | undefined
}

export class CudaDevice implements Device {
  readonly kind = 'cuda'
  readonly name: string
  readonly driver: string
  readonly limits: DeviceLimits
  readonly features: ReadonlySet<string>
  readonly chip: Chip
  readonly #context: CudaContext
  readonly #memory: CudaMemory
  readonly #launcher: Launcher
  readonly #graphs: GraphHost
  readonly #modules: CudaModules
  readonly #events = new Set<CudaEvent>()
  readonly #outcomes = new Outcomes()
  #fillCompilation: Promise<void> | undefined
  readonly #timer: Timer
  readonly #libraries: CudaDeviceParts['libraries']
  readonly #openLibraries = new Map<LibraryText, CudaLibrary>()

  constructor(parts: CudaDeviceParts) {
    const { driver, chip } = parts
    this.chip = chip
    this.name = chip.name
    this.driver = parts.versions
    this.limits = chipLimits(chip, MAX_ARGUMENTS)
    this.features = chipFeatures(chip)
    this.#libraries = parts.libraries
    this.#memory = new CudaMemory(driver, this.limits, chip.device)
    this.#context = new CudaContext(driver, chip, (requested, label) => this.#memory.state(requested, label))
    this.#timer = timerOn(this.#context)
    this.#modules = new CudaModules(this.#context, chip, parts.compiler)
    this.#launcher = new Launcher(this.#context, this.#memory, parts.overlap && !parts.syncEachLaunch)
    this.#graphs = {
      context: this.#context,
      memory: this.#memory,
      launcher: this.#launcher,
      waitForEach: parts.syncEachLaunch,
      graphs: new Set(),
      main: new CudaStream(this.#context, 'of run', this.#context.main, this.#outcomes),
      queueOf: (stream) => this.#checkStream(stream).queue,
    }
  }

  alloc(bytes: number, label: string): DeviceBuffer {
    expectLabel(label, 'a buffer')
    return this.#context.inContext(`allocating '${label}'`, () =>
      this.#memory.alloc(bytes, label, (buffer) => this.#free(buffer)),
    )
  }

  async wrap(range: NativeRange, label: string): Promise<DeviceBuffer> {
    expectLabel(label, 'a buffer')
    return this.#context.inContext(`wrapping '${label}'`, () =>
      this.#memory.wrap(range, label, (buffer) => this.#free(buffer)),
    )
  }

  native(handle: DeviceBuffer): NativeRange {
    expectBuffer(handle, 'native')
    const { address, bytes } = this.#memory.resolve(handle, 'native')
    return { memory: address, offset: 0, bytes }
  }

  async upload(buffer: DeviceBuffer, data: HostArray, byteOffset = 0): Promise<void> {
    expectBuffer(buffer, 'an upload')
    expectData(data)
    const action = `uploading to '${buffer.label}'`
    const { main } = this.#context
    this.#context.inContext(action, () => {
      const target = this.#memory.resolve(buffer, action)
      const bytes = data.byteLength
      checkRange(target, byteOffset, bytes, 'uploading')
      if (bytes === 0) return
      this.#context.join()
      const address = target.address + BigInt(byteOffset)
      this.#context.call('cuMemcpyHtoDAsync_v2', address, data, bytes, main.handle)
    })
    await this.#context.waitIdle(action, main)
  }

  async download(buffer: DeviceBuffer, length?: number): Promise<ArrayBuffer> {
    expectBuffer(buffer, 'a download')
    const bytes = length ?? buffer.bytes
    const action = `downloading '${buffer.label}'`
    const { main } = this.#context
    const result = this.#context.inContext(action, () => {
      const target = this.#memory.resolve(buffer, action)
      checkRange(target, 0, bytes, 'downloading')
      const host = allocHost(bytes, buffer.label)
      if (bytes === 0) return host
      this.#context.join()
      this.#context.call('cuMemcpyDtoHAsync_v2', host, target.address, bytes, main.handle)
      return host
    })
    await this.#context.waitIdle(action, main)
    return result
  }

  async compile(module: ModuleText): Promise<CudaModule> {
    expectModule(module)
    checkRequirements(module, this.chip)
    if (this.#launcher.overlap && module.entries.some((e) => e.waits)) {
      this.#fillCompilation ??= this.#modules.compile(FILL).then((fill) => void (this.#launcher.fill = fill))
      await this.#fillCompilation
    }
    return this.#modules.compile(module)
  }

  library(text: LibraryText): Library {
    const cached = this.#openLibraries.get(text)
    if (cached) return cached
    const { ffi, machine } =
      this.#libraries ??
      failWith('device/no-library', `${this.name} was opened without libraries`, {
        hint: 'open the device with devices.cuda()',
      })
    const library = this.#context.inContext(`opening ${text.name}`, () => {
      const host = {
        context: this.#context,
        memory: this.#memory,
        alloc: (bytes: number, label: string) => this.alloc(bytes, label),
      }
      return new CudaLibrary(host, ffi, machine, text)
    })
    this.#openLibraries.set(text, library)
    return library
  }

  async run(commands: readonly Command[]): Promise<void> {
    expectCommands(commands)
    const { main } = this.#context
    try {
      this.#context.inContext('running', () => {
        this.#context.join()
        this.#launcher.queue(commands, main, this.#graphs.waitForEach)
      })
    } catch (error) {
      // Commands queued before the rejected one still run. A fault of these is reported instead.
      if (this.#context.isUsable) await this.#context.waitIdle('running', main)
      throw error
    }
    await this.#context.waitIdle('running', main)
    await this.#outcomes.settleCompleted(commands)
  }

  async time(commands: readonly Command[], repeats: number, between?: Graph): Promise<number[]> {
    checkRepeats(repeats, between, 1)
    expectCommands(commands)
    const { main } = this.#context
    const times = await this.#timer.time(
      repeats,
      () => this.#launcher.queue(commands, main, this.#graphs.waitForEach),
      () => between?.launch(this.#graphs.main),
    )
    await this.#outcomes.settleCompleted(commands)
    return times
  }

  record(commands: readonly Command[], into: Stream | GpuEncoderLike): void {
    expectCommands(commands)
    const stream = this.#checkStream(into as Stream)
    this.#context.inContext(`recording on ${stream.label}`, () =>
      this.#launcher.queue(commands, stream.queue, this.#graphs.waitForEach),
    )
    this.#outcomes.markQueued(commands, stream)
  }

  async graph(commands: readonly Command[]): Promise<Graph> {
    expectCommands(commands)
    const graph = this.#context.inContext('recording a graph', () => new CudaGraph(this.#graphs, commands))
    return this.#outcomes.graph(graph, commands)
  }

  stream(label: string, handle?: bigint): CudaStream {
    expectLabel(label, 'a stream')
    const isHandle = handle === undefined || (typeof handle === 'bigint' && handle >= 0n)
    expectArgument(isHandle, 'the handle of a stream', handle, 'a CUstream as a bigint')
    return this.#context.inContext(
      `opening the stream ${label}`,
      () => new CudaStream(this.#context, label, this.#context.openQueue(handle), this.#outcomes),
    )
  }

  event(): CudaEvent {
    return this.#context.inContext('making an event', () => new CudaEvent(this.#context, this.#events))
  }

  async finish(): Promise<void> {
    await this.#context.waitIdle('finishing')
    await this.#outcomes.settle()
  }

  async dispose(): Promise<void> {
    disposedDevices.add(this)
    this.#context.dispose(() => {
      for (const graph of [...this.#graphs.graphs]) graph.release()
      for (const event of [...this.#events]) event.release()
      this.#timer.release()
      this.#modules.release()
      for (const buffer of [...this.#memory.live]) this.#memory.free(buffer)
    })
  }

  [ASYNC_DISPOSE](): Promise<void> {
    return this.dispose()
  }

  #checkStream(stream: Stream): CudaStream {
    if (stream instanceof CudaStream && stream.context === this.#context) return stream
    expectStream(stream)
    return failForeign(`the stream ${nameText(stream.label)}`)
  }

  #free(buffer: CudaBuffer): void {
    buffer.freed = true
    this.#context.release(`freeing '${buffer.label}'`, () =>
      this.#context.check('cuMemFree_v2', this.#memory.free(buffer)),
    )
  }
}
