/**
 * Running a plan on a device: allocations, uploads, fills and launches with concrete grids. What a device cannot
 * hold or launch is refused here, with the buffer's or kernel's name, before anything runs.
 */
import { fail, invariant } from '../ast/diagnostic.ts'
import { arrayClass } from '../ir/arrays.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { Buffer } from '../ir/loops.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import type { Command, Device, DeviceBuffer, HostArray } from '../runtime/device.ts'
import { type Measurement, type MeasureOptions, measure } from '../runtime/measure.ts'
import { deviceToHost, hostToDevice, isWord } from '../runtime/widened-elements.ts'
import type { Tensor, ValueArray } from '../storage/tensor.ts'
import { newValues } from '../storage/values.ts'
import { buffersOf, isAlone, readTensor } from './bind/gather-results.ts'
import type { Bound } from './bind/index.ts'
import { type BufferLocation, byteLength, elements, labelOf, placesOf } from './buffer-layout.ts'
import type { Instead, Program } from './compiled-program.ts'
import { checkFacts, elementBytes } from './device-limits.ts'
import type { Origin, Residents, SharedMemory } from './given-memory.ts'
import { checkRanges } from './index-ranges.ts'
import { commandsOf } from './launch-commands.ts'
import { lostWrites } from './lost-write-error.ts'
import { KernelGraph } from './replay.ts'

export { checkFits } from './buffer-layout.ts'
export { compileOn, lanesOf, type Program } from './compiled-program.ts'

/** Data on a device, ready to run. */
export class Executable {
  readonly program: Program
  #bound: Bound
  readonly #memory: ReadonlyMap<string, DeviceBuffer>
  readonly #places: ReadonlyMap<string, BufferLocation>
  readonly #commands: readonly Command[]
  #instead: Instead | undefined
  readonly #resident: ReadonlyMap<string, DeviceBuffer>
  readonly #residents: Residents | undefined
  readonly #shared: SharedMemory | undefined
  readonly #source: Kernel1 | undefined
  /** Bytes on the device. */
  readonly bytes: number

  private constructor(
    program: Program,
    bound: Bound,
    memory: ReadonlyMap<string, DeviceBuffer>,
    { resident, shared, source }: Origin,
  ) {
    this.program = program
    this.#shared = shared
    this.#source = source
    this.#bound = bound
    this.#memory = memory
    this.#residents = resident
    this.#resident = resident?.buffers ?? new Map()
    this.#places = placesOf(program, bound, memory)
    this.#commands = program.instead ? [] : commandsOf(program, bound, memory)
    this.bytes = [...memory.values()].reduce((n, b) => n + b.bytes, 0)
  }

  /** What is bound on the host: resident tensors without their entries. */
  get bound(): Bound {
    return this.#bound
  }

  /** Names of the tensors that were on the device before. */
  get residents(): readonly string[] {
    return this.#residents?.tensors ?? []
  }

  /** What is bound, with what resident tensors hold now: they are downloaded each time. @throws SptError `run/resident` */
  async whole(): Promise<Bound> {
    if (!this.#residents) return this.#bound
    return this.#residents.whole(this.#bound, async (buffer) =>
      this.#places.has(buffer) ? this.values(buffer) : null,
    )
  }

  /** The same as far as reading these outputs needs it. @throws SptError `run/resident` */
  async boundFor(names: readonly string[]): Promise<Bound> {
    return names.every((name) => isAlone(this.bound.kernel, name)) ? this.#bound : this.whole()
  }

  /**
   * Allocates and uploads.
   * @throws SptError `device/out-of-memory`, `device/buffer-too-large`, `plan/…`
   */
  static async create(program: Program, bound: Bound, origin: Origin = {}): Promise<Executable> {
    const there = new Map([...(origin.resident?.buffers ?? []), ...(origin.shared?.buffers ?? [])])
    if (!program.live)
      fail({
        code: 'device/released-module',
        message: `kernel ${program.plan.name} has been released`,
        hint: 'compile it again: kernel.compile(device)',
      })
    checkFacts(program.plan, bound.params)
    checkRanges(program.plan, bound.params)
    const memory = new Map<string, DeviceBuffer>()
    try {
      for (const b of program.plan.buffers)
        memory.set(
          b.name,
          there.get(b.name) ??
            program.device.alloc(byteLength(program.device, b, bound), labelOf(program, b)),
        )
      const executable = new Executable(program, bound, memory, origin)
      await executable.#pack()
      await executable.#bring(() => true)
      executable.#instead = program.instead?.(bound, memory)
      return executable
    } catch (error) {
      for (const [name, b] of memory) if (!there.has(name)) b.free()
      throw error
    }
  }

