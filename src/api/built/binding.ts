/** Bindings: compiled kernels with bound data. */
import { startWork, WORK_OPTIONS, Work, type WorkOptions } from '../../ast/work.ts'
import type { RefOptions, RefOutputs } from '../../reference/index.ts'
import { callerTensors } from '../../run/bind/bind-plan.ts'
import type { Bound, TensorFormat } from '../../run/bind/index.ts'
import { reportOf } from '../../run/bind/results/format-report.ts'
import type { Sources } from '../../run/compile/program.ts'
import { Turns } from '../../run/execution/call-queue.ts'
import { Executable } from '../../run/execution/execute.ts'
import type { Origin, ResidentDense } from '../../run/execution/external-memory.ts'
import type { KernelGraph } from '../../run/execution/launch-commands.ts'
import type { ExplainOptions, Explanation } from '../../run/explain/index.ts'
import type { Verification } from '../../run/verify/verify.ts'
import type { Command, Device, GpuEncoderLike, Stream } from '../../runtime/device.ts'
import { MAX_RUNS } from '../../runtime/device-checks.ts'
import { DISPOSE } from '../../runtime/dispose.ts'
import type { Measurement, MeasureOptions } from '../../runtime/measure.ts'
import type { Tensor } from '../../storage/tensor.ts'
import type { Selection } from '../dispatch/dispatch-conditions.ts'
import type { RunSelection } from '../dispatch/last-run.ts'
import { Runs } from '../dispatch/runs.ts'
import { checkDevice, expectArgument, expectName, expectOptions } from '../inputs/argument-checks.ts'
import { updateOf } from '../inputs/bound-inputs.ts'
import type { Inputs } from '../inputs/flat-inputs.ts'
import { ErrorSources } from '../programs/error-sources.ts'
import {
  checkExpected,
  checkExplain,
  checkRebuildable,
  checkReported,
  checkVerify,
  checkWritable,
  expectBuffer,
} from './check-binding.ts'
import type { CompiledCode } from './code.ts'
import { leakDetector } from './leak-detector.ts'

/** Uploads bound data. `selection`: the reason for the schedule. Throws SptError `device/…`. */
export async function createBinding(
  compiled: CompiledCode,
  bound: Bound,
  selection: Selection | null = null,
  origin: Origin = {},
  work?: Work,
): Promise<Binding> {
  const { program, source } = compiled
  const executable = await Executable.create(program, bound, { source, ...origin }, work)
  return new Binding(Runs.fixed(compiled, executable, selection))
}

/**
 * A compiled kernel with bound data. Asynchronous methods, also of `executable`, take effect in call order, awaited or not;
 * a failed call does not stop later ones. Launches of a graph are queued at once, so await earlier calls first.
 */
export class Binding extends ErrorSources {
  readonly #runs: Runs
  readonly #turns = new Turns()

  /** @internal */
  constructor(runs: Runs) {
    super()
    this.#runs = runs
    const { code, executable } = runs
    for (const t of executable.chained.values()) t.joins(this.#turns)
    leakDetector?.watch(this, code.name, code.device, executable.bytes)
  }

  /** @internal Code of the schedule; with dispatch at run time, that of the latest run. */
  get code(): CompiledCode {
    return this.#runs.code
  }

  get sources(): Sources {
    return this.code.sources
  }

  /** @internal */
  get executable(): Executable {
    // `preserving` queues its inner calls itself.
    return this.#turns.of(this.#within, ['free', 'preserving', 'output'])
  }

  get #within(): Executable {
    return this.#runs.executable
  }

  /** Selected schedule and the reason; `null` without a dispatch. With dispatch at run time, that of the latest run. */
  get selection(): RunSelection | null {
    return this.#runs.selection
  }

  /** True if equal inputs give bitwise equal outputs in every run under this schedule (it has no unordered sums). */
  get deterministic(): boolean {
    return this.code.unorderedSums.length === 0
  }

  /** Resolves when all measured fill ratios of earlier runs have been read back from the device. */
  awaitMeasurements(options: WorkOptions = {}): Promise<void> {
    return this.#call('awaitMeasurements', options, () => this.#runs.awaitMeasurements())
  }

  /** Compiles the schedules for fill ratios 0 and 1, so that no run waits for the compiler. */
  precompile(options: WorkOptions = {}): Promise<void> {
    return this.#call('precompile', options, () => this.#runs.precompile())
  }

