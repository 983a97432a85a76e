/**
 * Lexicographic sorting of coordinate tuples without comparisons: entries are partitioned into cache-sized buckets by
 * the leading bits of their tuples (unless they are grouped already); radix passes then sort each bucket. O(entries ×
 * digits) time; memory for one copy of the keys and the permutation.
 */
import { allocate } from './allocate.ts'

/** Bits of one radix digit. */
const DIGIT = 11
/** Log2 of the target size of a bucket: a few arrays of this length fit a core's cache. */
const BUCKET_BITS = 13
/** Longest run of one first key that is sorted without partitioning. */
const WINDOW = 2 ** 18

/** Sorted entries: index s holds input entry `order[s]`, whose tuple is `(columns[0][s], columns[1][s], …)`. */
export interface SortedEntries {
  /** `null`: the input was sorted, and `columns` are the input arrays. */
  readonly order: Int32Array | null
  readonly columns: readonly Int32Array[]
}

/** True if entries are non-decreasing in the keys from `from` on, or `strictly` ascending; without keys they are. */
export function isSorted(keys: readonly Int32Array[], from = 0, strictly = false): boolean {
  const n = keys[0]?.length ?? 0
  const last = keys.length - 1
  const least = strictly ? 1 : 0
  if (from >= last - 1) {
    const a = keys[from]!
    const b = keys[last]!
    for (let e = 1; e < n; e++) {
      const d = a[e]! - a[e - 1]!
      if (d < 0 || (d === 0 && b[e]! - b[e - 1]! < least)) return false
    }
    return true
  }
  for (let e = 1; e < n; e++) {
    let k = from
    while (k < last && keys[k]![e] === keys[k]![e - 1]) k++
    if (keys[k]![e]! - keys[k]![e - 1]! < (k < last ? 1 : least)) return false
  }
  return true
}

/** Sorts entries by `keys[0]`, then `keys[1]`, …; stable. There is at least one key; values are in `[0, maxima[k]]`. */
export function lexicographic(keys: readonly Int32Array[], maxima: readonly number[]): SortedEntries {
  const n = keys[0]!.length
  if (n < 2 || isSorted(keys)) return { order: null, columns: keys }
  const { bounds, order, columns } = bucketsOfRuns(keys) ?? partitionByPrefix(keys, maxima)
  // Passes are stable: a suffix of keys that is in order in the input is in order in every bucket.
  let sortedKeys = keys.length
  while (sortedKeys > 0 && isSorted(keys, sortedKeys - 1)) sortedKeys--
  const sorter = new Sorter(order, columns, sortedKeys, bounds)
  for (let b = 1; b < bounds.length; b++) sorter.sort(bounds[b - 1]!, bounds[b]!)
  return { order, columns }
}

/** Copies whose buckets are groups of runs of the first key; `null` if the first key is not non-decreasing. */
function bucketsOfRuns(keys: readonly Int32Array[]) {
  const [first] = keys
  const n = first!.length
  const bounds = [0]
  let run = 0
  for (let e = 1; e < n; e++) {
    if (first![e]! < first![e - 1]!) return null
    if (first![e] === first![e - 1]) continue
    if (e - run > WINDOW) return null
    run = e
    if (e - bounds[bounds.length - 1]! >= 1 << BUCKET_BITS) bounds.push(e)
  }
  if (n - run > WINDOW) return null
  bounds.push(n)
  const order = allocate(n, 'sorted entries')
  for (let e = 0; e < n; e++) order[e] = e
  return { bounds, order, columns: keys.map((key) => key.slice()) }
}

/** Partitions entries into buckets by the leading bits of (keys[0], keys[1]). */
function partitionByPrefix(keys: readonly Int32Array[], maxima: readonly number[]) {
  const n = keys[0]!.length
  const [bits, lowBits] = maxima.map((m) => 32 - Math.clz32(m))
  const prefixBits = Math.min(DIGIT, Math.max(0, 32 - Math.clz32(n) - BUCKET_BITS), bits! + (lowBits ?? 0))
  const high = keys[0]!
  const low = keys[1] ?? high
  const lowPrefixBits = Math.max(0, prefixBits - bits!)
  const shift = Math.max(0, bits! - prefixBits)
  const lowShift = (lowBits ?? 0) - lowPrefixBits
  const bucket = new Uint16Array(n)
  const bounds = new Int32Array((1 << prefixBits) + 1)
  for (let e = 0; e < n; e++) {
    let b = high[e]! >>> shift
    if (lowPrefixBits > 0) b = (b << lowPrefixBits) | (low[e]! >>> lowShift)
    bucket[e] = b
    bounds[b + 1]!++
  }
  for (let b = 1; b < bounds.length; b++) bounds[b]! += bounds[b - 1]!
  const order = allocate(n, 'sorted entries')
  let next = bounds.slice()
  for (let e = 0; e < n; e++) order[next[bucket[e]!]!++] = e
  const columns = keys.map((key) => {
    const column = allocate(n, 'sorted coordinates')
    next = bounds.slice()
    for (let e = 0; e < n; e++) column[next[bucket[e]!]!++] = key[e]!
    return column
  })
  return { bounds, order, columns }
}

