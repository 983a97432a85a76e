/** Scans for level assembly: run numbers, segment ends, offsets, and masks, each in one or two passes. */
import { allocate } from '../../../columns/allocate.ts'
import { bitCount } from '../../../columns/bits.ts'
import { changes, markChanges } from '../../../columns/key-columns.ts'
import { borrowExact } from '../../../columns/scratch-buffers.ts'
import type { Expr } from '../../../ir/expr.ts'
import { ENTRY } from '../../column-engine.ts'
import type { Bitmap, Cuts, Starts } from '../../engine-operands.ts'
import { type F, valuesOf } from './map-reduce.ts'

/** 1 at the starts of runs; `null`: at each entry. `group`: changes of the first `known` keys, already computed. */
function begins(frame: F, { keys, cut }: Starts, group?: Uint8Array, known = 0): Uint8Array | null {
  if (keys.some((k) => k.kind === 'var' && k.name === ENTRY)) return null
  const columns = keys.slice(known).map((k) => valuesOf(frame, k))
  const out = group ? group.slice() : changes(columns)
  if (group) for (const c of columns) markChanges(out, c)
  if (cut) mark(out, valuesOf(frame, cut))
  return out
}

function mark(out: Uint8Array, cut: Int32Array): void {
  for (let s = 0; s < out.length; s++) if (cut[s] === 1) out[s] = 1
}

/** Adds a column with each entry's run number; returns the number of runs. */
export function runs(frame: F, name: string, starts: Starts): number {
  const { n } = frame
  const out = borrowExact(n, 'entries')
  frame.set(name, out)
  const { keys, cut } = starts
  if (keys.length === 2 && !cut && !keys.some((k) => k.kind === 'var' && k.name === ENTRY))
    return runsOfPairs(valuesOf(frame, keys[0]!), valuesOf(frame, keys[1]!), out)
  const first = begins(frame, starts)
  let q = -1
  if (!first) for (let s = 0; s < n; s++) out[s] = ++q
  else
    for (let s = 0; s < n; s++) {
      q += first[s]!
      out[s] = q
    }
  return q + 1
}

function runsOfPairs(a: Int32Array, b: Int32Array, out: Int32Array): number {
  let q = -1
  let p = -1
  let c = -1
  for (let s = 0; s < out.length; s++) {
    if (a[s] !== p || b[s] !== c) {
      q++
      p = a[s]!
      c = b[s]!
    }
    out[s] = q
  }
  return q + 1
}

/** Adds a column with each entry's run number among the runs with the same first `within` keys. */
export function ranks(frame: F, name: string, starts: Starts, within: number): void {
  const group = changes(starts.keys.slice(0, within).map((k) => valuesOf(frame, k)))
  const first = begins(frame, starts, within > 0 ? group : undefined, within)
  const out = borrowExact(frame.n, 'entries')
  let rank = 0
  for (let s = 0; s < out.length; s++) {
    rank = group[s] === 1 || (within === 0 && s === 0) ? 0 : rank + (first ? first[s]! : 1)
    out[s] = rank
  }
  frame.set(name, out)
}

/**
 * 1 wherever `width` runs (0: no limit) have passed since a key changed or since the last 1, and at repeated tuples.
 */
export function cuts(frame: F, name: string, rank: string | null, of: Cuts): void {
  const { n } = frame
  const group = changes(of.within.map((k) => valuesOf(frame, k)))
  // The keys of runs begin with those of the groups.
  const first = begins(frame, of.starts, of.within.length > 0 ? group : undefined, of.within.length)
  const fresh = of.again && changes(of.again.map((k) => valuesOf(frame, k)))
  const out = borrowExact(n, 'entries').fill(0)
  const ranked = rank ? borrowExact(n, 'entries') : null
  let at = 0
  for (let s = 0; s < n; s++) {
    if (group[s] === 1) at = 0
    else if (fresh && fresh[s] === 0) {
      out[s] = 1
      at = 0
    } else if (!first || first[s] === 1) {
      at++
      if (at === of.width) {
        out[s] = 1
        at = 0
      }
    }
    if (ranked) ranked[s] = at
  }
  frame.set(name, out)
  if (rank && ranked) frame.set(rank, ranked)
}

