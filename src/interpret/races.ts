/**
 * Race detection by recorded accesses, so that a race is found even if this interleaving does not exhibit it. Two accesses of
 * one element race if one of them writes, not both are atomic, and they are by different blocks of a launch, or by different
 * threads of a block without a barrier (of the block, or of the row that contains both) between them.
 */
import { InternalError } from '../ast/diagnostic.ts'
import type { Buffer } from '../ir/loops.ts'
import { type Cells, poison } from './memory-cells.ts'

/** A thread of a launch, and how many barriers it has passed. */
export interface Who {
  readonly block: number
  readonly thread: number
  /** Row within the block: threads with equal thread.y and thread.z. */
  readonly row: number
  epoch: number
  /** Barriers of its row alone that it has passed. */
  phase: number
}

const NOBODY = -1
const SEVERAL = -2

/** The latest accesses of one kind to one element. */
interface Touch {
  /** Accessing block since the launch began: one block, none or several. */
  block: number
  /** Accessing thread, in the latest epoch of the latest block. */
  thread: number
  row: number
  last: number
  epoch: number
  phase: number
}

const untouched = (): Touch => ({
  block: NOBODY,
  thread: NOBODY,
  row: NOBODY,
  last: NOBODY,
  epoch: NOBODY,
  phase: NOBODY,
})

interface Element {
  readonly read: Touch
  readonly write: Touch
  readonly atomic: Touch
  /** Something that is no thread is about to write it. */
  readonly arriving?: true
}

export class Memory {
  readonly buffer: Buffer
  readonly #cells: Cells
  #elements = new Map<number, Element>()

  constructor(buffer: Buffer, cells: Cells) {
    this.buffer = buffer
    this.#cells = cells
  }

  get length(): number {
    return this.#cells.length
  }

  /** Begins a launch: earlier accesses are ordered before it. */
  begin(): void {
    this.#elements = new Map()
  }

  clear(): void {
    for (let k = 0; k < this.#cells.length; k++) this.#cells[k] = 0
  }

  read(k: number, who: Who, atomic: boolean): number {
    if (this.buffer.scope !== 'register' && this.buffer.role !== 'in' && this.buffer.role !== 'index') {
      const e = this.#element(k)
      this.#check(k, who, e.write, 'write')
      if (!atomic) this.#check(k, who, e.atomic, 'atomic update')
      touch(atomic ? e.atomic : e.read, who)
    }
    return this.#cells[k]!
  }

  write(k: number, value: number, who: Who, atomic: boolean): void {
    if (this.buffer.scope !== 'register') {
      const e = this.#element(k)
      this.#check(k, who, e.write, 'write')
      this.#check(k, who, e.read, 'read')
      if (!atomic) this.#check(k, who, e.atomic, 'atomic update')
      touch(atomic ? e.atomic : e.write, who)
    }
    this.#cells[k] = value
  }

  /** Marks an element as target of an asynchronous write, until whose completion no thread may access it. */
  claim(k: number, who: Who): void {
    this.write(k, poison(this.buffer.dtype), who, false)
    this.#elements.set(k, { read: untouched(), write: untouched(), atomic: untouched(), arriving: true })
  }

  /** Completes the asynchronous write of element k, whose claim is dropped: later accesses no longer race with it. */
  arrive(k: number, value: number): void {
    this.#elements.delete(k)
    this.#cells[k] = value
  }

  #element(k: number): Element {
    let e = this.#elements.get(k)
    if (!e) {
      e = { read: untouched(), write: untouched(), atomic: untouched() }
      this.#elements.set(k, e)
    }
    if (e.arriving) throw new InternalError(`${this.buffer.name}[${k}] is touched while it arrives`)
    return e
  }

  #check(k: number, who: Who, t: Touch, what: string): void {
    if (t.block === NOBODY) return
    const other = t.block !== who.block
    const before = t.row === who.row && t.phase < who.phase
    const race = other || (t.epoch === who.epoch && t.thread !== who.thread && !before)
    if (race)
      throw new InternalError(
        `${this.buffer.name}[${k}]: thread ${who.thread} of block ${who.block} races with a ${what} by ${other ? 'another block' : `thread ${t.thread}`}`,
      )
  }
}

function touch(t: Touch, who: Who): void {
  const anew = t.last !== who.block || t.epoch !== who.epoch
  if (anew || (t.row === who.row && t.phase < who.phase)) t.thread = who.thread
  else if (t.thread !== who.thread) t.thread = SEVERAL
  if (anew) t.row = who.row
  else if (t.row !== who.row) t.row = SEVERAL
  t.phase = who.phase
  t.block = t.block === NOBODY || t.block === who.block ? who.block : SEVERAL
  t.last = who.block
  t.epoch = who.epoch
}
