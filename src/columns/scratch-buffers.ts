/**
 * A pool of scratch buffers: arrays for intermediate results that are reused within one conversion. Fresh memory costs
 * several times as much as writing to it.
 */
import { allocate } from './allocate.ts'

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

/**
 * An array with arbitrary contents, to be returned by `release`. @throws SptError `bind/too-large`,
 * `bind/out-of-memory`
 */
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

/** The smallest free array of at least this length. */
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