  /**
   * Takes a turn, in which `call` begins unless the signal has aborted. A later abort rejects at once; the work of the device then ends
   * before the next turn, and `undo` frees its result.
   */
  async #call<T>(
    name: string,
    options: WorkOptions,
    call: () => Promise<T>,
    undo?: (late: T) => void,
  ): Promise<T> {
    const work = startWork(name, options)
    const inTurn = async (): Promise<T> => {
      work.begin(name)
      return call()
    }
    return work.wait(this.#turns.take(inTurn), undo)
  }

  #running<T>(work: (e: Executable) => Promise<T>): Promise<T> {
    return this.#turns.take(() => this.#runs.run(work))
  }

  /**
   * Formats of the tensors: parts, padding, bytes, build time in milliseconds, and proofs.
   * @throws SptError `run/resident` if a tensor was converted on the device
   */
  get formats(): readonly TensorFormat[] {
    checkReported(this.#within)
    return reportOf(this.executable.bound)
  }

  /**
   * Writes new values of an input with the same structure: in the order of the bound entries, or as a tensor with some of the
   * bound coordinates (the others get the fill value). Entries stay in their parts, even if parts were selected by value. The call
   * copies the values at once. Also sets a scalar; graphs keep the scalars with which they were recorded.
   * @throws SptError `bind/not-input`, `bind/absent-coordinate`, `bind/values-length`, `bind/shape`, `run/resident` (for
   * a resident tensor, write to your memory)
   */
  async set(name: string, values: Inputs[string], options: WorkOptions = {}): Promise<void> {
    expectName('an input', name)
    checkWritable(this.#within, name)
    const update = updateOf(this.executable.bound.kernel, name, values)
    return this.#call('set', options, () => this.#runs.write(name, update))
  }

  /** Runs all launches; resolves when they have finished. */
  run(options: WorkOptions = {}): Promise<void> {
    return this.#call('run', options, () => this.#runs.run((e) => e.run()))
  }

  /**
   * Appends a run to your `GPUCommandEncoder` (WebGPU) or to a stream, at once and without a submission. Await earlier calls first. The
   * memory must live until your submission has finished; later calls that wait, such as `get`, report errors.
   * @throws SptError `device/…`
   */
  record(into: Stream | GpuEncoderLike): void {
    this.#within.record(into)
  }

  /** Records all launches for replays with one call, with new values by `set`, next to other work on a stream. */
  graph(options: WorkOptions = {}): Promise<KernelGraph> {
    return this.#call(
      'graph',
      options,
      () => this.#within.graph(),
      (late) => late.free(),
    )
  }

  /** Commands of `run`, for a graph of several kernels: `device.graph([...a.commands, ...b.commands])`. */
  get commands(): readonly Command[] {
    return this.executable.commands
  }

  /** Measures runs in milliseconds: warm, with flushed caches, or the mean of many in a graph. */
  async measure(options: MeasureOptions & WorkOptions = {}): Promise<Measurement> {
    expectOptions('measure', options, ['warmups', 'repeats', 'flush', 'batch', 'by', ...WORK_OPTIONS])
    return this.#running((e) => e.measure(options))
  }

  /** Traffic, operations, occupancy and time of each launch (`run/explain/explanation.ts`). Outputs are restored. */
  async explain(options: ExplainOptions & WorkOptions = {}): Promise<Explanation> {
    checkExplain(options)
    const { signal, onProgress, ...given } = options
    return this.#call('explain', { signal, onProgress }, async () => {
      // Loaded on demand, to keep browser bundles small.
      const { explain } = await import('../../run/explain/index.ts')
      return explain(this.code.compilation, this.#within, given)
    })
  }

  /** Milliseconds of each of `repeats` runs, by device events if available. */
  async time(repeats: number, options: WorkOptions = {}): Promise<number[]> {
    const fits = Number.isInteger(repeats) && repeats >= 1 && repeats <= MAX_RUNS
    expectArgument(fits, 'repeats', repeats, `an integer from 1 to ${MAX_RUNS}`)
    return this.#call('time', options, () => this.#runs.run((e) => e.time(repeats)))
  }

  /**
   * Reads a tensor in the coordinates of the kernel. If it has the structure of a resident tensor, this structure is
   * downloaded too, each time.
   * @throws SptError `api/unknown-buffer`, `run/resident`
   */
  async get(name: string, options: WorkOptions = {}): Promise<Tensor> {
    expectBuffer(this.code.source, name)
    return this.#call('get', options, () => this.#within.read(name))
  }

  /**
   * A dense output on the device, which can be bound to an input of another kernel without a copy. Calls on both kernels
   * take effect in call order. The memory is freed with the last kernel that uses it.
   * @throws SptError `api/unknown-buffer`, `run/resident` if it is not a dense output as declared, `run/shared`,
   * `device/freed-buffer`
   */
  output(name: string): ResidentDense {
    expectBuffer(this.code.source, name)
    return this.#runs.owner.output(name, this.#turns)
  }

  /** Reads the outputs, by name, like `get`. */
  outputs(options: WorkOptions = {}): Promise<Record<string, Tensor>> {
    return this.#call('outputs', options, async () => {
      const names = callerTensors(this.code.source).flatMap(({ name, first: { role } }) =>
        role === 'out' || role === 'inout' ? [name] : [],
      )
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
  async verify(options: RefOptions & WorkOptions = {}): Promise<Verification> {
    checkVerify(options)
    const { signal, onProgress, ...sampling } = options
    const work = new Work({ signal, onProgress })
    return this.#running(async (e) => {
      const { verify } = await import('../../run/verify/verify.ts')
      return e.preserving(['inout'], () => verify(this.code.compilation.source, e, sampling, work))
    })
  }

  /** Like `verify`, but compares with given results of the reference, which must belong to the bound data. */
  async verifyAgainst(expected: RefOutputs, options: WorkOptions = {}): Promise<Verification> {
    checkExpected(this.code.source, expected)
    return this.#call('verifyAgainst', options, () =>
      this.#runs.run(async (e) => {
        const { verifyAgainst } = await import('../../run/verify/verify.ts')
        return e.preserving(['inout'], () => verifyAgainst(this.code.compilation.source, e, expected))
      }),
    )
  }

  /**
   * Rebuilds the kernel on another device of the same kind, for example after `device/lost`: compiled under the selected
   * schedule, with the values that were bound or written from the host. Create graphs again; `inout` tensors start from the bound values. This kernel is unchanged: free it.
   * @throws SptError `run/resident` if a tensor was on the old device, `run/other-device`, and as `build` and `bind`
   */
  async rebuild(device: Device, options: WorkOptions = {}): Promise<Binding> {
    checkDevice(device)
    checkRebuildable(this.#within, device)
    return this.#call(
      'rebuild',
      options,
      async () => new Binding(await this.#runs.rebuilt(device)),
      (late) => late.free(),
    )
  }

  /** Frees the memory at once; pending calls fail with `device/freed-buffer`. */
  free(): void {
    leakDetector?.forget(this)
    this.#runs.free()
    this.#turns.leave()
  }

  [DISPOSE](): void {
    this.free()
  }
}
