/**
 * Running a plan on a device: allocations, uploads, fills and launches with concrete grids. What a device cannot
 * hold or launch is refused here, with the buffer's or kernel's name, before anything runs.
 */
import { fail, invariant } from './ast/diagnostic.ts'
import { emit, LANES } from './backends/emit.ts'
import { physicalGrid } from './backends/grid.ts'
import type { ModuleText } from './backends/module.ts'
import type { Bound } from './bind/index.ts'
import { buffersOf, readTensor } from './bind/read.ts'
import type { Tensor, ValueArray } from './formats/tensor.ts'
import { newValues } from './formats/values.ts'
import { arrayClass } from './ir/arrays.ts'
import type { Dtype } from './ir/dtype.ts'
import { evaluate } from './ir/evaluate.ts'
import { freeVars } from './ir/expr.ts'
import type { Buffer, Launch, Plan } from './ir/loops.ts'
import { checkFacts, checkLimits, elementBytes } from './limits.ts'
import { type Arena, packBuffers } from './lower/pack.ts'
import { checkAlloc } from './runtime/check.ts'
import type { Command, CompiledModule, Device, DeviceBuffer, HostArray } from './runtime/device.ts'
import { deviceToHost, hostToDevice } from './runtime/widen.ts'

/** How many neighbouring threads of the device exchange registers in plans for it. */
export const lanesOf = (device: Device): number => LANES[targetOf(device)]

const MAX_ELEMENTS = 2 ** 31 - 1

export const targetOf = (device: Device): ModuleText['target'] =>
  device.kind === 'cpu' ? 'js' : device.kind === 'webgpu' ? 'wgsl' : 'cuda'

/** A plan compiled for a device: serves any data of its formats. */
export interface Program {
  readonly device: Device
  /** As the device runs it: arrays may have been packed. */
  readonly plan: Plan
  readonly arenas: readonly Arena[]
  readonly texts: readonly ModuleText[]
  /** By entry name. */
  readonly modules: ReadonlyMap<string, CompiledModule>
  release(): void
}

/** Compiles the texts of a plan. @throws SptError `device/compile`, `emit/…`, `plan/…` */
export async function compileOn(device: Device, whole: Plan): Promise<Program> {
  const packed = packBuffers(whole, device.limits.maxBuffersPerLaunch)
  const { plan, arenas } = packed
  checkLimits(device, packed)
  const texts = emit(plan, targetOf(device))
  const compiled = await Promise.all(texts.map((t) => device.compile(t)))
  const modules = new Map(compiled.flatMap((m) => m.text.entries.map((e) => [e.name, m] as const)))
  return {
    device,
    plan,
    arenas,
    texts,
    modules,
    release() {
      for (const m of compiled) m.release()
    },
  }
}

/** Where a buffer of the kernel lies: from element `at` of device memory on. */
interface Place {
  readonly buffer: Buffer
  readonly memory: DeviceBuffer
  readonly at: number
}

/** Data on a device, ready to run. */
export class Executable {
  readonly program: Program
  #bound: Bound
  readonly #memory: ReadonlyMap<string, DeviceBuffer>
  readonly #places: ReadonlyMap<string, Place>
  readonly #commands: readonly Command[]
  readonly #resident: ReadonlyMap<string, DeviceBuffer>
  /** Bytes on the device. */
  readonly bytes: number

  private constructor(
    program: Program,
    bound: Bound,
    memory: ReadonlyMap<string, DeviceBuffer>,
    resident: ReadonlyMap<string, DeviceBuffer>,
  ) {
    this.program = program
    this.#bound = bound
    this.#memory = memory
    this.#resident = resident
    this.#places = placesOf(program, bound, memory)
    this.#commands = commandsOf(program, bound, memory)
    this.bytes = [...memory.values()].reduce((n, b) => n + b.bytes, 0)
  }

  get bound(): Bound {
    return this.#bound
  }