class Sorter {
  private readonly count = new Int32Array((1 << DIGIT) + 1)
  private readonly word: Int32Array
  private from: Int32Array
  private to: Int32Array
  private lastKeyInOrder: boolean

  constructor(
    private readonly order: Int32Array,
    private readonly columns: readonly Int32Array[],
    private readonly sortedKeys: number,
    bounds: ArrayLike<number>,
  ) {
    let widest = 0
    for (let b = 1; b < bounds.length; b++) widest = Math.max(widest, bounds[b]! - bounds[b - 1]!)
    this.word = allocate(widest, 'entries to sort')
    this.from = allocate(widest, 'entries to sort')
    this.to = allocate(widest, 'entries to sort')
    this.lastKeyInOrder = sortedKeys > 1
  }

  sort(lo: number, hi: number): void {
    if (hi - lo < 2) return
    if (this.lastKeyInOrder) {
      this.computePermutation(lo, hi, this.sortedKeys - 1)
      this.lastKeyInOrder = this.isOrdered(lo, hi)
    }
    if (!this.lastKeyInOrder) this.computePermutation(lo, hi, this.sortedKeys)
    permute(this.order, this.from, this.to, lo, hi - lo)
    for (const column of this.columns) permute(column, this.from, this.to, lo, hi - lo)
  }

  /** The permutation by the first `sortedKeys` keys, in `from`; keys are packed into words, the least significant first. */
  private computePermutation(lo: number, hi: number, sortedKeys: number): void {
    const n = hi - lo
    const { word } = this
    for (let s = 0; s < n; s++) this.from[s] = s
    let bits = 0
    for (let k = sortedKeys - 1; k >= 0; k--) {
      const column = this.columns[k]!
      let min = column[lo]!
      let max = min
      for (let s = lo + 1; s < hi; s++) {
        const v = column[s]!
        if (v < min) min = v
        else if (v > max) max = v
      }
      const keyBits = 32 - Math.clz32(max - min)
      if (keyBits === 0) continue
      if (bits + keyBits > 31) {
        this.runPasses(n, bits)
        bits = 0
      }
      if (bits === 0) for (let s = 0; s < n; s++) word[s] = column[lo + s]! - min
      else for (let s = 0; s < n; s++) word[s]! |= (column[lo + s]! - min) << bits
      bits += keyBits
    }
    this.runPasses(n, bits)
  }

  /** Stable passes over the digits of the words. */
  private runPasses(n: number, bits: number): void {
    if (bits === 0) return
    const { count, word } = this
    const maxWidth = Math.min(DIGIT, Math.max(4, 32 - Math.clz32(n)))
    const digits = Math.ceil(bits / maxWidth)
    const width = Math.ceil(bits / digits)
    const mask = (1 << width) - 1
    for (let shift = 0; shift < bits; shift += width) {
      const { from, to } = this
      count.fill(0, 0, mask + 2)
      for (let s = 0; s < n; s++) count[((word[s]! >>> shift) & mask) + 1]!++
      for (let d = 1; d <= mask; d++) count[d]! += count[d - 1]!
      for (let s = 0; s < n; s++) {
        const entry = from[s]!
        to[count[(word[entry]! >>> shift) & mask]!++] = entry
      }
      this.from = to
      this.to = from
    }
  }

  private isOrdered(lo: number, hi: number): boolean {
    const { from, columns, sortedKeys } = this
    const last = columns[sortedKeys - 1]!
    for (let s = hi - lo - 1; s > 0; s--) {
      const a = lo + from[s - 1]!
      const b = lo + from[s]!
      if (last[b]! >= last[a]!) continue
      let k = 0
      while (k < sortedKeys - 1 && columns[k]![a] === columns[k]![b]) k++
      if (k === sortedKeys - 1) return false
    }
    return true
  }
}

function permute(a: Int32Array, from: Int32Array, scratch: Int32Array, lo: number, n: number): void {
  for (let s = 0; s < n; s++) scratch[s] = a[lo + from[s]!]!
  a.set(scratch.subarray(0, n), lo)
}
