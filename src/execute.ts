/**
 * Running a plan on a device: allocations, uploads, fills and launches with concrete grids. What a device cannot
 * hold or launch is refused here, with the buffer's or kernel's name, before anything runs.
 */
import { fail, invariant } from './ast/diagnostic.ts'
import { emit } from './backends/emit.ts'
import { physicalGrid } from './backends/grid.ts'
import type { ModuleText } from './backends/module.ts'
import type { Bound } from './bind/index.ts'
import { readTensor } from './bind/read.ts'
import type { Tensor, ValueArray } from './formats/tensor.ts'
import { newValues } from './formats/values.ts'
import { DTYPE_BYTES, type Dtype } from './ir/dtype.ts'
import { evaluate } from './ir/evaluate.ts'
import type { Buffer, Launch, Plan } from './ir/loops.ts'
import type { Command, CompiledModule, Device, DeviceBuffer, HostArray } from './runtime/device.ts'
import { deviceToHost, hostToDevice, WORD_BYTES } from './runtime/widen.ts'

const MAX_ELEMENTS = 2 ** 31 - 1

export const targetOf = (device: Device): ModuleText['target'] =>
  device.kind === 'cpu' ? 'js' : device.kind === 'webgpu' ? 'wgsl' : 'cuda'

/** A plan compiled for a device: serves any data of its formats. */
export interface Program {
  readonly device: Device
  readonly plan: Plan
  readonly texts: readonly ModuleText[]
  /** By entry name. */
  readonly modules: ReadonlyMap<string, CompiledModule>
  release(): void
}

/** Compiles the texts of a plan. @throws SptError `device/compile`, `emit/…` */
export async function compileOn(device: Device, plan: Plan): Promise<Program> {
  const texts = emit(plan, targetOf(device))
  for (const t of texts) for (const e of t.entries) checkBlock(device, e.name, e.block)
  const compiled = await Promise.all(texts.map((t) => device.compile(t)))
  const modules = new Map(compiled.flatMap((m) => m.text.entries.map((e) => [e.name, m] as const)))
  return {
    device,
    plan,
    texts,
    modules,
    release() {
      for (const m of compiled) m.release()
    },
  }
}

function checkBlock(device: Device, name: string, block: readonly [number, number, number]): void {
  const threads = block[0] * block[1] * block[2]
  const { maxThreadsPerBlock, maxBlockDim } = device.limits
  if (threads > maxThreadsPerBlock || block.some((n, k) => n > maxBlockDim[k]!))
    fail({
      code: 'plan/block-too-large',
      message: `${name} has blocks of ${block.join(' × ')} threads; ${device.name} allows ${maxThreadsPerBlock} (${maxBlockDim.join(', ')} in each dimension)`,
      expected: `at most ${maxThreadsPerBlock} threads`,
      hint: 'bind shorter loops to thread axes: split by a smaller factor',
    })
}

/** Data on a device, ready to run. */
export class Executable {
  readonly program: Program
  readonly bound: Bound
  readonly #memory: ReadonlyMap<string, DeviceBuffer>
  readonly #commands: readonly Command[]
  /** Bytes on the device. */
  readonly bytes: number

  private constructor(program: Program, bound: Bound, memory: ReadonlyMap<string, DeviceBuffer>) {
    this.program = program
    this.bound = bound
    this.#memory = memory
    this.#commands = commandsOf(program, bound, memory)
    this.bytes = [...memory.values()].reduce((n, b) => n + b.bytes, 0)
  }

  /** Allocates and uploads. @throws SptError `device/out-of-memory`, `device/buffer-too-large`, `plan/…` */
  static async create(program: Program, bound: Bound): Promise<Executable> {
    const memory = new Map<string, DeviceBuffer>()
    try {
      for (const b of program.plan.buffers)
        memory.set(b.name, program.device.alloc(byteLength(program.device, b, bound), b.name))
      const executable = new Executable(program, bound, memory)
      await executable.reset()
      return executable
    } catch (error) {
      for (const b of memory.values()) b.free()
      throw error
    }
  }

