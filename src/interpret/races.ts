/**
 * Race detection by recorded accesses, so that a race is found even if this interleaving does not exhibit it. Two accesses of
 * one element race if one of them writes, not both are atomic, and they are by different blocks of a launch, or by different
 * threads of a block without a barrier (of the block, or of the row that contains both) between them.
 */
import { InternalError } from '../ast/diagnostics/diagnostic.ts'
import type { Buffer } from '../ir/statements/loops.ts'
import { type Cells, poisonValue } from './memory-cells.ts'

/** A thread of a launch, with the number of barriers that it has passed. */
export interface ThreadState {
  readonly block: number
  readonly thread: number
  /** Row within the block: threads with equal thread.y and thread.z. */
  readonly row: number
  epoch: number
  /** Number of barriers of its row (lanes) that the thread has passed. */
  phase: number
}

const NONE = -1
const SEVERAL = -2

/** The latest accesses of one kind to one element. */
interface AccessRecord {
  /** Accessing block since the launch began: one block, none or several. */
  block: number
  /** Accessing thread, in the latest epoch of the latest block. */
  thread: number
  row: number
  lastBlock: number
  epoch: number
  phase: number
}

const noAccess = (): AccessRecord => ({
  block: NONE,
  thread: NONE,
  row: NONE,
  lastBlock: NONE,
  epoch: NONE,
  phase: NONE,
})

interface Element {
  readonly read: AccessRecord
  readonly write: AccessRecord
  readonly atomic: AccessRecord
  /** True during an asynchronous write. */
  readonly isClaimed?: true
}

export class Memory {
  #elements = new Map<number, Element>()

  constructor(
    readonly buffer: Buffer,
    private readonly cells: Cells,
  ) {}

  /** The first element, for the host. */
  get first(): number | undefined {
    return this.cells[0]
  }

  get length(): number {
    return this.cells.length
  }

  /** Begins a launch: earlier accesses are ordered before it. */
  begin(): void {
    this.#elements = new Map()
  }

  clear(): void {
    for (let k = 0; k < this.cells.length; k++) this.cells[k] = 0
  }

  read(k: number, accessor: ThreadState, atomic: boolean): number {
    if (this.buffer.scope !== 'register' && this.buffer.role !== 'in' && this.buffer.role !== 'index') {
      const e = this.#element(k)
      this.#check(k, accessor, e.write, 'write')
      if (!atomic) this.#check(k, accessor, e.atomic, 'atomic update')
      recordAccess(atomic ? e.atomic : e.read, accessor)
    }
    return this.cells[k]!
  }

  write(k: number, value: number, accessor: ThreadState, atomic: boolean): void {
    if (this.buffer.scope !== 'register') {
      const e = this.#element(k)
      this.#check(k, accessor, e.write, 'write')
      this.#check(k, accessor, e.read, 'read')
      if (!atomic) this.#check(k, accessor, e.atomic, 'atomic update')
      recordAccess(atomic ? e.atomic : e.write, accessor)
    }
    this.cells[k] = value
  }

  /** Marks an element as target of an asynchronous write; until its completion, no thread may access the element. */
  claim(k: number, accessor: ThreadState): void {
    this.write(k, poisonValue(this.buffer.dtype), accessor, false)
    this.#elements.set(k, { read: noAccess(), write: noAccess(), atomic: noAccess(), isClaimed: true })
  }

  /** Completes the asynchronous write of element k; later accesses do not race with it. */
  completeWrite(k: number, value: number): void {
    this.#elements.delete(k)
    this.cells[k] = value
  }

  #element(k: number): Element {
    let e = this.#elements.get(k)
    if (!e) {
      e = { read: noAccess(), write: noAccess(), atomic: noAccess() }
      this.#elements.set(k, e)
    }
    if (e.isClaimed) throw new InternalError(`${this.buffer.name}[${k}] is touched while it arrives`)
    return e
  }

  #check(k: number, accessor: ThreadState, t: AccessRecord, what: string): void {
    if (t.block === NONE) return
    const byOtherBlock = t.block !== accessor.block
    const isOrdered = t.row === accessor.row && t.phase < accessor.phase
    const race = byOtherBlock || (t.epoch === accessor.epoch && t.thread !== accessor.thread && !isOrdered)
    if (race)
      throw new InternalError(
        `${this.buffer.name}[${k}]: thread ${accessor.thread} of block ${accessor.block} races with a ${what} by ${byOtherBlock ? 'another block' : `thread ${t.thread}`}`,
      )
  }
}

function recordAccess(t: AccessRecord, accessor: ThreadState): void {
  const isNewEpoch = t.lastBlock !== accessor.block || t.epoch !== accessor.epoch
  if (isNewEpoch || (t.row === accessor.row && t.phase < accessor.phase)) t.thread = accessor.thread
  else if (t.thread !== accessor.thread) t.thread = SEVERAL
  if (isNewEpoch) t.row = accessor.row
  else if (t.row !== accessor.row) t.row = SEVERAL
  t.phase = accessor.phase
  t.block = t.block === NONE || t.block === accessor.block ? accessor.block : SEVERAL
  t.lastBlock = accessor.block
  t.epoch = accessor.epoch
}
