/** A compiled kernel, and the same with data. */
import type { RefOptions, RefOutputs } from '../reference/index.ts'
import { bindParams } from '../run/bind/bound-sizes.ts'
import { type Bound, bindInputs, type TensorFormat } from '../run/bind/index.ts'
import { Turns } from '../run/call-queue.ts'
import type { Compilation } from '../run/compile.ts'
import { checkFits, compileOn, Executable, lanesOf, type Program } from '../run/execute.ts'
import type { ExplainOptions, Explanation } from '../run/explain/index.ts'
import type { Sources } from '../run/launch-spans.ts'
import type { KernelGraph } from '../run/replay.ts'
import type { ResidentDense } from '../run/resident-dense.ts'
import { type UnorderedSum, unorderedSums } from '../run/summation-order.ts'
import { type Verification, verify, verifyAgainst } from '../run/verify.ts'
import { MAX_RUNS } from '../runtime/check-calls.ts'
import type { Command, Device } from '../runtime/device.ts'
import type { Measurement, MeasureOptions } from '../runtime/measure.ts'
import type { ResidentParts } from '../storage/engines/device/index.ts'
import type { Tensor } from '../storage/tensor.ts'
import { checkDevice, expectArgument, expectName, expectOptions, isRecord } from './argument-checks.ts'
import { type RunInputs, updateOf, valuesIn } from './bound-inputs.ts'
import { checkRebuildable, checkReported, checkWritable, expectBuffer } from './check-prepared.ts'
import { checkExplain, checkVerify } from './check-run.ts'
import { forgotten } from './forgotten-kernels.ts'
import { asTimes, type Dispatcher, fixedDispatcher, type RunSelection, running } from './selecting.ts'
import { Sourced } from './sourced.ts'
import type { Bindable } from './tensors.ts'

export type { RunInputs } from './bound-inputs.ts'

export const isBound = (x: RunInputs | Bound): x is Bound => isRecord(x) && 'storages' in x

/** A kernel compiled for a device, under one schedule or several of which each binding chooses. */
export abstract class CompiledKernel extends Sourced {
  /** @throws SptError `choose/open` where each binding chooses the schedule */
  abstract get compilation(): Compilation
  /** @throws SptError as `compilation` */
  abstract get program(): Program
  abstract get device(): Device
  /**
   * Sums of floats that threads add to in the order in which they arrive, so that results may differ in their last bits from
   * run to run.
   * @throws SptError as `compilation`
   */
  abstract get unorderedSums(): readonly UnorderedSum[]
  /** Whether equal inputs give equal bits in every run on this device. @throws SptError as `compilation` */
  get deterministic(): boolean {
    return this.unorderedSums.length === 0
  }
  /** Binds data on the host: builds formats, checks everything. */
  abstract bind(inputs: RunInputs): Bound
  /**
   * Bytes that the buffers of these inputs take, as far as sizes alone tell. Makes no data.
   * @throws SptError `bind/…`, `plan/too-large`, `device/buffer-too-large`
   */
  abstract estimateBytes(inputs: RunInputs): number
  /** Binds data and brings it to the device. */
  abstract prepare(inputs: RunInputs | Bound): Promise<PreparedKernel>
  abstract release(): void

  /** Runs once: prepares, runs, reads all outputs, frees. */
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

  /** The same schedule, compiled for another device. */
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
    const { tensors, params, seed } = valuesIn(this.compilation.kernel, inputs)
    this.#fits(tensors, params)
    return bindInputs(this.compilation.kernel, { tensors, params, ...(seed === undefined ? {} : { seed }) })
  }

  estimateBytes(inputs: RunInputs): number {
    const { tensors, params } = valuesIn(this.compilation.kernel, inputs)
    return this.#fits(tensors, params)
  }

  #fits(tensors: Readonly<Record<string, Tensor>>, params: Readonly<Record<string, number>>): number {
    const known = bindParams(
      this.compilation.kernel,
      new Map(Object.entries(tensors)),
      new Map(Object.entries(params)),
    )
    return checkFits(this.program, known)
  }

  async prepare(inputs: RunInputs | Bound): Promise<PreparedKernel> {
    const bound = isBound(inputs) ? inputs : this.bind(inputs)
    return new PreparedKernel(
      this,
      await Executable.create(this.program, bound, { source: this.compilation.source }),
    )
  }

  /**
   * Of a kernel without a schedule the form that runs on these data, compiled; otherwise itself. What is resident in the formats
   * of `formatOf` goes by its name.
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
 * A kernel with data. Its asynchronous methods, and those of its `executable`, take effect in the order in which they are
 * called, as if each were awaited; one that fails keeps none of the later ones from it. Launches of a graph are queued on
 * the device at once: what is to come before them is awaited.
 */
