/**
 * The command queue: columns in device memory and the commands that fill them. Kernels are generated from expressions,
 * once for each structure; commands are collected and run in order when a result is read back.
 */

import { failWith } from '../../../../ast/diagnostics/diagnostic.ts'
import { countText } from '../../../../ast/print/message-text.ts'
import { type Coroutine, runAsync, type Work, waitFor } from '../../../../ast/work.ts'
import { FEWER_POSITIONS } from '../../../../columns/allocate.ts'
import type { Engine, Frame } from '../../../../columns/column-engine.ts'
import { int } from '../../../../ir/expressions/expr.ts'
import { arrayClass } from '../../../../ir/values/arrays.ts'
import type { Dtype } from '../../../../ir/values/dtype.ts'
import type { Command, Device, DeviceBuffer, HostArray } from '../../../../runtime/device.ts'
import {
  deviceToHost,
  hostToDevice,
  isWord,
  storedBytes,
  WORD_BYTES,
} from '../../../../runtime/webgpu/widened-elements.ts'
import { type Column, type LaunchSpec, store, write } from '../kernels/kernel-builder.ts'
import { TUNINGS, type Tuning } from '../tuning.ts'
import { commandOf, type Pending, scheduleCommands } from './command-order.ts'
import { fusedCount, type Kernel, Kernels, type Slot } from './kernel-cache.ts'
import { Pool } from './memory-pool.ts'
import { type Cells, Readback } from './readback.ts'

const MAX_ELEMENTS = 2 ** 31 - 1

/** Arguments of a fused launch. */
const MAX_ARGUMENTS = 450

/** A transaction, and the call whose signal ends it. */
interface Transaction {
  readonly call: Work | undefined
}

export class Queue {
  readonly device: Device
  readonly tuning: Tuning
  readonly #kernels: Kernels
  readonly #pool: Pool
  readonly #readback: Readback
  #pending: Pending[] = []
  /** With the transaction that allocated each. */
  readonly #live = new Map<Column, Transaction | null>()
  #owner: Transaction | null = null
  /** Resolves when all flushed commands have run. */
  #flushed: Promise<void> = Promise.resolve()
  /** Resolves when flushed commands have been submitted to the device; `null` if none is waiting. */
  #waiting: Promise<void> | null = null
  #launches = 0