  /** Copies resident arrays to where they are packed with others. */
  async #pack(): Promise<void> {
    const { device } = this.program
    for (const [name, { buffer, memory, at }] of this.#places) {
      const from = this.#resident.get(name)
      if (!from || from === memory) continue
      const unit = elementBytes(device, buffer)
      const bytes = elements(buffer, this.bound) * unit
      if (bytes > 0)
        await device.upload(memory, new Uint8Array(await device.download(from, bytes)), at * unit)
    }
  }

  /** `inout` buffers start over, but for resident ones. Runs leave what is only read as it is. */
  reset(): Promise<void> {
    return this.#bring((b) => b.role === 'inout')
  }

  async #bring(which: (b: Buffer) => boolean): Promise<void> {
    for (const [name, place] of this.#places) {
      const known = which(place.buffer) && !this.#resident.has(name) && !this.#shared?.buffers.has(name)
      const values = known ? this.bound.arrays.get(name) : undefined
      if (values) await this.#upload(place, values)
    }
  }

  /** New values for one input, in storage order. @throws SptError `run/shared` where others read the same memory */
  async write(name: string, values: ValueArray): Promise<void> {
    if (this.#shared?.buffers.has(name))
      fail({
        code: 'run/shared',
        message: `the memory of ${name} is read by all kernels of its workspace`,
        expected: 'a kernel with memory of its own',
        hint: 'prepare it by itself (compiled.prepare), or make another workspace',
      })
    await this.#upload(this.#place(name), values)
  }

  /** Other values in some buffers of the same structure. */
  async rebind(bound: Bound, buffers: readonly string[]): Promise<void> {
    this.#bound = bound
    for (const name of buffers) await this.write(name, bound.arrays.get(name)!)
  }

  /** @throws SptError `run/lost-writes` where a write found no element; the outputs lack it, the rest is there */
  async run(): Promise<void> {
    await this.program.device.run(this.commands)
    await this.#checkLostWrites()
  }

  /** Milliseconds of each of `repeats` runs. @throws SptError `run/lost-writes` */
  async time(repeats: number): Promise<number[]> {
    const times = await this.program.device.time(this.commands, repeats)
    await this.#checkLostWrites()
    return times
  }

  /** What `run` runs, for graphs of several kernels. @throws SptError `device/freed` */
  get commands(): readonly Command[] {
    this.#residents?.check()
    return this.#instead?.commands ?? this.#commands
  }

  /** All launches as one graph. @throws SptError as `run` */
  async graph(): Promise<KernelGraph> {
    const { device } = this.program
    const graph = await device.graph(this.commands)
    return new KernelGraph(
      graph,
      () => device.finish(),
      () => this.#checkLostWrites(),
    )
  }

  /** Times of runs as benchmarks want them. @throws SptError `run/lost-writes`, `measure/options` */
  async measure(options: MeasureOptions = {}): Promise<Measurement> {
    const measured = await measure(this.program.device, this.commands, options)
    await this.#checkLostWrites()
    return measured
  }

  /** The values of a buffer in storage order. */
  async values(name: string): Promise<ValueArray> {
    const { device } = this.program
    const { buffer, memory, at } = this.#place(name)
    this.#residents?.check()
    const n = elements(buffer, this.bound)
    if (n === 0) return newValues(buffer.dtype, 0)
    const unit = elementBytes(device, buffer)
    const bytes = (await device.download(memory, (at + n) * unit)).slice(at * unit)
    if (isWord(device, buffer.dtype)) return deviceToHost(buffer.dtype, bytes, n) as ValueArray
    return view(buffer.dtype, bytes, n)
  }

  async #checkLostWrites(): Promise<void> {
    const { plan } = this.program
    if (!plan.lostWrites) return
    const status = await this.values(plan.lostWrites.buffer)
    const lost = plan.lostWrites.targets.filter((_, k) => status[k] !== 0)
    if (lost.length === 0) return
    // Values that are only on the device are not known here.
    const source = this.#resident.size === 0 ? this.#source : undefined
    throw lostWrites(plan.name, lost, source && { source, bound: this.#bound, bytes: this.bytes })
  }

  /**
   * An output in the caller's coordinates. `whole`: as `whole()` was; where it matters and is left out, it is asked for.
   * @throws SptError `run/resident`
   */
  async read(name: string, whole?: Bound): Promise<Tensor> {
    const bound = whole ?? (await this.boundFor([name]))
    const values = new Map<string, ValueArray>()
    for (const b of buffersOf(this.bound.kernel, name)) values.set(b, await this.values(b))
    return readTensor(bound, name, values)
  }

  /** Fills outputs and temporaries with a byte pattern that no kernel means, to find elements nobody writes. */
  async poison(): Promise<void> {
    const { device, plan } = this.program
    for (const b of plan.buffers) {
      if (b.role !== 'out' && b.role !== 'local') continue
      const bytes = byteLength(device, b, this.bound)
      if (bytes > 0) await device.upload(this.#place(b.name).memory, new Uint8Array(bytes).fill(0xff))
    }
  }

  /** Does `work`, and then brings back what buffers of these roles held before. */
  async preserving<T>(roles: readonly Buffer['role'][], work: () => Promise<T>): Promise<T> {
    const { device, plan } = this.program
    const contents: [DeviceBuffer, Uint8Array][] = []
    for (const b of plan.buffers) {
      // Arenas hold what is only read.
      if (!roles.includes(b.role)) continue
      const { memory } = this.#place(b.name)
      const bytes = byteLength(device, b, this.bound)
      if (bytes > 0) contents.push([memory, new Uint8Array(await device.download(memory, bytes))])
    }
    try {
      return await work()
    } finally {
      for (const [memory, bytes] of contents) await device.upload(memory, bytes)
    }
  }

  free(): void {
    this.#instead?.free()
    const shared = this.#shared?.buffers
    for (const [name, b] of this.#memory) if (!this.#resident.has(name) && !shared?.has(name)) b.free()
    this.#shared?.release()
  }

  async #upload({ buffer, memory, at }: BufferLocation, values: ValueArray): Promise<void> {
    const { device } = this.program
    if (values.length > 0)
      await device.upload(memory, toDevice(device, buffer.dtype, values), at * elementBytes(device, buffer))
  }

  #place(name: string): BufferLocation {
    const place = this.#places.get(name)
    invariant(place, `no buffer ${name}`)
    return place
  }
}

const toDevice = (device: Device, dtype: Dtype, values: ValueArray): HostArray =>
  isWord(device, dtype) ? hostToDevice(dtype, values) : values

const view = (dtype: Dtype, bytes: ArrayBuffer, length: number): ValueArray =>
  new (arrayClass(dtype))(bytes, 0, length)