export class PreparedKernel extends Sourced {
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
    forgotten?.watch(this, kernel.compilation.source.name, kernel.device, executable.bytes)
  }

  /** Under the schedule of the latest run, where runs choose it. */
  get kernel(): CompiledKernel {
    return this.#selecting.kernel
  }

  get sources(): Sources {
    return this.kernel.sources
  }

  get executable(): Executable {
    // What is done around `preserving` takes turns by itself.
    return this.#turns.of(this.#within, ['free', 'preserving', 'output'])
  }

  get #within(): Executable {
    return this.#selecting.executable
  }

  /**
   * Which schedule was chosen, and why; `null` where there was no choice. Where runs choose, that of the latest run.
   */
  get selection(): RunSelection | null {
    return this.#selecting.selection
  }

  /** Whether equal inputs give equal bits in every run under this schedule; `kernel.unorderedSums` says where they may not. */
  get deterministic(): boolean {
    return this.kernel.deterministic
  }

  /** Resolves when what runs have found so far, and the next is chosen by, has been read back from the device. */
  awaitMeasurements(): Promise<void> {
    return this.#turns.take(() => this.#selecting.awaitMeasurements())
  }

  /** Compiles what no coverage and full coverage would lead to, before a run has to wait for it. */
  precompile(): Promise<void> {
    return this.#turns.take(() => this.#selecting.precompile())
  }

  /** A run in its turn, of the schedule that is chosen for it. */
  #running<T>(work: (e: Executable) => Promise<T>, timesOf?: (done: T) => readonly number[]): Promise<T> {
    return this.#turns.take(() => running(this.#selecting, work, timesOf))
  }

  /**
   * Which formats tensors were put into: their parts, padding, bytes, build time, and how they are known to be right.
   * @throws SptError `run/resident` after `prepareResident`
   */
  get formats(): readonly TensorFormat[] {
    checkReported(this.#within)
    return this.executable.bound.report
  }

  /**
   * New values for an input, where its structure stays: those of the entries in the order in which they were bound,
   * or a tensor with some of the coordinates that were bound (the others get the fill). Parts stay as they are, also
   * where they were chosen by values. The array is read when its turn comes: leave it as it is until then.
   *
   * @throws SptError `bind/not-input`, `bind/absent-coordinate`, `bind/values-length`, `bind/shape`, `run/resident` (the
   * memory of a resident tensor is the caller's)
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

  /**
   * All launches recorded once, to be replayed with one call: with other values by `write`, beside other work on a
   * stream.
   */
  graph(): Promise<KernelGraph> {
    return this.executable.graph()
  }

  /** What `run` runs, for a graph of several kernels: `device.graph([...a.commands, ...b.commands])`. */
  get commands(): readonly Command[] {
    return this.executable.commands
  }

  /** Times of a run as benchmarks want them: warm, with flushed caches, or the mean of many in a graph. */
  async measure(options: MeasureOptions = {}): Promise<Measurement> {
    expectOptions('measure', options, ['warmups', 'repeats', 'flush', 'batch', 'by'])
    return this.#running((e) => e.measure(options))
  }

  /**
   * What each launch moves and computes by the model, what it takes of the device, and how long it takes
   * (`run/explain/explanation.ts`). Outputs are afterwards as they were.
   */
  async explain(options: ExplainOptions = {}): Promise<Explanation> {
    checkExplain(options)
    return this.#turns.take(async () => {
      // Browsers load it when it is asked for.
      const { explain } = await import('../run/explain/index.ts')
      return explain(this.kernel.compilation, this.#within, options)
    })
  }

  /** Milliseconds of each of `repeats` runs, by device events where there are any. */
  async time(repeats: number): Promise<number[]> {
    const fits = Number.isInteger(repeats) && repeats >= 1 && repeats <= MAX_RUNS
    expectArgument(fits, 'repeats', repeats, `an integer from 1 to ${MAX_RUNS}`)
    return this.#running((e) => e.time(repeats), asTimes)
  }

  /**
   * A tensor, in the coordinates of the kernel as written. One with the structure of a resident tensor takes a download
   * of that as well, each time.
   * @throws SptError `api/unknown-buffer`, `run/resident`
   */
  async read(name: string): Promise<Tensor> {
    expectBuffer(this.kernel.compilation.source, name)
    return this.executable.read(name)
  }

  /**
   * A dense output where it lies on the device, to be bound to an input of another kernel like any tensor. That kernel
   * reads what runs of this one have written by then, without copies; calls on both take effect in the order in which they are
   * called. The memory is freed when this kernel and all that are bound to it have been.
   * @throws SptError `api/unknown-buffer`, `run/resident` of what is no dense output as it is declared, `run/shared`,
   * `device/freed-buffer`
   */
  output(name: string): ResidentDense {
    expectBuffer(this.kernel.compilation.source, name)
    return this.#selecting.owner.output(name, this.#turns)
  }

  /** All that it writes, as `read`, by name. */
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
   * Runs from what was bound or written, on poisoned memory, and compares every output with the reference; with `sample`,
   * a random sample of the coordinates of one axis where each can be computed by itself. Outputs are afterwards those of
   * this run, but `inout` buffers as they were: further runs go on as if there had been none. Of resident tensors, what
   * they hold now is downloaded and taken for what was bound.
   * @throws SptError `api/argument` of what is no sample, `run/resident`, and as `run`
   */
  async verify(options: RefOptions = {}): Promise<Verification> {
    checkVerify(options)
    return this.#running((e) =>
      e.preserving(['inout'], () => verify(this.kernel.compilation.source, e, options)),
    )
  }

  /** As `verify`, with results of the reference that are at hand: they have to be those of what is bound. */
  verifyAgainst(expected: RefOutputs): Promise<Verification> {
    return this.#running((e) =>
      e.preserving(['inout'], () => verifyAgainst(this.kernel.compilation.source, e, expected)),
    )
  }

  /**
   * The same kernel on another device of its kind, such as a new one after `device/lost`: compiled again under the schedule that was
   * chosen, and bound to what was bound or written from the host. Outputs and graphs have to be made again, and `inout` tensors start
   * over. This kernel stays as it is: free it.
   * @throws SptError `run/resident` where a tensor was on the device before, `run/other-device`, and as `compile` and `prepare`
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

  /** Frees its memory at once: calls that have not ended are refused (`device/freed-buffer`). */
  free(): void {
    forgotten?.forget(this)
    this.#selecting.free()
  }
}
