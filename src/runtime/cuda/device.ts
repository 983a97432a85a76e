/**
 * A CUDA device: one context, one stream. Element types are stored as they are on the host, bool as a byte, so
 * uploads and downloads move bits unchanged.
 *
 * Work is queued when a method is called, in the order of the calls; a promise resolves when its work is done.
 * A device belongs to the thread that created it.
 */
import { fail, SptError } from '../../ast/diagnostic.ts'
import type { Command, Device, DeviceBuffer, DeviceLimits, HostArray, ModuleText } from '../device.ts'
import { ArgumentBlock, MAX_ARGUMENTS, packArguments } from './arguments.ts'
import { type Chip, chipFeatures, chipLimits } from './chip.ts'
import type { Image, KernelCompiler } from './compiler.ts'
import { CudaContext } from './context.ts'
import { type CudaDriver, callError, type DriverCalls, type Handle } from './driver.ts'
import { CUDA, CudaCallError, isSticky } from './errors.ts'
import { CudaBuffer, CudaMemory, checkRange } from './memory.ts'
import { CudaModule } from './module.ts'

/** Pairs of timing events in use at once. */
const MAX_TIMED = 128

export interface CudaDeviceParts {
  readonly driver: CudaDriver
  readonly chip: Chip & { readonly device: number }
  readonly compiler: KernelCompiler
  /** Wait after each launch, so that a fault names its kernel exactly. */
  readonly syncEachLaunch: boolean
}

export class CudaDevice implements Device {
  readonly kind = 'cuda'
  readonly name: string
  readonly limits: DeviceLimits
  readonly features: ReadonlySet<string>
  readonly chip: Chip
  readonly #context: CudaContext
  readonly #calls: DriverCalls
  readonly #compiler: KernelCompiler
  readonly #syncEachLaunch: boolean
  readonly #memory: CudaMemory
  readonly #block: ArgumentBlock
  readonly #modules = new Set<CudaModule>()
  readonly #events: Handle[] = []

  constructor(parts: CudaDeviceParts) {
    const { driver, chip } = parts
    this.chip = chip
    this.name = chip.name
    this.limits = chipLimits(chip, MAX_ARGUMENTS)
    this.features = chipFeatures(chip)
    this.#compiler = parts.compiler
    this.#syncEachLaunch = parts.syncEachLaunch
    this.#memory = new CudaMemory(driver, chip.memoryBytes)
    this.#block = new ArgumentBlock((slots) => driver.addressOf(slots))
    this.#context = new CudaContext(driver, chip, (asked, label) => this.#memory.state(asked, label))
    this.#calls = driver.calls
  }

