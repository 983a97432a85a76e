/** Compiled kernels, and prepared kernels: compiled kernels with bound data. */
import type { RefOptions, RefOutputs } from '../../reference/index.ts'
import { type Bound, bindInputs, type TensorFormat } from '../../run/bind/index.ts'
import { bindParams } from '../../run/bind/sizes/bound-sizes.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { Sources } from '../../run/compile/compiled-program.ts'
import { Turns } from '../../run/execution/call-queue.ts'
import { checkFits, compileOn, Executable, lanesOf, type Program } from '../../run/execution/execute.ts'
import type { ResidentDense } from '../../run/execution/external-memory.ts'
import type { KernelGraph } from '../../run/execution/launch-commands.ts'
import type { ExplainOptions, Explanation } from '../../run/explain/index.ts'
import type { UnorderedSum, Verification } from '../../run/verify/verify.ts'
import { unorderedSums, verify, verifyAgainst } from '../../run/verify/verify.ts'
import type { Command, Device } from '../../runtime/device.ts'
import { MAX_RUNS } from '../../runtime/device-checks.ts'
import type { Measurement, MeasureOptions } from '../../runtime/measure.ts'
import type { ResidentParts } from '../../storage/engines/device/index.ts'
import type { Tensor } from '../../storage/tensor.ts'
import type { Dispatcher, RunSelection } from '../dispatch/dispatcher.ts'
import { asTimes, fixedDispatcher, running } from '../dispatch/dispatcher.ts'
import {
  checkDevice,
  expectArgument,
  expectName,
  expectOptions,
  isRecord,
} from '../inputs/argument-checks.ts'
import { type RunInputs, updateOf, valuesIn } from '../inputs/bound-inputs.ts'
import type { Bindable } from '../inputs/tensors.ts'
import { ErrorSources } from '../programs/error-sources.ts'
import {
  checkExplain,
  checkRebuildable,
  checkReported,
  checkVerify,
  checkWritable,
  expectBuffer,
} from './check-prepared.ts'
import { leakDetector } from './leak-detector.ts'

export type { RunInputs } from '../inputs/bound-inputs.ts'

export const isBound = (x: RunInputs | Bound): x is Bound => isRecord(x) && 'storages' in x

/** A kernel compiled for a device: one schedule, or a dispatch that selects a schedule for each binding. */
export abstract class CompiledKernel extends ErrorSources {
  /** Compilation of the selected schedule: its stages and plan. @throws SptError `choose/open` for a dispatch */
  abstract get compilation(): Compilation
  /** Generated code and modules. @throws SptError as `compilation` */
  abstract get program(): Program
  abstract get device(): Device
  /**
   * Floating-point sums by atomic updates, whose order varies, so that the last bits of results may differ from run to run.
   * @throws SptError as `compilation`
   */
  abstract get unorderedSums(): readonly UnorderedSum[]
  /** True if equal inputs give bitwise equal outputs in every run on this device. @throws SptError as `compilation` */
  get deterministic(): boolean {
    return this.unorderedSums.length === 0
  }
  /** The host's part of `prepare`: validates data and builds formats. @throws SptError `bind/…`, `format/…` */
  abstract bind(inputs: RunInputs): Bound
  /**
   * Bytes of all buffers, computed from sizes; no data are created.
   * @throws SptError `bind/…`, `plan/too-large`, `device/buffer-too-large`
   */
  abstract estimateBytes(inputs: RunInputs): number
  /** Binds data and uploads them. @throws SptError `bind/…`, `format/…`, `device/…` */
  abstract prepare(inputs: RunInputs | Bound): Promise<PreparedKernel>
  abstract release(): void

  /** Prepares, runs, reads all outputs by name, and frees. */
  async run(inputs: RunInputs): Promise<Record<string, Tensor>> {
    const prepared = await this.prepare(inputs)
    try {
      await prepared.run()
      return await prepared.outputs()
    } finally {
      prepared.free()
    }
  }
}

/** A kernel under one schedule. */
export class CompiledSchedule extends CompiledKernel {
  readonly compilation: Compilation
  readonly program: Program

  constructor(compilation: Compilation, program: Program) {
    super()
    this.compilation = compilation
    this.program = program
  }

  get device(): Device {
    return this.program.device
  }

  get sources(): Sources {
    return this.program.sources
  }

  /** Compiles the same schedule for another device. */
  async compileFor(device: Device): Promise<CompiledSchedule> {
    const { compilation, sources } = this
    return new CompiledSchedule(
      compilation,
      await compileOn(device, compilation.planFor(lanesOf(device)), sources),
    )
  }

  override get unorderedSums(): readonly UnorderedSum[] {
    const { compilation, device } = this
    return unorderedSums(compilation.loops, compilation.planFor(lanesOf(device)), device.kind)
  }

