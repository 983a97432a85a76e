/**
 * Columns in device memory and the commands that fill them. Kernels are built from expressions, once for each
 * structure; commands are collected and run in order when something is read back.
 */
import { fail, invariant } from '../ast/diagnostic.ts'
import { emit } from '../backends/emit.ts'
import { physicalGrid } from '../backends/grid.ts'
import { arrayClass } from '../ir/arrays.ts'
import { DTYPE_BYTES, type Dtype } from '../ir/dtype.ts'
import type { Expr } from '../ir/expr.ts'
import type { Stmt } from '../ir/loops.ts'
import { lowerToMemory } from '../lower/pipeline.ts'
import type { Command, CompiledModule, Device, DeviceBuffer, HostArray } from '../runtime/device.ts'
import { deviceToHost, hostToDevice, WORD_BYTES } from '../runtime/widen.ts'
import { kernelOf } from './kernel.ts'
import { TUNINGS, type Tuning } from './tuning.ts'

/** `length` elements of device memory; the memory may be longer. */
export interface Column {
  readonly memory: DeviceBuffer
  readonly dtype: Dtype
  readonly length: number
}

/** How a launch uses a column. `natural`: it is only read, and no element is negative. */
export interface Use {
  readonly column: Column
  readonly access: 'natural' | 'read' | 'write' | 'update'
}

export const natural = (column: Column): Use => ({ column, access: 'natural' })
export const read = (column: Column): Use => ({ column, access: 'read' })
export const write = (column: Column): Use => ({ column, access: 'write' })
export const update = (column: Column): Use => ({ column, access: 'update' })

export interface LaunchSpec {
  /** With the names, types and accesses of the columns, it tells kernels apart: `body` depends on nothing else. */
  readonly key: string
  /** How many threads; or blocks, where threads share memory. */
  readonly threads: number
  /** `body` is what block `e` does, in loops over its threads (`each`). */
  readonly shared?: boolean
  readonly columns: Readonly<Record<string, Use>>
  readonly sizes?: Readonly<Record<string, number>>
  /** What thread `e` does: writes elements that no other thread touches, or updates atomically. */
  readonly body: (e: Expr) => readonly Stmt[]
}

interface Kernel {
  readonly module: CompiledModule
  readonly entry: string
  readonly args: CompiledModule['text']['entries'][number]['args']
}

type Pending =
  | { readonly kind: 'clear'; readonly buffer: DeviceBuffer }
  | { readonly kind: 'launch'; readonly kernel: Promise<Kernel>; readonly spec: LaunchSpec }

/** Threads of a block. */
export const BLOCK = 128
const MAX_CELLS = 2 ** 14
/** Turns of the microtask queue that a read waits, so that others who are about to ask are answered with it. */
const PATIENCE = 64

/** Memory, kernels and commands of one device. */
export class Queue {
  readonly device: Device
  readonly tuning: Tuning
  readonly #kernels = new Map<string, Promise<Kernel>>()
  readonly #spare = new Map<number, DeviceBuffer[]>()
  readonly #cells: Column
  #cell = 0
  #pending: Pending[] = []
  readonly #live = new Set<Column>()
  #reading: Promise<HostArray> | null = null
  /** Resolves when what was flushed before has run. */
  #flushed: Promise<void> = Promise.resolve()
  #bytes = 0
  #peak = 0
  #launches = 0

