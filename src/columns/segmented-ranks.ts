/**
 * Segmented dense ranking: ranks of coordinates among the distinct ones of their run, without sorting entries. An
 * ascending run is swept; for close coordinates a flag array is summed; otherwise a bitmap (with a summary bit for each
 * of its words) counts the smaller ones.
 */

import { allocate } from './allocate.ts'
import { bitCount } from './scratch-buffers.ts'

/** Runs of at most this length use insertion sort. */
const MAX_INSERTION = 16
/** Largest ratio of coordinate range to entries for flag arrays. */
const MAX_FLAG_RATIO = 4
/** Summary words scanned per entry beyond which sorting is cheaper. */
const MAX_SUMMARY_WORDS = 4
/** Bitmaps of larger extents would not fit the cache. */
export const MAX_EXTENT = 2 ** 26

/** Ranks runs of coordinates in `[0, extent)`, with `extent <= MAX_EXTENT`. */
export class Ranker {
  private readonly mask: Int32Array
  private readonly summary: Int32Array
  private readonly wordOffsets: Int32Array
  private readonly sorted = new Int32Array(MAX_INSERTION)
  private flags: Int32Array = new Int32Array(0)

  constructor(extent: number) {
    const words = (extent >>> 5) + 1
    this.mask = allocate(words, 'mask words')
    this.wordOffsets = allocate(words, 'mask words')
    this.summary = allocate((words >>> 5) + 1, 'mask words')
  }

  /** Writes the ranks of `of[lo … hi - 1]` to the same indices of `out`; returns the number of distinct coordinates. */
  rank(coordinates: Int32Array, lo: number, hi: number, out: Int32Array): number {
    let last = coordinates[lo]!
    let rank = 0
    let e = lo
    for (; e < hi; e++) {
      const c = coordinates[e]!
      if (c < last) break
      if (c !== last) rank++
      last = c
      out[e] = rank
    }
    if (e === hi) return hi > lo ? rank + 1 : 0
    if (hi - lo <= MAX_INSERTION) return this.rankByInsertion(coordinates, lo, hi, out)
    let min = last
    let max = last
    for (let k = lo; k < hi; k++) {
      const c = coordinates[k]!
      if (c < min) min = c
      else if (c > max) max = c
    }
    if (max - min < MAX_FLAG_RATIO * (hi - lo)) return this.rankByFlags(coordinates, lo, hi, out, min, max)
    if ((max - min) >>> 10 > MAX_SUMMARY_WORDS * (hi - lo)) return rankBySorting(coordinates, lo, hi, out)
    return this.rankByBitmap(coordinates, lo, hi, out, min, max)
  }

  private rankByInsertion(coordinates: Int32Array, lo: number, hi: number, out: Int32Array): number {
    const { sorted } = this
    let n = 0
    for (let e = lo; e < hi; e++) {
      const c = coordinates[e]!
      let k = n
      while (k > 0 && sorted[k - 1]! > c) k--
      if (k > 0 && sorted[k - 1] === c) continue
      for (let m = n; m > k; m--) sorted[m] = sorted[m - 1]!
      sorted[k] = c
      n++
    }
    for (let e = lo; e < hi; e++) {
      const c = coordinates[e]!
      let k = 0
      while (sorted[k] !== c) k++
      out[e] = k
    }
    return n
  }

  private rankByFlags(
    coordinates: Int32Array,
    lo: number,
    hi: number,
    out: Int32Array,
    min: number,
    max: number,
  ): number {
    const range = max - min + 1
    if (this.flags.length < range) this.flags = allocate(2 * range, 'flags')
    const { flags } = this
    for (let e = lo; e < hi; e++) flags[coordinates[e]! - min] = 1
    let total = 0
    for (let k = 0; k < range; k++) {
      const isSet = flags[k]!
      flags[k] = total
      total += isSet
    }
    for (let e = lo; e < hi; e++) out[e] = flags[coordinates[e]! - min]!
    flags.fill(0, 0, range)
    return total
  }

  private rankByBitmap(
    coordinates: Int32Array,
    lo: number,
    hi: number,
    out: Int32Array,
    min: number,
    max: number,
  ): number {
    const { mask, summary, wordOffsets } = this
    for (let e = lo; e < hi; e++) {
      const c = coordinates[e]!
      const w = c >>> 5
      mask[w]! |= 1 << (c & 31)
      summary[w >>> 5]! |= 1 << (w & 31)
    }
    let total = 0
    for (let t = min >>> 10; t <= max >>> 10; t++) {
      for (let word = summary[t]!; word !== 0; word &= word - 1) {
        const w = (t << 5) + 31 - Math.clz32(word & -word)
        wordOffsets[w] = total
        total += bitCount(mask[w]!)
      }
      summary[t] = 0
    }
    for (let e = lo; e < hi; e++) {
      const c = coordinates[e]!
      const w = c >>> 5
      out[e] = wordOffsets[w]! + bitCount(mask[w]! & ((1 << (c & 31)) - 1))
    }
    for (let e = lo; e < hi; e++) mask[coordinates[e]! >>> 5] = 0
    return total
  }
}

/** Ranks sparse coordinates by sorting. */
function rankBySorting(coordinates: Int32Array, lo: number, hi: number, out: Int32Array): number {
  const sorted = coordinates.slice(lo, hi).sort()
  let n = 1
  for (let k = 1; k < sorted.length; k++) if (sorted[k] !== sorted[n - 1]) sorted[n++] = sorted[k]!
  for (let e = lo; e < hi; e++) {
    const c = coordinates[e]!
    let a = 0
    let b = n - 1
    while (a < b) {
      const middle = (a + b) >>> 1
      if (sorted[middle]! < c) a = middle + 1
      else b = middle
    }
    out[e] = a
  }
  return n
}
