/**
 * Work stealing over slots 0 … n - 1: each thread owns a contiguous range, and steals from the end of another's when its own
 * is empty. Results are stored in the same shared memory.
 */

/** Both ends of a thread's places are one number of 32 bits. */
export const MOST_PLACES = 2 ** 15

/** Done, how many places and threads, and the ends of each thread's. */
const [DONE, COUNT, THREADS, ENDS] = [0, 1, 2, 3]

const ends = (from: number, to: number): number => (from << 16) | to

export class Shares {
  readonly memory: SharedArrayBuffer
  readonly #counts: Int32Array
  /** Of each place whether it has a value. */
  readonly #states: Uint8Array
  readonly #values: Float64Array

  constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    const [count, threads] = new Int32Array(memory, 4, 2) as unknown as readonly [number, number]
    this.#values = new Float64Array(memory, valuesAt(threads), count)
    this.#counts = new Int32Array(memory, 0, ENDS + threads)
    this.#states = new Uint8Array(memory, valuesAt(threads) + 8 * count, count)
  }

  /** @param count `MOST_PLACES` at most */
  static of(count: number, threads: number): Shares {
    const memory = new SharedArrayBuffer(valuesAt(threads) + 9 * count)
    const counts = new Int32Array(memory, 0, ENDS + threads)
    counts[COUNT] = count
    counts[THREADS] = threads
    for (let t = 0; t < threads; t++)
      counts[ENDS + t] = ends(Math.floor((t * count) / threads), Math.floor(((t + 1) * count) / threads))
    return new Shares(memory)
  }

  get count(): number {
    return this.#values.length
  }

  /** Places that a thread said something of. */
  get done(): number {
    return Atomics.load(this.#counts, DONE)
  }

  /** A place for a thread, which no other has; -1: none is left. */
  take(thread: number): number {
    const own = this.#taken(ENDS + thread, true)
    if (own >= 0) return own
    for (;;) {
      let [most, of] = [0, -1]
      for (let at = ENDS; at < this.#counts.length; at++) {
        const left = leftIn(Atomics.load(this.#counts, at))
        if (left > most) [most, of] = [left, at]
      }
      if (of < 0) return -1
      const place = this.#taken(of, false)
      if (place >= 0) return place
    }
  }

  #taken(at: number, first: boolean): number {
    for (;;) {
      const seen = Atomics.load(this.#counts, at)
      if (leftIn(seen) <= 0) return -1
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

  /** `null`: nothing yet. */
  value(place: number): number | null {
    return Atomics.load(this.#states, place) === 1 ? this.#values[place]! : null
  }

  /** Until something is done, or for so many milliseconds. Blocks the thread. */
  wait(done: number, milliseconds: number): void {
    Atomics.wait(this.#counts, DONE, done, milliseconds)
  }

  /** Nothing is left to take. */
  end(): void {
    for (let at = ENDS; at < this.#counts.length; at++) Atomics.store(this.#counts, at, 0)
  }
}

const leftIn = (seen: number): number => (seen & 0xffff) - (seen >>> 16)

/** Bytes before the values. */
const valuesAt = (threads: number): number => 8 * Math.ceil((ENDS + threads) / 2)
