/** Allocation of columns, their scratch pool, and the errors for too many elements or too little memory. */

import { failWith, type SptError } from '../ast/diagnostics/diagnostic.ts'
import { countText } from '../ast/print/message-text.ts'

/** Positions and elements are counted in i32. */
export const MAX_POSITIONS = 2 ** 31 - 1

/** The hint if a format stores too many positions. */
export const FEWER_POSITIONS =
  'store fewer positions: a smaller width or block, or a sparse axis instead of a dense one'

export function rejectCount(count: number, what: string): never {
  failWith('bind/too-large', `${countText(count)} ${what}: more than a 32-bit position can count`, {
    expected: `at most ${MAX_POSITIONS}`,
    hint: 'split the tensor, or store fewer positions (a smaller width or block, a sparse axis)',
  })
}

/** A limit on the elements that may be allocated during an operation: formats may multiply the sizes of the data. */
export class AllocationLimit {
  readonly max: number
  #used = 0
  #requested = 0

  constructor(max: number) {
    this.max = max
  }

  get used(): number {
    return this.#used
  }

  /** The number of elements that exceeded the limit; `null` if it was not exceeded. */
  get exceeded(): number | null {
    return this.#requested > this.max ? this.#requested : null
  }

  /** Counts an allocation. @throws SptError `bind/too-many-elements` */
  add(length: number, what: string): void {
    this.#requested = this.#used + length
    if (this.#requested > this.max)
      failWith(
        'bind/too-many-elements',
        `${countText(length)} ${what}: ${countText(this.#requested)} elements together are more than the data may take`,
        { expected: `at most ${this.max}`, hint: FEWER_POSITIONS },
      )
    this.#used = this.#requested
  }
}

let activeLimit: AllocationLimit | null = null

/** Runs f with a limit on allocations, which also bounds the work. @throws SptError `bind/too-many-elements` */
export function withAllocationLimit<T>(limit: AllocationLimit, f: () => T): T {
  const previous = activeLimit
  activeLimit = limit
  try {
    return f()
  } finally {
    activeLimit = previous
    previous?.add(limit.used, 'elements')
  }
}

/** Allocations from this many bytes on are compared with the available memory. */
const LARGE = 2 ** 26

/**
 * Checks an allocation, because systems overcommit memory and kill the process that writes to it. @throws SptError
 * `bind/too-many-elements`, `bind/out-of-memory`
 */
export function checkAllocation(length: number, bytes: number, what: string): void {
  activeLimit?.add(length, what)
  if (bytes > LARGE && bytes > (globalThis.process?.availableMemory?.() ?? Number.POSITIVE_INFINITY))
    rejectAllocation(length, what)
}

/** @throws SptError `bind/too-large`, `bind/out-of-memory`, `bind/too-many-elements` */
export function allocate(length: number, what: string): Int32Array {
  if (length > MAX_POSITIONS) rejectCount(length, what)
  checkAllocation(length, 4 * length, what)
  try {
    return new Int32Array(length)
  } catch (e) {
    return outOfMemory(e, length, what)
  }
}

/** `first`, `first + 1`, …; ten times as fast as `Int32Array.from`. */
export function ascending(count: number, what: string, first = 0): Int32Array {
  const out = allocate(count, what)
  for (let k = 0; k < count; k++) out[k] = first + k
  return out
}

/** `from[at[s]]` for each s. */
export function gather(from: Int32Array, indices: Int32Array): Int32Array {
  return gatherInto(allocate(indices.length, 'coordinates'), from, indices)
}

export function gatherInto(out: Int32Array, from: Int32Array, indices: Int32Array): Int32Array {
  for (let s = 0; s < indices.length; s++) out[s] = from[indices[s]!]!
  return out
}

export function outOfMemory(e: unknown, length: number, what: string): never {
  if (!(e instanceof RangeError)) throw e as SptError
  return rejectAllocation(length, what)
}

function rejectAllocation(length: number, what: string): never {
  failWith('bind/out-of-memory', `no memory for ${countText(length)} ${what}`, {
    expected: 'an array that fits into memory',
    hint: FEWER_POSITIONS,
  })
}

/** The concatenation of columns; a single column is not copied. @throws SptError as `allocate` */
export function concat(parts: readonly Int32Array[]): Int32Array {
  if (parts.length === 1) return parts[0]!
  const out = allocate(
    parts.reduce((n, p) => n + p.length, 0),
    'entries',
  )
  let offset = 0
  for (const p of parts) {
    out.set(p, offset)
    offset += p.length
  }
  return out
}

// A pool of scratch buffers for intermediate results of one conversion, because fresh memory costs several times as much
// as writing to it.

const free: Int32Array[] = []
let depth = 0

/** Runs f; the pool is emptied when the outermost call ends. */
export function withScratchPool<T>(f: () => T): T {
  depth++
  try {
    return f()
  } finally {
    if (--depth === 0) free.length = 0
  }
}

/** An array with arbitrary contents, to be returned by `release`. @throws SptError as `allocate` */
export function borrow(length: number, what: string): Int32Array {
  return takeFree(length, Number.POSITIVE_INFINITY) ?? allocate(length, what)
}

/** `borrow` for an array that may be kept: it wastes little memory. */
export function borrowExact(length: number, what: string): Int32Array {
  return takeFree(length, length + (length >>> 2)) ?? allocate(length, what)
}

/** Returns an unused array to the pool; nobody else may hold a reference to it. */
export function release(array: Int32Array): void {
  if (depth > 0 && array.byteOffset === 0 && array.length > 0) free.push(new Int32Array(array.buffer))
}

function takeFree(length: number, maxLength: number): Int32Array | null {
  let best = -1
  for (let k = 0; k < free.length; k++) {
    const n = free[k]!.length
    if (n >= length && n <= maxLength && (best < 0 || n < free[best]!.length)) best = k
  }
  if (best < 0) return null
  const [array] = free.splice(best, 1)
  return array!.length === length ? array! : array!.subarray(0, length)
}
