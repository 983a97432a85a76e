/**
 * Execution of a plan on a device: allocations, uploads, fills, and launches with concrete grids. Data that a device cannot hold or launch
 * is rejected here, with the name of the buffer or kernel, before anything runs.
 */
import { failWith, invariant, withSources } from '../../ast/diagnostics/diagnostic.ts'
import { Work } from '../../ast/work.ts'
import type { PlanBuffer } from '../../plan/schema.ts'
import {
  type Command,
  type DeviceBuffer,
  type GpuEncoderLike,
  type LaunchCommand,
  Outcome,
  type Stream,
} from '../../runtime/device.ts'
import { type Measurement, type MeasureOptions, measure } from '../../runtime/measure.ts'
import { fromDevice, toDevice } from '../../runtime/webgpu/widened-elements.ts'
import { newValues, type Tensor, type ValueArray } from '../../storage/tensor.ts'
import type { Bound } from '../bind/index.ts'
import { buffersOf, isAlone, readTensor } from '../bind/results/gather-results.ts'
import { elementBytes } from '../compile/device-limits.ts'
import type { Instead, Program } from '../compile/program.ts'
import { checkAliases } from './aliases.ts'
import {
  type BufferLocation,
  byteLength,
  type Contents,
  elements,
  labelOf,
  mostElements,
  pack,
  placesOf,
  poison,
  preserving,
} from './buffer-layout.ts'
import type { Turns } from './call-queue.ts'
import { Chained, LentOutputs, type Origin, type ResidentDense, residentOutput } from './external-memory.ts'
import { checkRanges, fitting } from './index-ranges.ts'
import {
  failUnknownRounds,
  fullRun,
  type KernelGraph,
  NO_RUN,
  type Run,
  runParts,
} from './launch-commands.ts'
import { runError } from './overflow-error.ts'

/** A program with its data on a device, ready to run. */
export class Executable implements Contents {
  readonly program: Program
  #bound: Bound
  /** Device memory of the plan's buffers, by name. */
  readonly memory: ReadonlyMap<string, DeviceBuffer>
  readonly #places: ReadonlyMap<string, BufferLocation>
  #run: Run
  #instead: Instead | undefined
  readonly #resident: ReadonlyMap<string, DeviceBuffer>
  readonly #origin: Origin
  readonly #chained: Chained
  readonly #lent = new LentOutputs()
  readonly #outcome = new Outcome(() => withSources(this.program, () => this.#checkStatus()))
  /** Allocated bytes on the device. */
  readonly bytes: number

  private constructor(
    program: Program,
    bound: Bound,
    memory: ReadonlyMap<string, DeviceBuffer>,
    chained: Chained,
    origin: Origin,
  ) {
    this.program = program
    this.#origin = origin
    this.#bound = bound
    this.memory = memory
    this.#chained = chained
    this.#resident = new Map([...(origin.resident?.buffers ?? []), ...chained.buffers])
    this.#places = placesOf(program, bound, memory)
    this.#run = program.instead ? NO_RUN : fullRun(program, bound, memory, this.#outcome)
    this.bytes = [...memory.values()].reduce((n, b) => n + b.bytes, 0)
  }

  /** Host data; resident tensors have no entries. */
  get bound(): Bound {
    return this.#bound
  }

  /** Names of tensors that were on the device before. */
  get residents(): readonly string[] {
    return this.#origin.resident?.tensors ?? []
  }

  /** Host data (as complete as reading the outputs `names` requires) with the current values of resident tensors, which each call downloads. Throws SptError `run/resident`. */
  async boundFromDevice(names?: readonly string[]): Promise<Bound> {
    return this.#chained.downloaded(await (names ? this.boundFor(names) : this.#structured()))
  }

