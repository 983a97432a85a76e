/** Device memory that is passed to an executable, and owned by the caller. */

import { failAs, failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import type { Device, DeviceBuffer, NativeRange } from '../../runtime/device.ts'
import { failFreedBuffer } from '../../runtime/device-checks.ts'
import { DISPOSE } from '../../runtime/dispose.ts'
import { fromDevice, storedBytes } from '../../runtime/webgpu/widened-elements.ts'
import { DenseOnDevice, type DenseTensor, type ValueArray } from '../../storage/tensor.ts'
import { callerTensor, isRowMajor } from '../bind/bind-plan.ts'
import type { Bound } from '../bind/index.ts'
import { extentsOf } from '../bind/sources/coordinate-sources.ts'
import type { Program } from '../compile/program.ts'
import { Turns } from './call-queue.ts'

/** Tensors that were on the device before. On the host, only their shapes are bound. */
export interface Residents {
  readonly tensors: readonly string[]
  /**
   * Device buffers of these tensors by name, possibly longer than needed. They are used in place and owned by the caller; arrays packed
   * into arenas are copied.
   */
  readonly buffers: ReadonlyMap<string, DeviceBuffer>
  /** Returns the host data with the current entries of the tensors. `values` downloads a buffer; `null` if the program does not use it. */
  whole(bound: Bound, values: (buffer: string) => Promise<ValueArray | null>): Promise<Bound>
  /** Throws SptError `device/freed` if their memory has been freed. */
  check(): void
}

/** Memory that several executables share. The owner uploads it, and no executable writes the inputs. */
export interface SharedMemory {
  /** True if the executables are one kernel on the same data under different schedules, so each may write new values. */
  readonly isOwn?: boolean
  /** Device buffers by name in the program: inputs contain the bound values, others are overwritten by each run. */
  readonly buffers: ReadonlyMap<string, DeviceBuffer>
  /** Called when the executable is freed; may be called repeatedly. */
  release(): void
}

/** Reference-counted memory of an executable that others read. It is freed with its last user. */
export class CountedMemory {
  readonly buffer: DeviceBuffer
  #isOwned = true
  #readers = 0

  constructor(buffer: DeviceBuffer) {
    this.buffer = buffer
  }

  /** False after the writing executable has been freed. */
  get isOwned(): boolean {
    return this.#isOwned
  }

  get freed(): boolean {
    return !this.#isOwned && this.#readers === 0
  }

  /** Adds a reader; the returned function removes it, and may be called repeatedly. Throws SptError `device/freed`. */
  hold(what: string): () => void {
    if (this.freed)
      failWith('device/freed', `${what} has been freed, with the kernel that writes it`, {
        hint: 'free a kernel after preparing the last kernel that reads the outputs',
      })
    this.#readers++
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      this.#readers--
      this.#freeUnused()
    }
  }

  /** Releases the writer's ownership; readers keep the memory. */
  free(): void {
    this.#isOwned = false
    this.#freeUnused()
  }

  #freeUnused(): void {
    if (this.freed) this.buffer.free()
  }
}

/** Outputs of an executable that other kernels may read. */
export class LentOutputs {
  readonly #lent = new Map<string, CountedMemory>()

