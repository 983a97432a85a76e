/**
 * A pool of scratch buffers: arrays for intermediate results, used again within one conversion. Memory that is new to
 * the process costs several times what writing to it does.
 */
import { allocate } from './allocate.ts'

const free: Int32Array[] = []
let depth = 0

/** Runs f; what was given back in it is forgotten when the outermost of these calls ends. */
export function reusing<T>(f: () => T): T {
  depth++
  try {
    return f()
  } finally {
    if (--depth === 0) free.length = 0
  }
}

/** An array with arbitrary contents, to be given back. @throws SptError `bind/too-large`, `bind/out-of-memory` */
export function borrow(length: number, what: string): Int32Array {
  return taken(length, Number.POSITIVE_INFINITY) ?? allocate(length, what)
}

/** The same for one that may be kept: it holds little more memory than it needs. */
export function borrowExact(length: number, what: string): Int32Array {
  return taken(length, length + (length >>> 2)) ?? allocate(length, what)
}

/** Hands over an array that nobody uses any more; others than the caller must never have seen it. */
export function giveBack(array: Int32Array): void {
  if (depth > 0 && array.byteOffset === 0 && array.length > 0) free.push(new Int32Array(array.buffer))
}

/** The smallest free array of at least this length. */
function taken(length: number, most: number): Int32Array | null {
  let best = -1
  for (let k = 0; k < free.length; k++) {
    const n = free[k]!.length
    if (n >= length && n <= most && (best < 0 || n < free[best]!.length)) best = k
  }
  if (best < 0) return null
  const [found] = free.splice(best, 1)
  return found!.length === length ? found! : found!.subarray(0, length)
}
