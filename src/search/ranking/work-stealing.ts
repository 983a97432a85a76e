/**
 * Work stealing over slots 0 … n - 1: each thread owns a contiguous range, and steals from the end of another's when its own
 * is empty. Results are stored in the same shared memory.
 */

/** Maximum number of slots, because both ends of a thread's range share one 32-bit word. */
export const MAX_SLOTS = 2 ** 15

/** Layout: number of finished slots, of slots, of threads, and the range of each thread. */
const [DONE, COUNT, THREADS, ENDS] = [0, 1, 2, 3]

const ends = (from: number, to: number): number => (from << 16) | to

export class WorkSlots {
  readonly memory: SharedArrayBuffer
  readonly #counts: Int32Array
  /** 1 for each slot with a value. */
  readonly #states: Uint8Array
  readonly #values: Float64Array

  constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    const [count, threads] = new Int32Array(memory, 4, 2) as unknown as readonly [number, number]
    this.#values = new Float64Array(memory, valuesAt(threads), count)
    this.#counts = new Int32Array(memory, 0, ENDS + threads)
    this.#states = new Uint8Array(memory, valuesAt(threads) + 8 * count, count)
  }

  static of(count: number, threads: number): WorkSlots {
    const memory = new SharedArrayBuffer(valuesAt(threads) + 9 * count)
    const counts = new Int32Array(memory, 0, ENDS + threads)
    counts[COUNT] = count
    counts[THREADS] = threads
    for (let t = 0; t < threads; t++)
      counts[ENDS + t] = ends(Math.floor((t * count) / threads), Math.floor(((t + 1) * count) / threads))
    return new WorkSlots(memory)
  }

  get count(): number {
    return this.#values.length
  }

  get done(): number {
    return Atomics.load(this.#counts, DONE)
  }

  /** Takes a slot for a thread; -1 if none is left. */
  take(thread: number): number {
    const slot = this.#takeFrom(ENDS + thread, true)
    if (slot >= 0) return slot
    for (;;) {
      let [longest, victim] = [0, -1]
      for (let at = ENDS; at < this.#counts.length; at++) {
        const left = remaining(Atomics.load(this.#counts, at))
        if (left > longest) [longest, victim] = [left, at]
      }
      if (victim < 0) return -1
      const stolen = this.#takeFrom(victim, false)
      if (stolen >= 0) return stolen
    }
  }

  #takeFrom(at: number, first: boolean): number {
    for (;;) {
      const seen = Atomics.load(this.#counts, at)
      if (remaining(seen) <= 0) return -1
      const [from, to] = [seen >>> 16, seen & 0xffff]
      const next = first ? ends(from + 1, to) : ends(from, to - 1)
      if (Atomics.compareExchange(this.#counts, at, seen, next) === seen) return first ? from : to - 1
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
    for (let at = ENDS; at < this.#counts.length; at++) Atomics.store(this.#counts, at, 0)
  }
}

const remaining = (seen: number): number => (seen & 0xffff) - (seen >>> 16)

const valuesAt = (threads: number): number => 8 * Math.ceil((ENDS + threads) / 2)