  of(name: string, buffer: DeviceBuffer): CountedMemory {
    return getOrAdd(this.#lent, name, () => new CountedMemory(buffer))
  }

  /** Throws SptError `device/freed-buffer` if the executable itself has been freed, even if others still read its outputs. */
  check(): void {
    for (const { buffer, isOwned } of this.#lent.values())
      if (!isOwned) failFreedBuffer(buffer, 'a kernel that was freed')
  }
}

export interface Origin {
  readonly resident?: Residents
  readonly shared?: SharedMemory
  /** The kernel as written, which lets errors name coordinates; undefined if they need not. */
  readonly source?: Kernel1
}

/**
 * An output of a binding, on its device. Each run of that kernel changes its values, because it is the kernel's own memory. It is
 * freed after the writing kernel and all kernels bound to it.
 */
export class ResidentDense extends DenseOnDevice {
  readonly device: Device
  readonly #memory: CountedMemory
  readonly #turns: Turns
  readonly #settle: () => Promise<void>

  /** @internal */
  constructor(
    of: Pick<ResidentDense, 'shape' | 'dtype' | 'origin' | 'device'>,
    memory: CountedMemory,
    turns: Turns,
    settle: () => Promise<void>,
  ) {
    super(of)
    this.device = of.device
    this.#memory = memory
    this.#turns = turns
    this.#settle = settle
  }

  get bytes(): number {
    return this.#memory.buffer.bytes
  }

  get freed(): boolean {
    return this.#memory.freed
  }

  /** Downloads the values after all earlier calls on the kernels that it connects. Throws SptError `device/freed-buffer`. */
  download(): Promise<DenseTensor> {
    return this.#turns.take(() => this.downloadNow())
  }

  /** Reports errors of graphs that compute this output. Throws SptError like `run` of the kernel that writes the output. */
  settle(): Promise<void> {
    return this.#settle()
  }

  /** Downloads the values inside a queued call. */
  async downloadNow(): Promise<DenseTensor> {
    await this.settle()
    const { device, shape, dtype } = this
    const n = shape.reduce((a, b) => a * b, 1)
    const bytes = n * storedBytes(device, dtype)
    const memory = n === 0 ? new ArrayBuffer(0) : await device.download(this.memory, bytes)
    return { kind: 'dense', shape, values: fromDevice(device, dtype, memory, n) as ValueArray, dtype }
  }

  get memory(): DeviceBuffer {
    return this.#memory.buffer
  }

  /** The memory for other libraries on the device: a `GPUBuffer`, an address or an `ArrayBuffer`. @throws SptError `device/freed-buffer` */
  get native(): NativeRange {
    return this.device.native(this.memory)
  }

  /** Keeps the memory until the returned function is called. Throws SptError `device/freed`. */
  hold(): () => void {
    return this.#memory.hold(this.origin)
  }

  /** @internal Orders calls on a kernel that is bound to it after earlier calls on the other kernels. */
  joins(turns: Turns): void {
    this.#turns.join(turns)
  }
}

/** A dense tensor in memory of the caller. Kernels that are bound to the tensor run in call order. */
export class CallersDense extends ResidentDense {
  override readonly isCallers = true
  readonly #handle: CountedMemory

  constructor(of: Pick<ResidentDense, 'shape' | 'dtype' | 'origin' | 'device'>, memory: DeviceBuffer) {
    const handle = new CountedMemory(memory)
    super(of, handle, new Turns(), async () => {})
    this.#handle = handle
  }

  /** Ends the use of the memory with the last kernel that is bound to the tensor. The memory itself is left intact. */
  free(): void {
    this.#handle.free()
  }

  [DISPOSE](): void {
    this.free()
  }
}

/**
 * Returns an output as a device-resident tensor. `lend`: returns the memory of the buffer. Throws SptError `run/resident`, `run/shared`,
 * `device/freed-buffer`.
 */
export function residentOutput(
  { device }: Program,
  { kernel, params }: Bound,
  of: {
    readonly name: string
    readonly turns: Turns
    readonly isShared: boolean
    readonly lend: () => CountedMemory
    readonly settle: () => Promise<void>
  },
): ResidentDense {
  const { name } = of
  const t = callerTensor(kernel, name)
  const refuse = (why: string, hint: string): never =>
    failAs('run/resident', {
      message: `${name} of ${kernel.name} cannot stay on the device for another kernel: ${why}`,
      expected: 'a dense output that is stored as declared',
      hint,
    })
  const role = t?.first.role
  if (!t || (role !== 'out' && role !== 'inout'))
    refuse(`it is ${role === 'in' ? 'an input' : 'temporary'}`, 'bind an input to each kernel that reads it')
  else if (!isRowMajor(t))
    refuse(
      'it is sparse, in a format, or in another order of its dimensions',
      `bind a sparse result that stays on the device: bindResident(kernel, { ${name}: parts, … }); or read it: await binding.get('${name}')`,
    )
  if (of.isShared)
    failWith('run/shared', `the memory of ${name} is written by every kernel of the workspace`, {
      expected: 'a kernel with separate outputs',
      hint: 'bind the kernel by itself (fn.bind), or make a workspace without shareOutputs',
    })
  const { axes, first } = t!
  const extents = extentsOf(kernel, params)
  const shape = axes.map((a) => extents.get(a)!)
  const origin = `${name} of ${kernel.name}`
  return new ResidentDense({ shape, dtype: first.dtype, origin, device }, of.lend(), of.turns, of.settle)
}

/** Dense tensors on the device that are bound to a kernel: outputs of other kernels, and memory of the caller. */
export class Chained {
  readonly tensors: ReadonlyMap<string, ResidentDense>
  #held: readonly (() => void)[] = []

  /** Collects the tensors. Throws SptError `run/other-device`, `run/resident`. */
  constructor(program: Program, bound: Bound) {
    const tensors = new Map<string, ResidentDense>()
    for (const [name, t] of bound.given) {
      if (!(t instanceof ResidentDense)) continue
      if (t.device !== program.device)
        failAs('run/other-device', {
          message: `${name} of kernel ${bound.kernel.name} is bound to ${t.origin}, which is on another device: ${t.device.name}`,
          expected: `a tensor of the device that the kernel was compiled for: ${program.device.name}`,
          hint: 'copy the tensor over the host: await resident.download()',
        })
      const { packed } = program.plan
      const arena = packed.find((p) => p.name === name)?.in
      if (arena !== undefined)
        failAs('run/resident', {
          message: `${name} of kernel ${bound.kernel.name} shares a buffer with ${packed
            .flatMap((p) => (p.in === arena && p.name !== name ? [p.name] : []))
            .join(
              ', ',
            )} (${program.device.name} binds ${program.device.limits.maxBuffersPerLaunch} to a launch), and is bound to ${t.origin}, which has its own`,
          expected: 'a schedule whose launches take fewer arrays',
          hint: 'bind the tensor from the host: await resident.download()',
        })
      tensors.set(name, t)
    }
    this.tensors = tensors
  }

  get buffers(): ReadonlyMap<string, DeviceBuffer> {
    return new Map([...this.tensors].map(([name, t]) => [name, t.memory]))
  }

  /** Keeps the outputs until `release`. Throws SptError `device/freed`. */
  hold(): void {
    for (const t of this.tensors.values()) this.#held = [...this.#held, t.hold()]
  }

  release(): void {
    for (const f of this.#held) f()
  }

  async settle(): Promise<void> {
    for (const t of this.tensors.values()) await t.settle()
  }

  /** Returns `bound` with the current values of the inputs. */
  async downloaded(bound: Bound): Promise<Bound> {
    if (this.tensors.size === 0) return bound
    const [dense, arrays] = [new Map(bound.dense), new Map(bound.arrays)]
    for (const [name, t] of this.tensors) {
      if (!bound.dense.has(name)) continue
      const now = await t.downloadNow()
      dense.set(name, now)
      arrays.set(name, now.values)
    }
    return { ...bound, dense, arrays }
  }
}