  /** Uploads all inputs again: an `inout` buffer starts over. */
  async reset(): Promise<void> {
    const { device, plan } = this.program
    for (const b of plan.buffers) {
      const values = this.bound.arrays.get(b.name)
      if (values && values.length > 0)
        await device.upload(this.#memory.get(b.name)!, toDevice(device, b.dtype, values))
    }
  }

  /** New values for one input, in storage order. */
  async write(name: string, values: ValueArray): Promise<void> {
    const { device, plan } = this.program
    const b = plan.buffers.find((x) => x.name === name)
    invariant(b, `no buffer ${name}`)
    if (values.length > 0) await device.upload(this.#buffer(name), toDevice(device, b.dtype, values))
  }

  run(): Promise<void> {
    return this.program.device.run(this.#commands)
  }

  /** Milliseconds of each of `repeats` runs. */
  time(repeats: number): Promise<number[]> {
    return this.program.device.time(this.#commands, repeats)
  }

  /** The values of a buffer in storage order. */
  async values(name: string): Promise<ValueArray> {
    const { device, plan } = this.program
    const b = plan.buffers.find((x) => x.name === name)
    invariant(b, `no buffer ${name}`)
    const n = elements(b, this.bound)
    if (n === 0) return newValues(b.dtype, 0)
    const bytes = await device.download(this.#buffer(name), byteLength(device, b, this.bound))
    if (device.storage === 'words') return deviceToHost(b.dtype, bytes, n) as ValueArray
    return view(b.dtype, bytes, n)
  }

  /** An output in the caller's coordinates. */
  async read(name: string): Promise<Tensor> {
    return readTensor(this.bound, name, await this.values(name))
  }

  /** Fills outputs and temporaries with a byte pattern that no kernel means, to find elements nobody writes. */
  async poison(): Promise<void> {
    const { device, plan } = this.program
    for (const b of plan.buffers) {
      if (b.role !== 'out' && b.role !== 'local') continue
      const bytes = byteLength(device, b, this.bound)
      if (bytes > 0) await device.upload(this.#buffer(b.name), new Uint8Array(bytes).fill(0xff))
    }
  }

  free(): void {
    for (const b of this.#memory.values()) b.free()
  }

  #buffer(name: string): DeviceBuffer {
    const b = this.#memory.get(name)
    invariant(b, `no buffer ${name}`)
    return b
  }
}

function elements(b: Buffer, bound: Bound): number {
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

const byteLength = (device: Device, b: Buffer, bound: Bound): number =>
  elements(b, bound) * (device.storage === 'words' ? WORD_BYTES : DTYPE_BYTES[b.dtype])

const toDevice = (device: Device, dtype: Dtype, values: ValueArray): HostArray =>
  device.storage === 'words' ? hostToDevice(dtype, values) : values

const VIEW = {
  f64: Float64Array,
  f32: Float32Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i8: Int8Array,
  u8: Uint8Array,
  bool: Uint8Array,
} as const

const view = (dtype: Dtype, bytes: ArrayBuffer, length: number): ValueArray =>
  new VIEW[dtype](bytes, 0, length)

function commandsOf(program: Program, bound: Bound, memory: ReadonlyMap<string, DeviceBuffer>): Command[] {
  const { plan, device } = program
  const commands: Command[] = []
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
    const buffers = entry.args.filter((a) => a.kind === 'buffer').length
    if (buffers > device.limits.maxBuffersPerLaunch)
      fail({
        code: 'plan/too-many-buffers',
        message: `${entry.name} uses ${buffers} buffers; ${device.name} allows ${device.limits.maxBuffersPerLaunch} in one launch`,
        expected: `at most ${device.limits.maxBuffersPerLaunch}`,
        hint: 'split the kernel into iterations that use fewer tensors, or run it on cpu or cuda',
      })
    const args = entry.args.map((a) =>
      a.kind === 'buffer' ? memory.get(a.name)! : bound.params.get(a.name)!,
    )
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