/** The `indptr` of entries in order of `at`. */
export function segmentEnds(frame: F, at: Expr, parent: Expr, parents: number, label: string): Int32Array {
  const indptr = allocate(parents + 1, label)
  ends(valuesOf(frame, at), valuesOf(frame, parent), indptr)
  let end = 0
  for (let p = 1; p <= parents; p++) {
    if (indptr[p]! > end) end = indptr[p]!
    indptr[p] = end
  }
  return indptr
}

function ends(at: Int32Array, parent: Int32Array, indptr: Int32Array): void {
  for (let s = 0; s < at.length; s++) indptr[parent[s]! + 1] = at[s]! + 1
}

/** The length of each parent's segment: 1 + its largest coordinate, or 0 if it is empty. */
export function lengths(
  frame: F,
  parent: Expr,
  coordinate: Expr,
  parents: number,
  label: string,
): Int32Array {
  const out = allocate(parents, label)
  raise(valuesOf(frame, parent), valuesOf(frame, coordinate), out)
  return out
}

function raise(parent: Int32Array, coordinate: Int32Array, out: Int32Array): void {
  for (let s = 0; s < parent.length; s++) {
    const p = parent[s]!
    const c = coordinate[s]!
    if (c >= out[p]!) out[p] = c + 1
  }
}

export function offsets(lengths: Int32Array, label: string): { indptr: Int32Array; total: number } {
  const indptr = allocate(lengths.length + 1, label)
  let total = 0
  for (let p = 0; p < lengths.length; p++) {
    total += lengths[p]!
    indptr[p + 1] = total
  }
  return { indptr, total }
}

/** Pads segments by scanning from their ends, because most are nearly full. */
export function repeatLast(held: Int32Array, width: number, none: number) {
  let empty = -1
  for (let end = width; end <= held.length && empty < 0; end += width) {
    let k = end - 1
    while (k >= end - width && held[k] === none) k--
    if (k < end - width) empty = end / width - 1
    else if (k + 1 < end) held.fill(held[k]!, k + 1, end)
  }
  return { indices: held, empty }
}

/** Entries may be in any order. */
export function bitmap(frame: F, name: string, of: Bitmap) {
  const { parents, words, label } = of
  const [parent, coordinate] = [valuesOf(frame, of.parent), valuesOf(frame, of.coordinate)]
  const mask = allocate(parents * words, `mask words of axis ${label}`)
  setBits(mask, words, parent, coordinate)
  const indptr = allocate(parents + 1, `positions of axis ${label}`)
  const before = allocate(mask.length, `mask words of axis ${label}`)
  let positions = 0
  for (let p = 0; p < parents; p++) {
    for (let w = p * words; w < (p + 1) * words; w++) {
      before[w] = positions
      positions += bitCount(mask[w]!)
    }
    indptr[p + 1] = positions
  }
  const at = borrowExact(frame.n, 'entries')
  findBits(at, mask, before, words, parent, coordinate)
  frame.set(name, at)
  return { mask, indptr, positions }
}

function setBits(mask: Int32Array, words: number, parent: Int32Array, coordinate: Int32Array): void {
  for (let s = 0; s < parent.length; s++) {
    const c = coordinate[s]!
    mask[parent[s]! * words + (c >>> 5)]! |= 1 << (c & 31)
  }
}

function findBits(
  at: Int32Array,
  mask: Int32Array,
  before: Int32Array,
  words: number,
  parent: Int32Array,
  coordinate: Int32Array,
): void {
  for (let s = 0; s < at.length; s++) {
    const c = coordinate[s]!
    const w = parent[s]! * words + (c >>> 5)
    at[s] = before[w]! + bitCount(mask[w]! & ((1 << (c & 31)) - 1))
  }
}