  /**
   * Allocates and uploads. Buffers whose arrays are `resident` on the device (by name; they may be longer) are used
   * where they are and stay the caller's; only where the program packs arrays, they are copied.
   * @throws SptError `device/out-of-memory`, `device/buffer-too-large`, `plan/…`
   */
  static async create(
    program: Program,
    bound: Bound,
    resident: ReadonlyMap<string, DeviceBuffer> = new Map(),
  ): Promise<Executable> {
    checkFacts(program.plan, bound.params)
    const memory = new Map<string, DeviceBuffer>()
    try {
      for (const b of program.plan.buffers)
        memory.set(
          b.name,
          resident.get(b.name) ??
            program.device.alloc(byteLength(program.device, b, bound), labelOf(program, b)),
        )
      const executable = new Executable(program, bound, memory, resident)
      await executable.#pack()
      await executable.reset()
      return executable
    } catch (error) {
      for (const [name, b] of memory) if (!resident.has(name)) b.free()
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

  /** Uploads all inputs again, but for resident ones: an `inout` buffer starts over. */
  async reset(): Promise<void> {
    for (const [name, place] of this.#places) {
      const values = this.#resident.has(name) ? undefined : this.bound.arrays.get(name)
      if (values) await this.#upload(place, values)
    }
  }

  /** New values for one input, in storage order. */
  async write(name: string, values: ValueArray): Promise<void> {
    await this.#upload(this.#place(name), values)
  }

  /** Other values in some buffers of the same structure. */
  async rebind(bound: Bound, buffers: readonly string[]): Promise<void> {
    this.#bound = bound
    for (const name of buffers) await this.write(name, bound.arrays.get(name)!)
  }

  /** @throws SptError `run/lost-writes` where a write found no element; the outputs lack it, the rest is there */
  async run(): Promise<void> {
    await this.program.device.run(this.#commands)
    await this.#checkLostWrites()
  }

  /** Milliseconds of each of `repeats` runs. @throws SptError `run/lost-writes` */
  async time(repeats: number): Promise<number[]> {
    const times = await this.program.device.time(this.#commands, repeats)
    await this.#checkLostWrites()
    return times
  }

  /** The values of a buffer in storage order. */
  async values(name: string): Promise<ValueArray> {
    const { device } = this.program
    const { buffer, memory, at } = this.#place(name)
    const n = elements(buffer, this.bound)
    if (n === 0) return newValues(buffer.dtype, 0)
    const unit = elementBytes(device, buffer)
    const bytes = (await device.download(memory, (at + n) * unit)).slice(at * unit)
    if (device.storage === 'words') return deviceToHost(buffer.dtype, bytes, n) as ValueArray
    return view(buffer.dtype, bytes, n)
  }

  async #checkLostWrites(): Promise<void> {
    const { plan } = this.program
    if (!plan.lostWrites) return
    const status = await this.values(plan.lostWrites.buffer)
    const lost = plan.lostWrites.targets.filter((_, k) => status[k] !== 0)
    if (lost.length > 0)
      fail({
        code: 'run/lost-writes',
        message: `${plan.name} writes elements of ${lost.join(' and ')} that do not exist`,
        expected: 'writes to coordinates that the buffer holds',
        hint: `bind ${lost.join(' and ')} with a structure that holds all that is written, or guard the write with if`,
      })
  }

  /** An output in the caller's coordinates. */
  async read(name: string): Promise<Tensor> {
    const values = new Map<string, ValueArray>()
    for (const b of buffersOf(this.bound.kernel, name)) values.set(b, await this.values(b))
    return readTensor(this.bound, name, values)
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

  free(): void {
    for (const [name, b] of this.#memory) if (!this.#resident.has(name)) b.free()
  }

  async #upload({ buffer, memory, at }: Place, values: ValueArray): Promise<void> {
    const { device } = this.program
    if (values.length > 0)
      await device.upload(memory, toDevice(device, buffer.dtype, values), at * elementBytes(device, buffer))
  }

  #place(name: string): Place {
    const place = this.#places.get(name)
    invariant(place, `no buffer ${name}`)
    return place
  }
}

/** An arena goes by what it holds: its own name says nothing to a user. */
const labelOf = (program: Program, b: Buffer): string =>
  program.arenas
    .find((a) => a.buffer.name === b.name)
    ?.members.map((m) => m.buffer.name)
    .join(' + ') ?? b.name

function placesOf(
  program: Program,
  bound: Bound,
  memory: ReadonlyMap<string, DeviceBuffer>,
): ReadonlyMap<string, Place> {
  const arenas = new Set(program.arenas.map((a) => a.buffer.name))
  const whole = program.plan.buffers
    .filter((b) => !arenas.has(b.name))
    .map((buffer): Place => ({ buffer, memory: memory.get(buffer.name)!, at: 0 }))
  const packed = program.arenas.flatMap((a) =>
    a.members.map(
      ({ buffer, offset }): Place => ({
        buffer,
        memory: memory.get(a.buffer.name)!,
        at: evaluate(offset, bound.params),
      }),
    ),
  )
  return new Map([...whole, ...packed].map((p) => [p.buffer.name, p]))
}

/** What sizes are known by. */
type Sized = Pick<Bound, 'params'>

function elements(b: Buffer, bound: Sized): number {
  const n = b.shape.reduce((size, e) => size * Math.max(0, evaluate(e, bound.params)), 1)
  if (n > MAX_ELEMENTS)
    fail({
      code: 'plan/too-large',
      message: `${b.name} has ${n} elements`,
      expected: `at most ${MAX_ELEMENTS}: addresses are 32-bit`,
      hint: 'use smaller sizes, or partition the tensor',
    })
  return n
}

const byteLength = (device: Device, b: Buffer, bound: Sized): number =>
  elements(b, bound) * elementBytes(device, b)

/**
 * Buffers whose lengths these sizes give, against the limits of the device: before data of those sizes are made.
 * Their bytes in total.
 * @throws SptError `plan/too-large`, `device/buffer-too-large`
 */
export function checkFits({ device, plan }: Program, params: ReadonlyMap<string, number>): number {
  checkFacts(plan, params)
  let total = 0
  for (const b of plan.buffers) {
    if (b.shape.some((e) => [...freeVars(e)].some((v) => !params.has(v)))) continue
    const bytes = byteLength(device, b, { params })
    checkAlloc(bytes, b.name, device.limits)
    total += bytes
  }
  return total
}

const toDevice = (device: Device, dtype: Dtype, values: ValueArray): HostArray =>
  device.storage === 'words' ? hostToDevice(dtype, values) : values

const view = (dtype: Dtype, bytes: ArrayBuffer, length: number): ValueArray =>
  new (arrayClass(dtype))(bytes, 0, length)

function commandsOf(program: Program, bound: Bound, memory: ReadonlyMap<string, DeviceBuffer>): Command[] {
  const { plan, device } = program
  const commands: Command[] = []
  const bases = program.arenas.flatMap((a) =>
    a.members.map((m) => [m.base, evaluate(m.offset, bound.params)] as const),
  )
  const params = new Map([...bound.params, ...bases])
  const entries = program.texts.flatMap((t) => t.entries)
  let next = 0
  for (const step of plan.steps) {
    if (step.kind === 'clear') {
      const buffer = memory.get(step.buffer)!
      if (buffer.bytes > 0) commands.push({ kind: 'clear', buffer })
      continue
    }
    const entry = entries[next++]!
    const grid = gridOf(device, step, bound)
    if (!grid) continue
    const args = entry.args.map((a) => (a.kind === 'buffer' ? memory.get(a.name)! : params.get(a.name)!))
    commands.push({ kind: 'launch', module: program.modules.get(entry.name)!, entry: entry.name, grid, args })
  }
  return commands
}

/** The physical grid, or nothing where there is nothing to do. */
function gridOf(device: Device, launch: Launch, bound: Bound): [number, number, number] | undefined {
  const logical = launch.grid.map((e) => evaluate(e, bound.params))
  if (logical.some((n) => n <= 0)) return undefined
  if (device.kind === 'cpu') return [1, 1, 1]
  const total = logical.reduce((a, b) => a * b, 1)
  const grid = physicalGrid(total, device.limits.maxGridDim)
  if (!grid)
    fail({
      code: 'plan/grid-too-large',
      message: `${launch.name} needs ${total} blocks; ${device.name} cannot launch so many`,
      expected: `at most ${device.limits.maxGridDim.slice(0, 2).join(' × ')} blocks`,
      hint: 'let each block do more: split the loops bound to block axes by a larger factor',
    })
  return grid
}
