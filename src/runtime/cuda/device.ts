/**
 * A CUDA device: one context, one stream. Element types are stored as they are on the host, bool as a byte, so
 * uploads and downloads move bits unchanged.
 *
 * Work is queued when a method is called, in the order of the calls; a promise resolves when its work is done.
 * A device belongs to the thread that created it.
 */
import { setImmediate, setTimeout } from 'node:timers/promises'
import { fail, SptError } from '../../ast/diagnostic.ts'
import type {
  Command,
  CompiledModule,
  Device,
  DeviceBuffer,
  DeviceLimits,
  HostArray,
  ModuleText,
} from '../device.ts'
import { ArgumentBlock, MAX_ARGUMENTS, packArguments } from './arguments.ts'
import { type Chip, chipFeatures, chipLimits } from './chip.ts'
import type { KernelCompiler } from './compiler.ts'
import { type CudaDriver, callError, check, type DriverCalls, type Handle } from './driver.ts'
import { CUDA, CudaCallError, callFailed, faulted, isSticky, outOfMemory } from './errors.ts'
import { CudaBuffer, CudaMemory, checkRange } from './memory.ts'
import { CudaModule } from './module.ts'

const STREAM_NON_BLOCKING = 1
/** Waiting polls without a pause for this long, then between events, then every millisecond. */
const SPIN_MS = 0.2
const YIELD_MS = 20
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
  readonly #parts: CudaDeviceParts
  readonly #driver: CudaDriver
  readonly #calls: DriverCalls
  readonly #memory: CudaMemory
  readonly #block: ArgumentBlock
  readonly #modules = new Set<CudaModule>()
  readonly #context: Handle
  readonly #stream: Handle
  #events: Handle[] = []
  /** Kernels queued since the stream was last seen idle: the suspects of a fault. */
  #inFlight: string[] = []
  #lost: string | undefined
  #disposed = false

  constructor(parts: CudaDeviceParts) {
    const { driver, chip } = parts
    this.#parts = parts
    this.#driver = driver
    this.#calls = driver.calls
    this.chip = chip
    this.name = chip.name
    this.limits = chipLimits(chip, MAX_ARGUMENTS)
    this.features = chipFeatures(chip)
    this.#memory = new CudaMemory(driver, chip.memoryBytes)
    this.#block = new ArgumentBlock((slots) => driver.addressOf(slots))
    const out = new BigUint64Array(1)
    this.#check('cuDevicePrimaryCtxRetain', this.#calls.cuDevicePrimaryCtxRetain(out, chip.device))
    this.#context = out[0]!
    try {
      this.#check('cuCtxSetCurrent', this.#calls.cuCtxSetCurrent(this.#context))
      this.#check('cuStreamCreate', this.#calls.cuStreamCreate(out, STREAM_NON_BLOCKING))
    } catch (error) {
      this.#calls.cuDevicePrimaryCtxRelease_v2(chip.device)
      throw error
    }
    this.#stream = out[0]!
  }

  alloc(bytes: number, label: string): DeviceBuffer {
    return this.#guard('allocating', () => {
      this.#enter()
      return this.#memory.alloc(bytes, label, (buffer) => this.#free(buffer))
    })
  }

  async upload(buffer: DeviceBuffer, data: HostArray, byteOffset = 0): Promise<void> {
    const during = `uploading to '${buffer.label}'`
    this.#guard(during, () => {
      this.#enter()
      const own = this.#own(buffer)
      checkRange(own, byteOffset, data.byteLength, 'upload')
      if (data.byteLength === 0) return
      const to = own.address + BigInt(byteOffset)
      this.#check(
        'cuMemcpyHtoDAsync_v2',
        this.#calls.cuMemcpyHtoDAsync_v2(to, data, data.byteLength, this.#stream),
      )
    })
    await this.#idle(during)
  }

  async download(buffer: DeviceBuffer, bytes: number = buffer.bytes): Promise<ArrayBuffer> {
    const during = `downloading '${buffer.label}'`
    const result = this.#guard(during, () => {
      this.#enter()
      const own = this.#own(buffer)
      checkRange(own, 0, bytes, 'download')
      const host = hostBlock(bytes, buffer.label)
      if (bytes > 0) {
        this.#check(
          'cuMemcpyDtoHAsync_v2',
          this.#calls.cuMemcpyDtoHAsync_v2(host, own.address, bytes, this.#stream),
        )
      }
      return host
    })
    await this.#idle(during)
    return result
  }

  async compile(module: ModuleText): Promise<CompiledModule> {
    if (module.target !== 'cuda') {
      fail({
        code: 'device/wrong-target',
        message: `module '${module.name}' is printed for ${module.target}`,
        expected: 'a module printed for cuda',
      })
    }
    this.#enter()
    const during = `loading module '${module.name}'`
    const load = (image: { readonly bytes: Uint8Array; readonly cached: boolean }): CudaModule => {
      this.#enter()
      const loaded = new CudaModule(this.#driver, this.chip, module, image, (m) => this.#unload(m))
      this.#modules.add(loaded)
      return loaded
    }
    const image = await this.#parts.compiler.image(module)
    if (!image.cached) return this.#guard(during, () => load(image))
    try {
      return load(image)
    } catch (error) {
      if (!(error instanceof CudaCallError) || isSticky(error.code)) throw this.#translate(error, during)
      // What was cached is whole but not what this driver takes: compile anew, once.
      const fresh = await this.#parts.compiler.image(module, true)
      return this.#guard(during, () => load(fresh))
    }
  }

  async run(commands: readonly Command[]): Promise<void> {
    try {
      this.#guard('running', () => {
        this.#enter()
        for (const command of commands) this.#issue(command)
      })
    } catch (error) {
      // What was queued before the refused command still runs; its own fault would come first.
      if (!this.#lost && !this.#disposed) await this.#idle('running')
      throw error
    }
    await this.#idle('running')
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
      const count = Math.min(MAX_TIMED, repeats - times.length)
      const events = this.#takeEvents(2 * count)
      try {
        this.#guard('timing', () => {
          this.#enter()
          for (let i = 0; i < count; i++) {
            this.#check('cuEventRecord', this.#calls.cuEventRecord(events[2 * i]!, this.#stream))
            for (const command of commands) this.#issue(command)
            this.#check('cuEventRecord', this.#calls.cuEventRecord(events[2 * i + 1]!, this.#stream))
          }
        })
        await this.#idle('timing')
        const out = new Float32Array(1)
        this.#guard('timing', () => {
          this.#enter()
          for (let i = 0; i < count; i++) {
            const code = this.#calls.cuEventElapsedTime(out, events[2 * i]!, events[2 * i + 1]!)
            this.#check('cuEventElapsedTime', code)
            times.push(out[0]!)
          }
        })
      } finally {
        this.#events.push(...events)
      }
    }
    return times
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return
    this.#disposed = true
    const { chip } = this.#parts
    this.#calls.cuCtxSetCurrent(this.#context)
    // After a fault these calls only return its code again; releasing the context still has to happen.
    this.#calls.cuStreamSynchronize(this.#stream)
    for (const event of this.#events) this.#calls.cuEventDestroy_v2(event)
    for (const module of this.#modules) {
      module.released = true
      this.#calls.cuModuleUnload(module.handle)
    }
    for (const buffer of [...this.#memory.live]) this.#memory.free(buffer)
    this.#events = []
    this.#modules.clear()
    this.#calls.cuStreamDestroy_v2(this.#stream)
    this.#calls.cuDevicePrimaryCtxRelease_v2(chip.device)
  }

  /** Refuses to go on where the device is gone, and makes its context current. */
  #enter(): void {
    if (this.#disposed) {
      fail({ code: 'device/disposed', message: `the device ${this.name} was disposed of` })
    }
    if (this.#lost) {
      fail({
        code: 'device/lost',
        message: `the device ${this.name} cannot be used any more after a fault: ${this.#lost}`,
        hint: 'start a new process; CUDA refuses all work in one where a kernel has faulted',
      })
    }
    this.#check('cuCtxSetCurrent', this.#calls.cuCtxSetCurrent(this.#context))
  }

  #check(call: keyof DriverCalls, code: number): void {
    check(this.#driver, call, code)
  }

  #guard<T>(during: string, body: () => T): T {
    try {
      return body()
    } catch (error) {
      throw this.#translate(error, during)
    }
  }

  /** What a caller sees of a failed driver call. */
  #translate(error: unknown, during: string, exactly?: string): unknown {
    if (!(error instanceof CudaCallError)) return error
    if (isSticky(error.code)) {
      const kernels = exactly === undefined ? this.#inFlight : [exactly]
      const fault = faulted(error, kernels, exactly !== undefined)
      this.#lost = fault.diagnostics[0]!.message
      return fault
    }
    if (error.code === CUDA.OUT_OF_MEMORY) return outOfMemory(this.#memory.state(0, during))
    return callFailed(error, during)
  }

  #own(buffer: DeviceBuffer): CudaBuffer {
    if (!(buffer instanceof CudaBuffer) || (!buffer.freed && !this.#memory.live.has(buffer))) {
      fail({
        code: 'device/foreign-buffer',
        message: `buffer '${buffer.label}' was not allocated on this device`,
        expected: `a buffer of ${this.name}`,
      })
    }
    if (buffer.freed) {
      fail({ code: 'device/buffer-freed', message: `buffer '${buffer.label}' was freed before this use` })
    }
    return buffer
  }

  #issue(command: Command): void {
    if (command.kind === 'clear') {
      const { address, bytes } = this.#own(command.buffer)
      if (bytes === 0) return
      this.#check('cuMemsetD8Async', this.#calls.cuMemsetD8Async(address, 0, bytes, this.#stream))
      return
    }
    const { module, grid } = command
    if (!(module instanceof CudaModule) || !this.#modules.has(module)) {
      fail({
        code: 'device/foreign-module',
        message: `the module of kernel '${command.entry}' was ${module instanceof CudaModule && module.released ? 'released' : 'not compiled on this device'}`,
      })
    }
    const loaded = module.entries.get(command.entry)
    if (!loaded) {
      fail({
        code: 'device/no-entry',
        message: `module '${module.text.name}' has no kernel '${command.entry}'`,
        lookup: { name: command.entry, candidates: [...module.entries.keys()] },
      })
    }
    const { entry, fn } = loaded
    this.#checkGrid(entry.name, grid)
    packArguments(this.#block, entry, command.args, (value) => this.#own(value).address)
    const code = this.#calls.cuLaunchKernel(
      fn,
      ...grid,
      ...entry.block,
      entry.sharedBytes,
      this.#stream,
      this.#block.pointers,
      null,
    )
    if (code !== CUDA.SUCCESS) {
      throw this.#translate(
        callError(this.#driver, 'cuLaunchKernel', code),
        `launching kernel '${entry.name}'`,
      )
    }
    if (this.#parts.syncEachLaunch) {
      const end = this.#calls.cuStreamSynchronize(this.#stream)
      if (end !== CUDA.SUCCESS) {
        const error = callError(this.#driver, 'cuStreamSynchronize', end)
        throw this.#translate(error, `running kernel '${entry.name}'`, entry.name)
      }
    } else this.#inFlight.push(entry.name)
  }

  #checkGrid(kernel: string, grid: readonly [number, number, number]): void {
    const { maxGridDim } = this.limits
    for (let d = 0; d < 3; d++) {
      const n = grid[d]!
      if (Number.isInteger(n) && n >= 1 && n <= maxGridDim[d]!) continue
      fail({
        code: 'device/bad-grid',
        message: `kernel '${kernel}' cannot be launched with a grid of ${grid.join(' x ')} blocks`,
        expected: `whole numbers from 1 to ${maxGridDim.join(', ')}`,
      })
    }
  }

  /** Resolves when the stream has nothing left to do. */
  async #idle(during: string): Promise<void> {
    const start = performance.now()
    for (;;) {
      // Disposing has waited for the stream itself.
      if (this.#disposed) return
      const done = this.#guard(during, () => {
        this.#enter()
        const code = this.#calls.cuStreamQuery(this.#stream)
        if (code === CUDA.NOT_READY) return false
        this.#check('cuStreamQuery', code)
        return true
      })
      if (done) {
        this.#inFlight = []
        return
      }
      const waited = performance.now() - start
      if (waited > YIELD_MS) await setTimeout(1)
      else if (waited > SPIN_MS) await setImmediate()
    }
  }

  #takeEvents(count: number): Handle[] {
    return this.#guard('timing', () => {
      this.#enter()
      const out = new BigUint64Array(1)
      while (this.#events.length < count) {
        this.#check('cuEventCreate', this.#calls.cuEventCreate(out, 0))
        this.#events.push(out[0]!)
      }
      return this.#events.splice(0, count)
    })
  }

  #free(buffer: CudaBuffer): void {
    if (this.#disposed || this.#lost) {
      buffer.freed = true
      return
    }
    this.#guard(`freeing '${buffer.label}'`, () => {
      this.#enter()
      this.#drain()
      this.#check('cuMemFree_v2', this.#memory.free(buffer))
    })
  }

  #unload(module: CudaModule): void {
    module.released = true
    this.#modules.delete(module)
    if (this.#disposed || this.#lost) return
    this.#guard(`releasing module '${module.text.name}'`, () => {
      this.#enter()
      this.#drain()
      this.#check('cuModuleUnload', this.#calls.cuModuleUnload(module.handle))
    })
  }

  /** Before memory or code is taken away, what may still use it has to end. */
  #drain(): void {
    if (this.#inFlight.length === 0) return
    this.#check('cuStreamSynchronize', this.#calls.cuStreamSynchronize(this.#stream))
    this.#inFlight = []
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
