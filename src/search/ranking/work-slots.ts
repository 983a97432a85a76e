/**
 * Work of several threads over slots 0 … n - 1, in chunks that shrink towards the end (guided self-scheduling, Polychronopoulos
 * and Kuck, 1987): a thread has neighbouring slots, and all end at nearly the same time. Results are in the same shared memory.
 */

/** Layout: number of finished slots, of slots, of threads, and the first slot of the next chunk. */
const [DONE, COUNT, THREADS, NEXT, HEAD] = [0, 1, 2, 3, 4]

/** The first slot after the end, beyond any slot. */
const ENDED = 2 ** 31 - 1

const VALUES = 4 * HEAD

export class WorkSlots {
  readonly #counts: Int32Array
  /** 1 for each slot with a value. */
  readonly #states: Uint8Array
  readonly #values: Float64Array
  /** The rest of this thread's chunk. */
  #chunk = { next: 0, end: 0 }

  constructor(readonly memory: SharedArrayBuffer) {
    this.#counts = new Int32Array(memory, 0, HEAD)
    const count = this.#counts[COUNT]!
    this.#values = new Float64Array(memory, VALUES, count)
    this.#states = new Uint8Array(memory, VALUES + 8 * count, count)
  }

  static of(count: number, threads: number): WorkSlots {
    const memory = new SharedArrayBuffer(VALUES + 9 * count)
    new Int32Array(memory, 0, HEAD).set([0, count, threads, 0])
    return new WorkSlots(memory)
  }

  get count(): number {
    return this.#values.length
  }

  get done(): number {
    return Atomics.load(this.#counts, DONE)
  }

  /** Takes a slot for this thread; -1 if none is left. */
  take(): number {
    for (;;) {
      const from = Atomics.load(this.#counts, NEXT)
      if (from === ENDED) return -1
      if (this.#chunk.next < this.#chunk.end) return this.#chunk.next++
      const end = from + Math.ceil((this.count - from) / (2 * this.#counts[THREADS]!))
      if (end === from) return -1
      if (Atomics.compareExchange(this.#counts, NEXT, from, end) === from) this.#chunk = { next: from, end }
    }
  }

  /** Records the result of a slot; `null` leaves the slot to another thread. */
  settle(place: number, value: number | null): void {
    if (value !== null) {
      this.#values[place] = value
      Atomics.store(this.#states, place, 1)
    }
    Atomics.add(this.#counts, DONE, 1)
    Atomics.notify(this.#counts, DONE)
  }

  /** Value of a slot; `null` if there is none. */
  value(place: number): number | null {
    return Atomics.load(this.#states, place) === 1 ? this.#values[place]! : null
  }

  /** Blocks the thread until a slot is settled, or for this many milliseconds. */
  wait(done: number, milliseconds: number): void {
    Atomics.wait(this.#counts, DONE, done, milliseconds)
  }

  /** Removes all slots that were not taken. */
  end(): void {
    Atomics.store(this.#counts, NEXT, ENDED)
  }
}
