/**
 * Lexicographic order of coordinate tuples without comparisons: one stable pass deals the entries into buckets
 * that fit into cache, by the leading bits of their tuples; radix passes then order each bucket. O(entries ×
 * digits) time; memory for one copy of the keys and the permutation.
 */
import { allocate } from './storage.ts'

/** Bits of one radix digit. */
const DIGIT = 11
/** Entries that a bucket should have: a few arrays of them stay in a core's cache. */
const BUCKET_BITS = 13

/** Entries in order: place s holds input entry `order[s]`, whose tuple is `(columns[0][s], columns[1][s], …)`. */
export interface Ordered {
  /** `null`: the input was in order; `columns` are the input arrays. */
  readonly order: Int32Array | null
  readonly columns: readonly Int32Array[]
}

/** Whether entries are non-decreasing, comparing keys `from` and later. */
export function isSorted(keys: readonly Int32Array[], from = 0): boolean {
  const n = keys[0]?.length ?? 0
  const last = keys.length - 1
  if (from >= last - 1) {
    const a = keys[from]!
    const b = keys[last]!
    for (let e = 1; e < n; e++) {
      const d = a[e]! - a[e - 1]!
      if (d < 0 || (d === 0 && b[e]! < b[e - 1]!)) return false
    }
    return true
  }
  for (let e = 1; e < n; e++) {
    for (let k = from; k <= last; k++) {
      const d = keys[k]![e]! - keys[k]![e - 1]!
      if (d > 0) break
      if (d < 0) return false
    }
  }
  return true
}

/**
 * Entries by `keys[0]`, then `keys[1]`, …; equal tuples stay in input order. Keys are in `[0, maxima[k]]`, at
 * least one of them.
 */
export function lexicographic(keys: readonly Int32Array[], maxima: readonly number[]): Ordered {
  const n = keys[0]!.length
  if (n < 2 || isSorted(keys)) return { order: null, columns: keys }
  const bits = maxima.map((m) => 32 - Math.clz32(m))
  const lead = Math.min(DIGIT, Math.max(0, 32 - Math.clz32(n) - BUCKET_BITS), bits[0]! + (bits[1] ?? 0))
  const { bounds, order, columns } = deal(keys, bits, lead)
  // Passes are stable: a suffix of keys that is in order in the input is in order in every bucket.
  let last = keys.length - 1
  while (last >= 0 && isSorted(keys, last)) last--
  const passes = plan(bits, lead, last)
  const widest = bounds.reduce((w, hi, b) => Math.max(w, b > 0 ? hi - bounds[b - 1]! : 0), 0)
  const scratch: readonly [Int32Array, Int32Array] = [
    allocate(widest, 'entries to sort'),
    allocate(widest, 'entries to sort'),
  ]
  const count = new Int32Array((1 << DIGIT) + 1)
  for (let b = 1; b < bounds.length; b++) {
    const lo = bounds[b - 1]!
    const hi = bounds[b]!
    if (hi - lo > 1) sortBucket(columns, order, lo, hi, passes, scratch, count)
  }
  return { order, columns }
}

interface Pass {
  readonly key: number
  readonly shift: number
  readonly mask: number
}

/** The digits that remain after the leading bits, last key first. */
function plan(bits: readonly number[], lead: number, last: number): Pass[] {
  const passes: Pass[] = []
  let done = lead
  const left = bits.map((b) => {
    const taken = Math.min(b, done)
    done -= taken
    return b - taken
  })
  for (let key = last; key >= 0; key--) {
    const digits = Math.ceil(left[key]! / DIGIT)
    const width = Math.ceil(left[key]! / Math.max(1, digits))
    for (let d = 0; d < digits; d++) {
      const here = Math.min(width, left[key]! - d * width)
      passes.push({ key, shift: d * width, mask: (1 << here) - 1 })
    }
  }
  return passes
}

/** Copies entries into 2^lead buckets by the leading bits of (keys[0], keys[1]). */
function deal(keys: readonly Int32Array[], bits: readonly number[], lead: number) {
  const n = keys[0]!.length
  const high = keys[0]!
  const low = keys[1] ?? high
  const fromLow = Math.max(0, lead - bits[0]!)
  const shift = Math.max(0, bits[0]! - lead)
  const lowShift = (bits[1] ?? 0) - fromLow
  const bucket = new Uint16Array(n)
  const bounds = new Int32Array((1 << lead) + 1)
  for (let e = 0; e < n; e++) {
    let b = high[e]! >>> shift
    if (fromLow > 0) b = (b << fromLow) | (low[e]! >>> lowShift)
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

/** Radix passes over the places `lo … hi-1`; all random access stays inside the bucket. */
function sortBucket(
  columns: readonly Int32Array[],
  order: Int32Array,
  lo: number,
  hi: number,
  passes: readonly Pass[],
  scratch: readonly [Int32Array, Int32Array],
  count: Int32Array,
): void {
  const n = hi - lo
  let [from, to] = scratch
  for (let s = 0; s < n; s++) from[s] = lo + s
  for (const { key, shift, mask } of passes) {
    const column = columns[key]!
    count.fill(0, 0, mask + 2)
    for (let s = lo; s < hi; s++) count[((column[s]! >>> shift) & mask) + 1]!++
    for (let d = 1; d <= mask; d++) count[d]! += count[d - 1]!
    for (let s = 0; s < n; s++) {
      const at = from[s]!
      to[count[(column[at]! >>> shift) & mask]!++] = at
    }
    ;[from, to] = [to, from]
  }
  if (passes.length === 0) return
  permute(order, from, to, lo, n)
  for (const column of columns) permute(column, from, to, lo, n)
}

function permute(a: Int32Array, from: Int32Array, spare: Int32Array, lo: number, n: number): void {
  for (let s = 0; s < n; s++) spare[s] = a[from[s]!]!
  for (let s = 0; s < n; s++) a[lo + s] = spare[s]!
}