  constructor(device: Device) {
    this.device = device
    this.tuning = { ...TUNINGS[device.kind] }
    this.#kernels = new Kernels(device)
    this.#pool = new Pool(device)
    this.#readback = new Readback({
      column: (length) => this.#take(length, 'i32', 'totals', null),
      clear: (c) => this.clear(c),
      release: (c) => this.release(c),
      download: (c) => this.download(c),
    })
  }

  get bytes(): number {
    return this.#pool.bytes
  }

  /** The maximum of `bytes` since `resetPeak`. */
  get peakBytes(): number {
    return this.#pool.peak
  }

  get launches(): number {
    return this.#launches
  }

  resetPeak(): void {
    this.#pool.resetPeak()
    this.#launches = 0
  }

  /**
   * An uninitialised column. @throws SptError `device/out-of-memory`, `device/buffer-too-large`, `convert/too-large`
   */
  column(length: number, dtype: Dtype = 'i32', label = 'column'): Column {
    return this.#take(length, dtype, label, this.#owner)
  }

  #take(length: number, dtype: Dtype, label: string, owner: Transaction | null): Column {
    if (!(length <= MAX_ELEMENTS))
      failWith('convert/too-large', `${label} would have ${countText(length)} elements`, {
        expected: `at most ${MAX_ELEMENTS}: positions are 32-bit`,
        hint: FEWER_POSITIONS,
      })
    const memory = this.#pool.allocate(length * this.elementBytes(dtype), label)
    const column = { memory, dtype, length }
    this.#live.set(column, owner)
    return column
  }

  /** Runs a coroutine, with checkpoints of `call`; if it fails, the columns and cells that it allocated are released. */
  async transaction<T>(work: Coroutine<T>, call?: Work): Promise<T> {
    const owner = { call }
    try {
      return await this.#runFor(owner, work)
    } catch (e) {
      this.#readback.rollback(owner)
      this.release(...[...this.#live].flatMap(([c, allocator]) => (allocator === owner ? [c] : [])))
      throw e
    }
  }

  /** Runs coroutines concurrently in the current transaction, so that their readbacks share one download. */
  *together(work: readonly Coroutine<void>[]): Coroutine<void> {
    const owner = this.#owner
    const results = yield* waitFor(Promise.allSettled(work.map((w) => this.#runFor(owner, w))))
    for (const d of results) if (d.status === 'rejected') throw d.reason
  }

  #runFor<T>(owner: Transaction | null, work: Coroutine<T>): Promise<T> {
    const within = <R>(resume: () => R): R => {
      const previous = this.#owner
      this.#owner = owner
      try {
        return resume()
      } finally {
        this.#owner = previous
      }
    }
    return runAsync(work, within, owner?.call?.checkpoint)
  }

  elementBytes(dtype: Dtype): number {
    return storedBytes(this.device, dtype)
  }

  release(...columns: readonly (Column | null | undefined)[]): void {
    const hasPending = this.#pending.length > 0
    for (const c of columns) if (c && this.#live.delete(c)) this.#pool.put(c.memory, hasPending)
  }

  async upload(values: HostArray, dtype: Dtype, label = 'column'): Promise<Column> {
    const column = this.column(values.length, dtype, label)
    const data = isWord(this.device, dtype) ? hostToDevice(dtype, values) : values
    // Earlier commands may still use this memory.
    await this.flush()
    if (data.length > 0) await this.device.upload(column.memory, data)
    return column
  }

  async download(column: Column): Promise<HostArray> {
    const flushed = this.flush()
    const { dtype, length, memory } = column
    // The device orders the download after all submitted commands.
    if (this.#waiting || length === 0) await flushed
    if (length === 0) return new (arrayClass(dtype))(0)
    const [bytes] = await Promise.all([
      this.device.download(memory, length * this.elementBytes(dtype)),
      flushed,
    ])
    return isWord(this.device, dtype)
      ? deviceToHost(dtype, bytes, length)
      : new (arrayClass(dtype))(bytes, 0, length)
  }

  clear(column: Column): void {
    const { memory } = column
    if (memory.bytes === 0) return
    const words = { memory, dtype: 'i32' as const, length: Math.ceil(memory.bytes / WORD_BYTES) }
    const spec: LaunchSpec = {
      key: 'clear',
      threads: words.length,
      columns: { x_to: write(words) },
      body: (e) => [store('x_to', e, int(0))],
    }
    this.#pending.push({ slot: this.#kernels.of(spec), spec, clear: memory })
  }

  /** Zeroed cells in which launches return numbers to the host; they stay reserved until they are read. */
  cells(count = 1): Cells {
    return this.#readback.allocate(count, this.#owner)
  }

  /** The numbers in the cells after all previous launches; may be read once. Concurrent reads share one download. */
  numbers(cells: Cells): Promise<number[]> {
    return this.#readback.read(cells)
  }

  /** Waits until concurrent coroutines have issued their work. */
  patience(): Promise<void> {
    return this.#readback.settle()
  }

  launch(spec: LaunchSpec): void {
    if (spec.threads <= 0) return
    this.#pending.push({ slot: this.#kernels.of(spec), spec, clear: null })
  }

  flush(): Promise<void> {
    const pending = this.#pending
    if (pending.length === 0) return this.#flushed
    this.#pending = []
    this.#pool.releaseHeld()
    const groups = this.#grouped(pending)
    // Devices that execute synchronously need no intermediate promise.
    const isSynchronous = this.#waiting === null && this.device.kind !== 'webgpu'
    const flushed =
      isSynchronous && groups.every((g) => g.slot.kernel !== null)
        ? this.device.run(groups.map((g) => this.#command(g.slot.kernel!, g)))
        : this.#later(groups)
    this.#flushed = flushed
    // Awaiting callers see the failure; later commands are unaffected.
    flushed.catch(() => {
      if (this.#flushed === flushed) this.#flushed = Promise.resolve()
    })
    return flushed
  }

  async #later(groups: readonly Group[]): Promise<void> {
    const previous = this.#waiting
    const run = async (): Promise<void> => {
      await previous
      const commands: Command[] = []
      for (const g of groups) commands.push(this.#command(await g.slot.compiled, g))
      await this.device.run(commands)
    }
    const submission = run().finally(() => {
      if (this.#waiting === submission) this.#waiting = null
    })
    this.#waiting = submission
    await submission
  }

  #grouped(pending: readonly Pending[]): Group[] {
    const singleLaunch = (p: Pending): Group => ({ slot: p.slot, specs: [p.spec], clear: p.clear })
    const kinds = new Set(pending.map((p) => p.slot))
    if (kinds.size === pending.length || this.tuning.fused < 2) return pending.map(singleLaunch)
    const out: Group[] = []
    for (const group of scheduleCommands(pending, this.#readback.memory)) {
      const { slot, spec } = group[0]!
      const limit = this.#mostFused(spec)
      for (let k = 0; k < group.length; k += limit) {
        const batch = group.slice(k, k + limit)
        if (batch.length === 1) out.push(singleLaunch(batch[0]!))
        else
          out.push({
            slot: this.#kernels.fusedSlot(slot, spec, fusedCount(batch.length)),
            specs: batch.map((p) => p.spec),
            clear: null,
          })
      }
    }
    return out
  }

  #mostFused({ columns, sizes }: LaunchSpec): number {
    const buffers = Object.keys(columns).length
    const argumentCount = buffers + Object.keys(sizes ?? {}).length + 2
    const { maxBuffersPerLaunch } = this.device.limits
    const limit = Math.min(this.tuning.fused, maxBuffersPerLaunch / buffers, MAX_ARGUMENTS / argumentCount)
    // Kernels exist for certain numbers of launches only.
    let count = 1
    while (count < limit && fusedCount(count + 1) <= limit) count++
    return count
  }

  trim(): void {
    this.#pool.trim()
  }

  /** Frees kernels and pooled memory; live columns stay valid. */
  async dispose(): Promise<void> {
    await this.flush()
    this.#readback.dispose()
    this.trim()
    await this.#kernels.release()
  }

  #command(kernel: Kernel, { specs, clear }: Group): Command {
    if (clear) return { kind: 'clear', buffer: clear }
    this.#launches++
    return commandOf(this.device, kernel, specs)
  }
}

interface Group {
  readonly slot: Slot
  readonly specs: readonly LaunchSpec[]
  readonly clear: DeviceBuffer | null
}

/** The operations of conversion as generated kernels. */
export interface DeviceEngine extends Engine<Column> {
  readonly queue: Queue
}

export type F = Frame<Column>

/** The queue of a frame's engine. */
export const queueIn = (frame: F): Queue => (frame.engine as DeviceEngine).queue
