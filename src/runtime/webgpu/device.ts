/**
 * The WebGPU device, for browsers (`navigator.gpu`) and for Node (`node.ts` provides a `GPU`). Elements narrower than
 * 32 bits are stored as 32-bit words (`widened-elements.ts`), except f16 with `shader-f16`. There is no f64.
 */
import { SptError } from '../../ast/diagnostics/diagnostic.ts'
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
  checkRepeats,
  disposedDevices,
  expectBuffer,
  expectCommands,
  expectModule,
} from '../device-checks.ts'
import { checkStream, InOrderDevice, InOrderStream, inOrderGraph, isStream } from '../in-order.ts'
import type { GpuBuffer } from './buffer.ts'
import { expectEncoder } from './callers-buffer.ts'
import { type Launcher, launcherOn, type TimestampRange } from './launch.ts'
import { adapterName, capabilities, deviceLimits } from './limits.ts'
import { type Memory, memoryOn } from './memory.ts'
import { compileModule } from './module.ts'
import { firstLine, type GpuFailure, Session, validationError } from './session.ts'
import { clockOf, REPEATS_PER_CLOCK, readDeviceClock, timesOf } from './timing.ts'

export class WebGpuDevice extends InOrderDevice implements Device {
  readonly kind = 'webgpu'
  readonly storage = 'words'
  readonly name: string
  readonly driver: string
  readonly isSoftware: boolean
  readonly limits: DeviceLimits
  readonly features: ReadonlySet<string>
  protected readonly owner: Session
  readonly #memory: Memory
  readonly #launcher: Launcher

  constructor(device: GPUDevice, info: GPUAdapterInfo, lanes: number, isOwn: boolean) {
    super()
    const name = adapterName(info)
    this.name = name
    this.driver = info.description.trim()
    this.isSoftware = info.isFallbackAdapter
    this.limits = { ...deviceLimits(device.limits), lanes }
    this.features = capabilities(device.features, info, lanes)
    this.owner = new Session(device, name, isOwn)
    void device.lost.then(() => disposedDevices.add(this))
    this.#memory = memoryOn(this.owner, this.limits)
    this.#launcher = launcherOn(this.owner)
  }

  alloc(bytes: number, label: string): DeviceBuffer {
    return this.#memory.alloc(bytes, label)
  }

  wrap(range: NativeRange, label: string): Promise<DeviceBuffer> {
    return this.#memory.wrap(range, label)
  }

  native(handle: DeviceBuffer): NativeRange {
    expectBuffer(handle, 'native')
    const { gpu, offset, bytes } = this.#memory.resolve(handle, 'native')
    return { memory: gpu, offset, bytes }
  }

  record(commands: readonly Command[], into: Stream | GpuEncoderLike): void {
    expectCommands(commands)
    const call = describe(commands)
    this.check(commands, call)
    if (isStream(into)) {
      checkStream(into, this.order)
      this.owner.unawaited(() => this.#launcher.submit(commands))
      this.outcomes.markQueued(commands, into)
      return
    }
    expectEncoder(into)
    this.owner.unawaited(() => this.#launcher.recordInto(into, commands))
    this.outcomes.markRecorded(commands)
  }

  async upload(buffer: DeviceBuffer, data: HostArray, byteOffset?: number): Promise<void> {
    await this.#memory.upload(buffer, data, byteOffset)
  }

  async download(buffer: DeviceBuffer, bytes?: number): Promise<ArrayBuffer> {
    return this.#memory.download(buffer, bytes)
  }

  async compile(module: ModuleText): Promise<CompiledModule> {
    expectModule(module)
    return compileModule(this.owner, this.limits, module)
  }

  async run(commands: readonly Command[]): Promise<void> {
    expectCommands(commands)
    const call = describe(commands)
    // Without a wait, the caller may free buffers right after this call; the queue keeps them until the work is done.
    const unconfirmed = this.#check(commands, call)
    if (unconfirmed) await unconfirmed
    await this.#submitAndWait(commands, call, () => this.#launcher.submit(commands))
    await this.outcomes.settleCompleted(commands)
  }

  async time(commands: readonly Command[], repeats: number, between?: Graph): Promise<number[]> {
    expectCommands(commands)
    checkRepeats(repeats, between)
    await this.#check(commands, describe(commands))
    const times = await this.#time(
      commands,
      repeats,
      (stamps) => this.#launcher.submit(commands, stamps),
      between,
    )
    await this.outcomes.settleCompleted(commands)
    return times
  }