  alloc(bytes: number, label: string): DeviceBuffer {
    return this.#context.within(`allocating '${label}'`, () =>
      this.#memory.alloc(bytes, label, (buffer) => this.#free(buffer)),
    )
  }

  async upload(buffer: DeviceBuffer, data: HostArray, byteOffset = 0): Promise<void> {
    const during = `uploading to '${buffer.label}'`
    const { stream } = this.#context
    this.#context.within(during, () => {
      const own = this.#own(buffer)
      const bytes = data.byteLength
      checkRange(own, byteOffset, bytes, 'upload')
      if (bytes === 0) return
      const code = this.#calls.cuMemcpyHtoDAsync_v2(own.address + BigInt(byteOffset), data, bytes, stream)
      this.#context.check('cuMemcpyHtoDAsync_v2', code)
    })
    await this.#context.idle(during)
  }

  async download(buffer: DeviceBuffer, bytes: number = buffer.bytes): Promise<ArrayBuffer> {
    const during = `downloading '${buffer.label}'`
    const { stream } = this.#context
    const result = this.#context.within(during, () => {
      const own = this.#own(buffer)
      checkRange(own, 0, bytes, 'download')
      const host = hostBlock(bytes, buffer.label)
      if (bytes === 0) return host
      const code = this.#calls.cuMemcpyDtoHAsync_v2(host, own.address, bytes, stream)
      this.#context.check('cuMemcpyDtoHAsync_v2', code)
      return host
    })
    await this.#context.idle(during)
    return result
  }

  async compile(module: ModuleText): Promise<CudaModule> {
    if (module.target !== 'cuda') {
      fail({
        code: 'device/wrong-target',
        message: `module '${module.name}' is printed for ${module.target}`,
        expected: 'a module printed for cuda',
      })
    }
    const during = `loading module '${module.name}'`
    this.#context.within(during, () => {})
    const image = await this.#compiler.image(module)
    try {
      return this.#load(module, image)
    } catch (error) {
      const stale = image.cached && error instanceof CudaCallError && !isSticky(error.code)
      if (!stale) throw this.#context.translate(error, during)
      // What was cached is whole but not what this driver takes: compile anew, once.
      const fresh = await this.#compiler.image(module, true)
      return this.#context.within(during, () => this.#load(module, fresh))
    }
  }

  async run(commands: readonly Command[]): Promise<void> {
    try {
      this.#context.within('running', () => {
        for (const command of commands) this.#issue(command)
      })
    } catch (error) {
      // What was queued before the refused command still runs; its own fault is the graver news.
      if (this.#context.usable) await this.#context.idle('running')
      throw error
    }
    await this.#context.idle('running')
  }

  async time(commands: readonly Command[], repeats: number): Promise<number[]> {
    if (!Number.isSafeInteger(repeats) || repeats < 1) {
      fail({
        code: 'device/bad-argument',
        message: `cannot time ${repeats} repeats`,
        expected: 'a whole number, 1 or more',
      })
    }
    const times: number[] = []
    while (times.length < repeats) {
      times.push(...(await this.#timeSome(commands, Math.min(MAX_TIMED, repeats - times.length))))
    }
    return times
  }

  async dispose(): Promise<void> {
    this.#context.dispose(() => {
      for (const event of this.#events) this.#calls.cuEventDestroy_v2(event)
      for (const module of this.#modules) {
        module.released = true
        this.#calls.cuModuleUnload(module.handle)
      }
      for (const buffer of [...this.#memory.live]) this.#memory.free(buffer)
      this.#events.length = 0
      this.#modules.clear()
    })
  }

  #load(module: ModuleText, image: Image): CudaModule {
    this.#context.enter()
    const { driver } = this.#context
    const loaded = new CudaModule(driver, this.chip, module, image, (m) => this.#unload(m))
    this.#modules.add(loaded)
    return loaded
  }

  async #timeSome(commands: readonly Command[], count: number): Promise<number[]> {
    const events = this.#takeEvents(2 * count)
    const { stream } = this.#context
    const record = (event: Handle): void =>
      this.#context.check('cuEventRecord', this.#calls.cuEventRecord(event, stream))
    try {
      this.#context.within('timing', () => {
        for (let i = 0; i < count; i++) {
          record(events[2 * i]!)
          for (const command of commands) this.#issue(command)
          record(events[2 * i + 1]!)
        }
      })
      await this.#context.idle('timing')
      return this.#context.within('timing', () =>
        Array.from({ length: count }, (_, i) => {
          const out = new Float32Array(1)
          const code = this.#calls.cuEventElapsedTime(out, events[2 * i]!, events[2 * i + 1]!)
          this.#context.check('cuEventElapsedTime', code)
          return out[0]!
        }),
      )
    } finally {
      this.#events.push(...events)
    }
  }

  #takeEvents(count: number): Handle[] {
    return this.#context.within('timing', () => {
      const out = new BigUint64Array(1)
      while (this.#events.length < count) {
        this.#context.check('cuEventCreate', this.#calls.cuEventCreate(out, 0))
        this.#events.push(out[0]!)
      }
      return this.#events.splice(0, count)
    })
  }

  #own(buffer: DeviceBuffer): CudaBuffer {
    if (buffer instanceof CudaBuffer && this.#memory.live.has(buffer)) return buffer
    if (buffer instanceof CudaBuffer && buffer.freed) {
      fail({ code: 'device/buffer-freed', message: `buffer '${buffer.label}' was freed before this use` })
    }
    fail({
      code: 'device/foreign-buffer',
      message: `buffer '${buffer.label}' was not allocated on this device`,
      expected: `a buffer of ${this.name}`,
    })
  }

  #issue(command: Command): void {
    const { stream } = this.#context
    if (command.kind === 'clear') {
      const { address, bytes } = this.#own(command.buffer)
      if (bytes === 0) return
      this.#context.check('cuMemsetD8Async', this.#calls.cuMemsetD8Async(address, 0, bytes, stream))
      return
    }
    const { entry, fn } = this.#entry(command)
    this.#checkGrid(entry.name, command.grid)
    packArguments(this.#block, entry, command.args, (value) => this.#own(value).address)
    const [x, y, z] = command.grid
    const [bx, by, bz] = entry.block
    const { pointers } = this.#block
    const shared = entry.sharedBytes
    const code = this.#calls.cuLaunchKernel(fn, x, y, z, bx, by, bz, shared, stream, pointers, null)
    if (code !== CUDA.SUCCESS) {
      const error = callError(this.#context.driver, 'cuLaunchKernel', code)
      throw this.#context.translate(error, `launching kernel '${entry.name}'`)
    }
    this.#context.launched(entry.name, this.#syncEachLaunch)
  }

  #entry(command: Extract<Command, { kind: 'launch' }>) {
    const { module } = command
    if (!(module instanceof CudaModule) || !this.#modules.has(module)) {
      const gone = module instanceof CudaModule && module.released
      fail({
        code: 'device/foreign-module',
        message: `the module of kernel '${command.entry}' was ${gone ? 'released' : 'not compiled on this device'}`,
      })
    }
    const loaded = module.entries.get(command.entry)
    if (loaded) return loaded
    fail({
      code: 'device/no-entry',
      message: `module '${module.text.name}' has no kernel '${command.entry}'`,
      lookup: { name: command.entry, candidates: [...module.entries.keys()] },
    })
  }

  #checkGrid(kernel: string, grid: readonly [number, number, number]): void {
    const { maxGridDim } = this.limits
    if (grid.every((n, d) => Number.isInteger(n) && n >= 1 && n <= maxGridDim[d]!)) return
    fail({
      code: 'device/bad-grid',
      message: `kernel '${kernel}' cannot be launched with a grid of ${grid.join(' x ')} blocks`,
      expected: `whole numbers from 1 to ${maxGridDim.join(', ')}`,
    })
  }

  #free(buffer: CudaBuffer): void {
    if (!this.#context.usable) {
      buffer.freed = true
      return
    }
    this.#context.within(`freeing '${buffer.label}'`, () => {
      this.#context.drain()
      this.#context.check('cuMemFree_v2', this.#memory.free(buffer))
    })
  }

  #unload(module: CudaModule): void {
    module.released = true
    this.#modules.delete(module)
    if (!this.#context.usable) return
    this.#context.within(`releasing module '${module.text.name}'`, () => {
      this.#context.drain()
      this.#context.check('cuModuleUnload', this.#calls.cuModuleUnload(module.handle))
    })
  }
}

function hostBlock(bytes: number, label: string): ArrayBuffer {
  try {
    return new ArrayBuffer(bytes)
  } catch {
    throw new SptError({
      code: 'device/out-of-memory',
      message: `no host memory for the ${bytes} bytes of '${label}'`,
      hint: 'download a part of the buffer, or use a machine with more memory',
    })
  }
}
