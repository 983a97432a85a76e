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

// Bit counts of 32-bit words, for bitmap axes.

/** The number of set bits of a word. */
export function bitCount(word: number): number {
  let x = word - ((word >>> 1) & 0x55555555)
  x = (x & 0x33333333) + ((x >>> 2) & 0x33333333)
  x = (x + (x >>> 4)) & 0x0f0f0f0f
  return Math.imul(x, 0x01010101) >>> 24
}

/** The number of set bits below `bit` in the words from `firstWord` on. */
export function bitsBelow(mask: Int32Array, firstWord: number, bit: number): number {
  let n = 0
  const last = firstWord + (bit >>> 5)
  for (let w = firstWord; w < last; w++) n += bitCount(mask[w]!)
  const bitInWord = bit & 31
  return bitInWord === 0 ? n : n + bitCount(mask[last]! & ((1 << bitInWord) - 1))
}