  bind(inputs: RunInputs): Bound {
    const values = valuesIn(this.compilation.kernel, inputs)
    this.#checkFits(values)
    return bindInputs(this.compilation.kernel, values)
  }

  estimateBytes(inputs: RunInputs): number {
    return this.#checkFits(valuesIn(this.compilation.kernel, inputs))
  }

  #checkFits({ tensors, params }: ReturnType<typeof valuesIn>): number {
    const [bound, given] = [new Map(Object.entries(tensors)), new Map(Object.entries(params))]
    return checkFits(this.program, bindParams(this.compilation.kernel, bound, given))
  }

  async prepare(inputs: RunInputs | Bound): Promise<PreparedKernel> {
    const bound = isBound(inputs) ? inputs : this.bind(inputs)
    return new PreparedKernel(
      this,
      await Executable.create(this.program, bound, { source: this.compilation.source }),
    )
  }

  /**
   * The compiled candidate of the auto-scheduler that runs on these data, if the kernel has no schedule; otherwise itself.
   * @param _resident - Tensors on the device in the formats of `storageFormat`, by name
   */
  async selectVariant(
    _inputs: RunInputs,
    _resident?: Readonly<Record<string, ResidentParts>>,
  ): Promise<CompiledSchedule> {
    return this
  }

  release(): void {
    this.program.release()
  }
}

/**
 * A compiled kernel with bound data. Asynchronous methods, also of its `executable`, take effect in call order, awaited or not;
 * a failed call does not stop later ones. Launches of a graph are queued at once, so await earlier calls first.
 */
export class PreparedKernel extends ErrorSources {
  readonly #selecting: Dispatcher<CompiledKernel>
  readonly #turns = new Turns()

  constructor(
    kernel: CompiledKernel,
    executable: Executable,
    selecting: Dispatcher<CompiledKernel> = fixedDispatcher(kernel, executable, null),
  ) {
    super()
    this.#selecting = selecting
    for (const t of executable.chained.values()) t.joins(this.#turns)
    leakDetector?.watch(this, kernel.compilation.source.name, kernel.device, executable.bytes)
  }

  /** Compiled kernel; with dispatch at run time, that of the latest run. */
  get kernel(): CompiledKernel {
    return this.#selecting.kernel
  }

  get sources(): Sources {
    return this.kernel.sources
  }

  get executable(): Executable {
    // `preserving` queues its inner calls itself.
    return this.#turns.of(this.#within, ['free', 'preserving', 'output'])
  }

  get #within(): Executable {
    return this.#selecting.executable
  }

  /** Selected schedule and the reason; `null` without a dispatch. With dispatch at run time, that of the latest run. */
  get selection(): RunSelection | null {
    return this.#selecting.selection
  }

  /** True if equal inputs give bitwise equal outputs in every run under this schedule (no `kernel.unorderedSums`). */
  get deterministic(): boolean {
    return this.kernel.deterministic
  }

  /** Resolves when all measured fill ratios of earlier runs have been read back from the device. */
  awaitMeasurements(): Promise<void> {
    return this.#turns.take(() => this.#selecting.awaitMeasurements())
  }

  /** Compiles the schedules for fill ratios 0 and 1, so that no run waits for the compiler. */
  precompile(): Promise<void> {
    return this.#turns.take(() => this.#selecting.precompile())
  }

