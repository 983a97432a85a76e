/** Scans for level assembly: run numbers, segment ends, offsets, and masks, each in one or two passes. */
import { allocate, bitCount, borrowExact } from '../../../columns/allocate.ts'
import { ENTRY } from '../../../columns/column-engine.ts'
import type { BitmapOptions, CutOptions, Starts } from '../../../columns/engine-operands.ts'
import { changes, markChanges } from '../../../columns/key-columns.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import { type F, valuesOf } from './map-reduce.ts'

/**
 * 1 at the starts of runs; `null`: every entry starts a run. `group`: changes of the first `groupKeys` keys,
 * if they have been computed.
 */
function runStarts(frame: F, { keys, cut }: Starts, group?: Uint8Array, groupKeys = 0): Uint8Array | null {
  if (keys.some((k) => k.kind === 'var' && k.name === ENTRY)) return null
  const columns = keys.slice(groupKeys).map((k) => valuesOf(frame, k))
  const out = group ? group.slice() : changes(columns)
  if (group) for (const c of columns) markChanges(out, c)
  if (cut) markCuts(out, valuesOf(frame, cut))
  return out
}

function markCuts(out: Uint8Array, cut: Int32Array): void {
  for (let s = 0; s < out.length; s++) if (cut[s] === 1) out[s] = 1
}

export function runs(frame: F, name: string, starts: Starts): number {
  const { n } = frame
  const out = borrowExact(n, 'entries')
  frame.set(name, out)
  const { keys, cut } = starts
  if (keys.length === 2 && !cut && !keys.some((k) => k.kind === 'var' && k.name === ENTRY))
    return runsOfPairs(valuesOf(frame, keys[0]!), valuesOf(frame, keys[1]!), out)
  const isStart = runStarts(frame, starts)
  let q = -1
  if (!isStart) for (let s = 0; s < n; s++) out[s] = ++q
  else
    for (let s = 0; s < n; s++) {
      q += isStart[s]!
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

export function ranks(frame: F, name: string, starts: Starts, within: number): void {
  const group = changes(starts.keys.slice(0, within).map((k) => valuesOf(frame, k)))
  const isStart = runStarts(frame, starts, within > 0 ? group : undefined, within)
  const out = borrowExact(frame.n, 'entries')
  let rank = 0
  for (let s = 0; s < out.length; s++) {
    rank = group[s] === 1 || (within === 0 && s === 0) ? 0 : rank + (isStart ? isStart[s]! : 1)
    out[s] = rank
  }
  frame.set(name, out)
}

export function cuts(frame: F, name: string, rank: string | null, options: CutOptions): void {
  const { n } = frame
  const group = changes(options.within.map((k) => valuesOf(frame, k)))
  // The keys of runs begin with those of the groups.
  const isStart = runStarts(
    frame,
    options.starts,
    options.within.length > 0 ? group : undefined,
    options.within.length,
  )
  const changedTuple = options.tuple && changes(options.tuple.map((k) => valuesOf(frame, k)))
  const out = borrowExact(n, 'entries').fill(0)
  const rankColumn = rank ? borrowExact(n, 'entries') : null
  let runsSinceCut = 0
  for (let s = 0; s < n; s++) {
    if (group[s] === 1) runsSinceCut = 0
    else if (changedTuple && changedTuple[s] === 0) {
      out[s] = 1
      runsSinceCut = 0
    } else if (!isStart || isStart[s] === 1) {
      runsSinceCut++
      if (runsSinceCut === options.width) {
        out[s] = 1
        runsSinceCut = 0
      }
    }
    if (rankColumn) rankColumn[s] = runsSinceCut
  }
  frame.set(name, out)
  if (rank && rankColumn) frame.set(rank, rankColumn)
}

export function segmentEnds(
  frame: F,
  position: Expr,
  parent: Expr,
  parents: number,
  label: string,
): Int32Array {
  const indptr = allocate(parents + 1, label)
  writeEnds(valuesOf(frame, position), valuesOf(frame, parent), indptr)
  let end = 0
  for (let p = 1; p <= parents; p++) {
    if (indptr[p]! > end) end = indptr[p]!
    indptr[p] = end
  }
  return indptr
}

function writeEnds(position: Int32Array, parent: Int32Array, indptr: Int32Array): void {
  for (let s = 0; s < position.length; s++) indptr[parent[s]! + 1] = position[s]! + 1
}

export function lengths(
  frame: F,
  parent: Expr,
  coordinate: Expr,
  parents: number,
  label: string,
): Int32Array {
  const out = allocate(parents, label)
  raiseLengths(valuesOf(frame, parent), valuesOf(frame, coordinate), out)
  return out
}

function raiseLengths(parent: Int32Array, coordinate: Int32Array, out: Int32Array): void {
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
export function padWithLast(indices: Int32Array, width: number, none: number) {
  let empty = -1
  for (let end = width; end <= indices.length && empty < 0; end += width) {
    let k = end - 1
    while (k >= end - width && indices[k] === none) k--
    if (k < end - width) empty = end / width - 1
    else if (k + 1 < end) indices.fill(indices[k]!, k + 1, end)
  }
  return { indices, empty }
}

/** Entries may be in any order. */
export function bitmap(frame: F, name: string, options: BitmapOptions) {
  const { parents, words, label } = options
  const [parent, coordinate] = [valuesOf(frame, options.parent), valuesOf(frame, options.coordinate)]
  const mask = allocate(parents * words, `mask words of axis ${label}`)
  setBits(mask, words, parent, coordinate)
  const indptr = allocate(parents + 1, `positions of axis ${label}`)
  const wordOffsets = allocate(mask.length, `mask words of axis ${label}`)
  let positions = 0
  for (let p = 0; p < parents; p++) {
    for (let w = p * words; w < (p + 1) * words; w++) {
      wordOffsets[w] = positions
      positions += bitCount(mask[w]!)
    }
    indptr[p + 1] = positions
  }
  const positionColumn = borrowExact(frame.n, 'entries')
  locateBits(positionColumn, mask, wordOffsets, words, parent, coordinate)
  frame.set(name, positionColumn)
  return { mask, indptr, positions }
}

function setBits(mask: Int32Array, words: number, parent: Int32Array, coordinate: Int32Array): void {
  for (let s = 0; s < parent.length; s++) {
    const c = coordinate[s]!
    mask[parent[s]! * words + (c >>> 5)]! |= 1 << (c & 31)
  }
}

function locateBits(
  out: Int32Array,
  mask: Int32Array,
  wordOffsets: Int32Array,
  words: number,
  parent: Int32Array,
  coordinate: Int32Array,
): void {
  for (let s = 0; s < out.length; s++) {
    const c = coordinate[s]!
    const w = parent[s]! * words + (c >>> 5)
    out[s] = wordOffsets[w]! + bitCount(mask[w]! & ((1 << (c & 31)) - 1))
  }
}