  async #structured(): Promise<Bound> {
    if (!this.#origin.resident) return this.#bound
    return this.#origin.resident.whole(this.#bound, async (buffer) =>
      this.#places.has(buffer) ? this.values(buffer) : null,
    )
  }

  /** Outputs of other kernels that are bound as inputs, by input name. */
  get chained(): ReadonlyMap<string, ResidentDense> {
    return this.#chained.tensors
  }

  /** Returns an output as a device-resident tensor whose calls use the queue `turns`. Throws SptError `run/resident`, `run/shared`. */
  output(name: string, turns: Turns): ResidentDense {
    const callers = this.#chained.tensors.get(name)
    if (callers?.isCallers) return callers
    return residentOutput(this.program, this.#bound, {
      name,
      turns,
      isShared: this.#origin.shared?.buffers.has(name) ?? false,
      lend: () => this.#lent.of(name, this.#place(name).memory),
      settle: () => this.#settle(),
    })
  }

  /** Host data as complete as reading these outputs requires. Throws SptError `run/resident`. */
  async boundFor(names: readonly string[]): Promise<Bound> {
    return names.every((name) => isAlone(this.bound.kernel, name)) ? this.#bound : this.#structured()
  }

  /**
   * Allocates device memory and uploads the data. Throws SptError `device/out-of-memory`, `device/buffer-too-large`,
   * `device/released-module`, `plan/…`.
   */
  static async create(
    compiled: Program,
    bound: Bound,
    origin: Origin = {},
    work: Work = new Work(),
  ): Promise<Executable> {
    const program = await fitting(compiled, bound.params)
    const chained = new Chained(program, bound)
    const { resident, shared } = origin
    const there = new Map([...(resident?.buffers ?? []), ...(shared?.buffers ?? []), ...chained.buffers])
    const memory = new Map<string, DeviceBuffer>()
    try {
      chained.hold()
      if (chained.tensors.size > 1) checkAliases(program, chained.tensors)
      for (const b of program.plan.buffers)
        memory.set(
          b.name,
          there.get(b.name) ??
            program.device.alloc(byteLength(program.device, b, bound), labelOf(program, b)),
        )
      const executable = new Executable(program, bound, memory, chained, origin)
      await pack(executable, executable.#places, executable.#resident)
      await executable.#bring((b) => !there.has(b.name), work)
      executable.#instead = program.instead?.(bound, memory)
      return executable
    } catch (error) {
      for (const [name, b] of memory) if (!there.has(name)) b.free()
      chained.release()
      throw error
    }
  }

  /** Restores the initial values of `inout` buffers, except resident ones. Runs do not change inputs. */
  reset(): Promise<void> {
    return this.#bring((b) => b.role === 'inout')
  }

  async #bring(which: (b: PlanBuffer) => boolean, work = new Work()): Promise<void> {
    for (const [name, place] of this.#places) {
      const isFixed = !which(place.buffer) || this.#resident.has(name) || this.#isOthers(name)
      const values = this.bound.arrays.get(name)
      if (!values || isFixed) continue
      await work.checkpoint()
      work.begin('upload', name)
      await work.wait(this.#upload(place, values))
    }
  }

  /** Uploads new values of one input, in storage order. Throws SptError `run/shared` if other kernels read the same memory. */
  async write(name: string, values: ValueArray): Promise<void> {
    if (this.#isOthers(name))
      failWith('run/shared', `the memory of ${name} is read by every kernel of the workspace`, {
        expected: 'a kernel with separate memory',
        hint: 'bind the kernel by itself (fn.bind), or make another workspace',
      })
    await this.#upload(this.#place(name), values)
  }

  #isOthers = (name: string): boolean =>
    !this.#origin.shared?.isOwn && !!this.#origin.shared?.buffers.has(name)

  /** Replaces the bound data by data of the same structure, and uploads these buffers. Throws SptError `plan/overflow` for new scalars. */
  async rebind(bound: Bound, buffers: readonly string[]): Promise<void> {
    const { program, memory } = this
    if (bound.params !== this.#bound.params) {
      checkRanges(program.plan, bound.params, program.plan.index === 64)
      if (!program.instead) this.#run = fullRun(program, bound, memory, this.#outcome)
      this.#instead?.free()
      this.#instead = program.instead?.(bound, memory)
    }
    this.#bound = bound
    for (const name of buffers) await this.write(name, bound.arrays.get(name)!)
  }

  /** Runs the kernel once. Throws SptError `run/lost-writes` or `run/overflow`; the outputs then lack the lost elements only. */
  async run(): Promise<void> {
    const { device } = this.program
    this.#check()
    const commands = this.#instead?.commands ?? this.#run.commands
    if (commands) return await device.run(commands)
    await runParts(device, this.#run.parts, this.#bound.maxRounds)
  }

  /** Appends a run to an encoder or a stream of the caller. Throws SptError like `Device.record`. */
  record(into: Stream | GpuEncoderLike): void {
    this.program.device.record(this.commands, into)
  }

  /** Milliseconds of each of `repeats` runs. Throws SptError like `run`. */
  async time(repeats: number): Promise<number[]> {
    if (this.#instead || this.#run.commands) return this.program.device.time(this.commands, repeats)
    const times: number[] = []
    while (times.length < repeats) {
      const begin = performance.now()
      await this.run()
      times.push(performance.now() - begin)
    }
    return times
  }

  /** Commands of one run, also for graphs of several kernels. Throws SptError `device/freed`, `run/rounds`. */
  get commands(): readonly Command[] {
    this.#check()
    return this.#instead?.commands ?? this.#run.commands ?? failUnknownRounds(this.program.plan)
  }

  /** The launches of a run, each at least once, unless its rounds are too few. */
  get launches(): readonly LaunchCommand[] {
    const { commands, parts } = this.#run
    const all = this.#instead?.commands ?? commands ?? parts.flatMap((p) => p.commands)
    return all.filter((c) => c.kind === 'launch')
  }

  #check(): void {
    this.#origin.resident?.check()
    this.#lent.check()
  }

  /** Records all launches as one graph. Throws SptError like `run`. */
  async graph(): Promise<KernelGraph> {
    const { device } = this.program
    return Object.assign(await device.graph(this.commands), { finish: () => device.finish() })
  }

  /** Measures runs for benchmarks, in milliseconds. Throws SptError like `run`, and `measure/options`. */
  async measure(options: MeasureOptions = {}): Promise<Measurement> {
    return measure(this.program.device, this.commands, options)
  }

  /** Downloads the values of a buffer, in storage order. */
  async values(name: string): Promise<ValueArray> {
    const { device } = this.program
    const { buffer, memory, at } = this.#place(name)
    this.#origin.resident?.check()
    const n = elements(buffer, this.bound, mostElements(device))
    if (n === 0) return newValues(buffer.dtype, 0)
    const unit = elementBytes(device, buffer)
    const bytes = (await device.download(memory, (at + n) * unit)).slice(at * unit)
    return fromDevice(device, buffer.dtype, bytes, n) as ValueArray
  }

  /** Reports errors of graph launches that no call has awaited. Throws SptError like `run`. */
  async #settle(): Promise<void> {
    await this.#chained.settle()
    await this.#outcome.settle()
  }

  async #checkStatus(): Promise<void> {
    // Values that reside only on the device cannot be passed to the reference.
    const source = this.#resident.size === 0 ? this.#origin.source : undefined
    const run = source && { source, bound: this.#bound, bytes: this.bytes }
    const error = await runError(this.program.plan, (b) => this.values(b), this.#bound.params, run)
    if (error) throw error
  }

  /**
   * Returns an output in the caller's coordinates. `whole`: the result of `whole()`; computed if absent and needed. Throws SptError
   * `run/resident`, and like `run` for graph launches that no call has awaited.
   */
  async read(name: string, whole?: Bound): Promise<Tensor> {
    await this.#settle()
    const bound = whole ?? (await this.boundFor([name]))
    const values = new Map<string, ValueArray>()
    for (const b of buffersOf(this.bound.kernel, name)) values.set(b, await this.values(b))
    return readTensor(bound, name, values)
  }

  /** Fills outputs and temporaries with 0xff bytes (NaN), to detect unwritten elements. */
  poison(): Promise<void> {
    return poison(this)
  }

  /** Runs `work`, and then restores the contents of the buffers of these roles. */
  preserving<T>(roles: readonly PlanBuffer['role'][], work: () => Promise<T>): Promise<T> {
    return preserving(this, roles, work)
  }

  memoryOf(name: string): DeviceBuffer {
    return this.#place(name).memory
  }

  free(): void {
    this.#outcome.forget()
    this.#instead?.free()
    const shared = this.#origin.shared?.buffers
    for (const [name, b] of this.memory)
      if (!this.#resident.has(name) && !shared?.has(name)) this.#lent.of(name, b).free()
    this.#chained.release()
    this.#origin.shared?.release()
  }

  async #upload({ buffer, memory, at }: BufferLocation, values: ValueArray): Promise<void> {
    const { device } = this.program
    if (values.length > 0)
      await device.upload(memory, toDevice(device, buffer.dtype, values), at * elementBytes(device, buffer))
  }

  #place(name: string): BufferLocation {
    const place = this.#places.get(name)
    invariant(place, `no buffer ${name}`)
    this.#lent.check()
    return place
  }
}