  #running<T>(work: (e: Executable) => Promise<T>, timesOf?: (done: T) => readonly number[]): Promise<T> {
    return this.#turns.take(() => running(this.#selecting, work, timesOf))
  }

  /**
   * Formats of the tensors: parts, padding, bytes, build time in milliseconds, and proofs.
   * @throws SptError `run/resident` after `prepareResident`
   */
  get formats(): readonly TensorFormat[] {
    checkReported(this.#within)
    return this.executable.bound.report()
  }

  /**
   * Writes new values of an input with the same structure: in the order of the bound entries, or as a tensor with some of the
   * bound coordinates (the others get the fill value). Entries stay in their parts, even if parts were selected by value. Do not change the
   * array until the call has resolved.
   * @throws SptError `bind/not-input`, `bind/absent-coordinate`, `bind/values-length`, `bind/shape`, `run/resident` (for
   * a resident tensor, write to your memory)
   */
  async write(name: string, values: Bindable): Promise<void> {
    expectName('an input', name)
    checkWritable(this.#within, name)
    const update = updateOf(this.executable.bound.kernel, name, values)
    return this.#turns.take(() => this.#selecting.write(name, update))
  }

  /** Runs all launches; resolves when they have finished. */
  run(): Promise<void> {
    return this.#running((e) => e.run())
  }

  /** Records all launches for replays with one call, with new values by `write`, next to other work on a stream. */
  graph(): Promise<KernelGraph> {
    return this.executable.graph()
  }

  /** Commands of `run`, for a graph of several kernels: `device.graph([...a.commands, ...b.commands])`. */
  get commands(): readonly Command[] {
    return this.executable.commands
  }

  /** Measures runs in milliseconds: warm, with flushed caches, or the mean of many in a graph. */
  async measure(options: MeasureOptions = {}): Promise<Measurement> {
    expectOptions('measure', options, ['warmups', 'repeats', 'flush', 'batch', 'by'])
    return this.#running((e) => e.measure(options))
  }

  /** Traffic, operations, occupancy and time of each launch (`run/explain/explanation.ts`). Outputs are restored. */
  async explain(options: ExplainOptions = {}): Promise<Explanation> {
    checkExplain(options)
    return this.#turns.take(async () => {
      // Loaded on demand, to keep browser bundles small.
      const { explain } = await import('../../run/explain/index.ts')
      return explain(this.kernel.compilation, this.#within, options)
    })
  }

  /** Milliseconds of each of `repeats` runs, by device events if available. */
  async time(repeats: number): Promise<number[]> {
    const fits = Number.isInteger(repeats) && repeats >= 1 && repeats <= MAX_RUNS
    expectArgument(fits, 'repeats', repeats, `an integer from 1 to ${MAX_RUNS}`)
    return this.#running((e) => e.time(repeats), asTimes)
  }

  /**
   * Reads a tensor in the coordinates of the kernel. If it has the structure of a resident tensor, this structure is
   * downloaded too, each time.
   * @throws SptError `api/unknown-buffer`, `run/resident`
   */
  async read(name: string): Promise<Tensor> {
    expectBuffer(this.kernel.compilation.source, name)
    return this.executable.read(name)
  }

  /**
   * A dense output on the device, which can be bound to an input of another kernel without a copy. Calls on both kernels
   * take effect in call order. The memory is freed with the last kernel that uses it.
   * @throws SptError `api/unknown-buffer`, `run/resident` if it is not a dense output as declared, `run/shared`,
   * `device/freed-buffer`
   */
  output(name: string): ResidentDense {
    expectBuffer(this.kernel.compilation.source, name)
    return this.#selecting.owner.output(name, this.#turns)
  }

  /** Reads all outputs, by name, like `read`. */
  outputs(): Promise<Record<string, Tensor>> {
    return this.#turns.take(async () => {
      const { buffers } = this.kernel.compilation.source
      const names = buffers.filter((b) => b.role === 'out' || b.role === 'inout').map((b) => b.name)
      const whole = await this.#within.boundFor(names)
      const out: [string, Tensor][] = []
      for (const name of names) out.push([name, await this.#within.read(name, whole)])
      return Object.fromEntries(out)
    })
  }

  /**
   * Runs from the bound or written values on poisoned memory, and compares every output with the reference. `sample` compares a
   * random part of the coordinates of one axis, if they can be computed separately. Afterwards outputs are those of this run, and
   * `inout` buffers are restored. Values of resident tensors are downloaded for the reference.
   * @throws SptError `api/argument`, `run/resident`, and as `run`
   */
  async verify(options: RefOptions = {}): Promise<Verification> {
    checkVerify(options)
    return this.#running((e) =>
      e.preserving(['inout'], () => verify(this.kernel.compilation.source, e, options)),
    )
  }

  /** Like `verify`, but compares with given results of the reference, which must belong to the bound data. */
  verifyAgainst(expected: RefOutputs): Promise<Verification> {
    return this.#running((e) =>
      e.preserving(['inout'], () => verifyAgainst(this.kernel.compilation.source, e, expected)),
    )
  }

  /**
   * Rebuilds the kernel on another device of the same kind, for example after `device/lost`: compiled under the selected
   * schedule, with the values that were bound or written from the host. Create graphs again; `inout` tensors start from the bound values. This kernel is unchanged: free it.
   * @throws SptError `run/resident` if a tensor was on the old device, `run/other-device`, and as `compile` and `prepare`
   */
  async rebuild(device: Device): Promise<PreparedKernel> {
    checkDevice(device)
    checkRebuildable(this.#within, device)
    return this.#turns.take(async () => {
      const selecting = (await this.#selecting.rebuilt?.(device)) ?? (await this.#settledOn(device))
      return new PreparedKernel(selecting.kernel, selecting.executable, selecting)
    })
  }

  async #settledOn(device: Device): Promise<Dispatcher<CompiledKernel>> {
    const { compilation } = this.kernel
    const compiled = await (this.kernel as CompiledSchedule).compileFor(device)
    const { source } = compilation
    return fixedDispatcher(
      compiled,
      await Executable.create(compiled.program, this.#within.bound, { source }),
      this.selection,
    )
  }

  /** Frees the memory at once; pending calls fail with `device/freed-buffer`. */
  free(): void {
    leakDetector?.forget(this)
    this.#selecting.free()
  }
}