  async graph(commands: readonly Command[]): Promise<Graph> {
    expectCommands(commands)
    const recorded = [...commands]
    const call = describe(recorded)
    await this.#check(recorded, call)
    this.check(recorded, call)
    const { value, failure } = this.owner.scoped(() => this.#launcher.record(recorded))
    const error = await this.owner.wait(failure, call)
    if (error) throw submissionError(recorded, call, error)
    const graph = inOrderGraph(this.order, {
      check: () => this.check(recorded, call),
      replay: () => this.#launcher.replay(value),
      time: (repeats, between, use) => {
        const submit = (stamps?: TimestampRange): void => {
          // The caller may free the graph between repeats.
          use()
          this.#launcher.replay(value, stamps)
        }
        return this.#time(recorded, repeats, submit, between)
      },
      free: () => value.free(),
    })
    return this.outcomes.graph(graph, recorded)
  }

  protected async waitIdle(): Promise<void> {
    this.checkAlive('finish')
    await this.owner.wait(this.owner.device.queue.onSubmittedWorkDone(), 'finish')
  }

  protected checkAlive(call: string): void {
    this.owner.checkAlive(call)
  }

  async dispose(): Promise<void> {
    await this.owner.dispose()
  }

  /** Checks commands as far as possible before submission; afterwards only the driver can reject them. */
  #check(commands: readonly Command[], call: string): Promise<void> | undefined {
    this.check(commands, call)
    const unconfirmed = new Set<GpuBuffer>()
    for (const b of commands.flatMap(buffersOf)) if (!b.isConfirmed) unconfirmed.add(b)
    return unconfirmed.size === 0 ? undefined : this.#confirm([...unconfirmed])
  }

  async #confirm(buffers: readonly GpuBuffer[]): Promise<void> {
    for (const b of buffers) await b.ready()
  }

  /** Nanoseconds on the device's or the host's clock when all submitted work has finished. */
  protected async now(): Promise<bigint> {
    if (this.features.has('timestamp-query')) return readDeviceClock(this.owner, 'event')
    await this.waitIdle()
    return BigInt(Math.round(performance.now() * 1e6))
  }

  async #submitAndWait(commands: readonly Command[], call: string, submit: () => void): Promise<void> {
    // Checked again, because the caller may have freed buffers while the call waited.
    this.check(commands, call)
    const { failure } = this.owner.scoped(submit)
    const done = this.owner.device.queue.onSubmittedWorkDone()
    const [error] = await this.owner.wait(Promise.all([failure, done]), call)
    if (!error) return
    for (const b of new Set(commands.flatMap(buffersOf))) await this.#memory.probeBuffer(b, call)
    throw submissionError(commands, call, error)
  }

  /** Repeats wait for each other, so that they do not overlap. */
  async #time(
    commands: readonly Command[],
    repeats: number,
    submit: (stamps?: TimestampRange) => void,
    between?: Graph,
  ): Promise<number[]> {
    if (repeats === 0) return []
    const call = describe(commands)
    const count = Math.min(repeats, REPEATS_PER_CLOCK)
    const wallTimes: number[] = []
    const clock = this.features.has('timestamp-query') ? clockOf(this.owner, 2 * count) : undefined
    try {
      for (let k = 0; k < count; k++) {
        const stamps = clock && { querySet: clock.querySet, begin: 2 * k, end: 2 * k + 1 }
        if (between) {
          between.launch(new InOrderStream('of run', this.order))
          await this.waitIdle()
        }
        const start = performance.now()
        await this.#submitAndWait(commands, call, () => submit(stamps))
        wallTimes.push(performance.now() - start)
      }
      const times = clock ? timesOf(await clock.read(call)) : wallTimes
      // Timestamps of a browser may be too coarse for short runs.
      for (const [k, t] of times.entries()) if (t > 0) wallTimes[k] = t
    } finally {
      clock?.free()
    }
    return [...wallTimes, ...(await this.#time(commands, repeats - count, submit, between))]
  }
}

function submissionError(commands: readonly Command[], call: string, error: GpuFailure): SptError {
  if (error.kind === 'validation') return validationError(culprit(commands, error.message), error.message)
  return new SptError({
    code: 'device/out-of-memory',
    message: `${call}: the device ran out of memory: ${firstLine(error.message)}`,
    hint: 'free buffers that are no longer used, or run on a device with more memory',
  })
}

const buffersOf = (c: Command): GpuBuffer[] =>
  (c.kind === 'clear' ? [c.buffer] : c.args).filter((a): a is GpuBuffer => typeof a !== 'number')

const kernelNames = (commands: readonly Command[]): string[] => [
  ...new Set(commands.flatMap((c) => (c.kind === 'launch' ? [c.entry] : []))),
]

/** Describes a submission, for errors that concern all of its commands. */
function describe(commands: readonly Command[]): string {
  const names = kernelNames(commands)
  return names.length > 0 ? `run ${names.join(', ')}` : 'run'
}

/** Describes the kernel named by a message of WebGPU, or the whole submission. */
function culprit(commands: readonly Command[], message: string): string {
  const name = kernelNames(commands).find((k) => message.includes(`"${k}"`) || message.includes(`.${k}"`))
  return name === undefined ? describe(commands) : `run ${name}`
}