  constructor(device: Device) {
    this.device = device
    this.tuning = { ...TUNINGS[device.kind] }
    this.#cells = this.column(MAX_CELLS, 'i32', 'totals')
    // They are read back as a whole, written or not.
    this.clear(this.#cells)
  }

  /** Bytes of all live columns. */
  get bytes(): number {
    return this.#bytes
  }

  /** The most there were since `resetPeak`. */
  get peakBytes(): number {
    return this.#peak
  }

  /** Since `resetPeak`. */
  get launches(): number {
    return this.#launches
  }

  resetPeak(): void {
    this.#peak = this.#bytes
    this.#launches = 0
  }

  /** Uninitialised elements. @throws SptError `device/out-of-memory`, `device/buffer-too-large`, `convert/too-large` */
  column(length: number, dtype: Dtype = 'i32', label = 'column'): Column {
    if (!(length <= MAX_ELEMENTS))
      fail({
        code: 'convert/too-large',
        message: `${label} would have ${length} elements`,
        expected: `at most ${MAX_ELEMENTS}: positions are 32-bit`,
        hint: 'store fewer positions: a smaller width or block, or a sparse axis instead of a dense one',
      })
    const bytes = this.#sizeClass(length * this.elementBytes(dtype))
    const memory = this.#spare.get(bytes)?.pop() ?? this.device.alloc(bytes, label)
    this.#bytes += bytes
    this.#peak = Math.max(this.#peak, this.#bytes)
    const column = { memory, dtype, length }
    this.#live.add(column)
    return column
  }

  /** The columns there are, to be given to `rollback` after a failure. */
  get live(): ReadonlySet<Column> {
    return new Set(this.#live)
  }

  /** Releases all columns but these. */
  rollback(keep: ReadonlySet<Column>): void {
    this.release(...[...this.#live].filter((c) => !keep.has(c)))
  }

  elementBytes(dtype: Dtype): number {
    return this.device.storage === 'words' ? WORD_BYTES : DTYPE_BYTES[dtype]
  }

  /** Gives the memory back to later columns: commands run in order, so those that still use it come first. */
  release(...columns: readonly (Column | null | undefined)[]): void {
    for (const c of columns) {
      if (!c || !this.#live.delete(c)) continue
      const { memory } = c
      this.#bytes -= memory.bytes
      const list = this.#spare.get(memory.bytes)
      if (list) list.push(memory)
      else this.#spare.set(memory.bytes, [memory])
    }
  }

  async upload(values: HostArray, dtype: Dtype, label = 'column'): Promise<Column> {
    const column = this.column(values.length, dtype, label)
    const data = this.device.storage === 'words' ? hostToDevice(dtype, values) : values
    // Earlier commands may still be using this memory.
    await this.flush()
    if (data.length > 0) await this.device.upload(column.memory, data)
    return column
  }

  async download(column: Column): Promise<HostArray> {
    await this.flush()
    const { dtype, length, memory } = column
    if (length === 0) return new (arrayClass(dtype))(0)
    const bytes = await this.device.download(memory, length * this.elementBytes(dtype))
    return this.device.storage === 'words'
      ? deviceToHost(dtype, bytes, length)
      : new (arrayClass(dtype))(bytes, 0, length)
  }

  clear(column: Column): void {
    if (column.memory.bytes > 0) this.#pending.push({ kind: 'clear', buffer: column.memory })
  }

  /** The column whose elements (`cells`) launches leave numbers for the host in. */
  get totals(): Use {
    return update(this.#cells)
  }

  /** The first of `count` cells that nobody else writes before they are read. */
  cells(count = 1): number {
    invariant(count <= MAX_CELLS, `${count} numbers at once`)
    if (this.#cell + count > MAX_CELLS) this.#cell = 0
    const first = this.#cell
    this.#cell += count
    return first
  }

  /** The numbers in some cells, after all that was launched: one download for all who ask at the same time. */
  async numbers(cells: readonly number[]): Promise<number[]> {
    this.#reading ??= this.#readCells()
    const all = await this.#reading
    return cells.map((c) => all[c]!)
  }

  async #readCells(): Promise<HostArray> {
    for (let k = 0; k < PATIENCE; k++) await null
    this.#reading = null
    return this.download(this.#cells)
  }

  launch(spec: LaunchSpec): void {
    if (spec.threads <= 0) return
    const columns = Object.entries(spec.columns)
    const key = `${spec.key}(${columns.map(([n, u]) => `${n}:${u.column.dtype}:${u.access}`).join()};${Object.keys(spec.sizes ?? {}).join()})`
    let kernel = this.#kernels.get(key)
    if (!kernel) {
      kernel = this.#compile(spec)
      // Whoever flushes sees the failure.
      kernel.catch(() => {})
      this.#kernels.set(key, kernel)
    }
    this.#launches++
    this.#pending.push({ kind: 'launch', kernel, spec })
  }

  /** Runs what was collected. */
  flush(): Promise<void> {
    const pending = this.#pending
    if (pending.length === 0) return this.#flushed
    this.#pending = []
    const before = this.#flushed
    const flushed = before.then(async () => {
      const commands: Command[] = []
      for (const p of pending) commands.push(p.kind === 'clear' ? p : this.#command(await p.kernel, p.spec))
      await this.device.run(commands)
    })
    this.#flushed = flushed
    // Those who wait see the failure; later commands are others'.
    flushed.catch(() => {
      if (this.#flushed === flushed) this.#flushed = Promise.resolve()
    })
    return flushed
  }

  /** Frees all memory that no column holds. */
  trim(): void {
    for (const list of this.#spare.values()) for (const m of list) m.free()
    this.#spare.clear()
  }

  /** Frees kernels and spare memory; columns that are still held stay. */
  async dispose(): Promise<void> {
    await this.flush()
    this.release(this.#cells)
    this.trim()
    for (const k of this.#kernels.values()) (await k).module.release()
    this.#kernels.clear()
  }

  /** Sizes come in eight steps for each power of two, so that memory is used again; within the device's limits. */
  #sizeClass(bytes: number): number {
    const { maxBufferBytes, maxBindingBytes } = this.device.limits
    const least = Math.max(256, bytes)
    const step = 2 ** Math.max(8, Math.floor(Math.log2(least)) - 3)
    const size = Math.ceil(least / step) * step
    return size > Math.min(maxBufferBytes, maxBindingBytes) ? Math.ceil(least / 4) * 4 : size
  }

  async #compile(spec: LaunchSpec): Promise<Kernel> {
    const plan = lowerToMemory(kernelOf(spec, `convert_${this.#kernels.size}`, BLOCK))
    const { kind } = this.device
    const texts = emit(plan, kind === 'cpu' ? 'js' : kind === 'webgpu' ? 'wgsl' : 'cuda')
    const text = texts[0]
    const entry = text?.entries[0]
    invariant(
      text && entry && texts.length === 1 && text.entries.length === 1,
      `${spec.key} is not one launch`,
    )
    return { module: await this.device.compile(text), entry: entry.name, args: entry.args }
  }

  #command({ module, entry, args }: Kernel, spec: LaunchSpec): Command {
    const blocks = spec.shared ? spec.threads : Math.ceil(spec.threads / BLOCK)
    const grid =
      this.device.kind === 'cpu' ? ([1, 1, 1] as const) : physicalGrid(blocks, this.device.limits.maxGridDim)
    invariant(grid, `${blocks} blocks are more than a grid holds`)
    return {
      kind: 'launch',
      module,
      entry,
      grid,
      args: args.map((a) => {
        if (a.kind === 'buffer') return spec.columns[a.name]!.column.memory
        const value = a.name === THREADS ? spec.threads : spec.sizes?.[a.name]
        invariant(value !== undefined, `${spec.key}: no size ${a.name}`)
        return value
      }),
    }
  }
}

const MAX_ELEMENTS = 2 ** 31 - 1

/** The size parameter of every kernel: how many threads there are. */
export const THREADS = 'x_threads'
