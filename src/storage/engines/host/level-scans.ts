/** Scans for level assembly: run numbers, segment ends, offsets, and masks, each in one or two passes. */

import { ready } from '../../../ast/work.ts'
import { allocate, borrowExact } from '../../../columns/allocate.ts'
import { ENTRY } from '../../../columns/column-engine.ts'
import type { Starts } from '../../../columns/engine-operands.ts'
import { changes, markChanges } from '../../../columns/key-columns.ts'
import { bitCount } from '../../../ir/values/packed-fields.ts'
import { type F, type Host, valuesOf } from './map-reduce.ts'

/** 1 at the starts of runs; `null`: every entry. `group`: changes of the first `groupKeys` keys, if known. */
function runStarts(frame: F, { keys, cut }: Starts, group?: Uint8Array, groupKeys = 0): Uint8Array | null {
  if (keys.some((k) => k.kind === 'var' && k.name === ENTRY)) return null
  const columns = keys.slice(groupKeys).map((k) => valuesOf(frame, k))
  const out = group ? group.slice() : changes(columns)
  if (group) for (const c of columns) markChanges(out, c)
  const cuts = cut && valuesOf(frame, cut)
  if (cuts) for (let s = 0; s < out.length; s++) if (cuts[s] === 1) out[s] = 1
  return out
}

export const runs: Host['runs'] = (frame, name, starts) => {
  const { n } = frame
  const out = borrowExact(n, 'entries')
  frame.set(name, out)
  const pair = pairOf(frame, starts)
  if (pair) return ready(numberPairs(...pair, out, false))
  const isStart = runStarts(frame, starts)
  let q = -1
  if (!isStart) for (let s = 0; s < n; s++) out[s] = ++q
  else
    for (let s = 0; s < n; s++) {
      q += isStart[s]!
      out[s] = q
    }
  return ready(q + 1)
}

/** The columns of two keys that alone start runs. */
function pairOf(frame: F, { keys, cut }: Starts): [Int32Array, Int32Array] | null {
  if (keys.length !== 2 || cut || keys.some((k) => k.kind === 'var' && k.name === ENTRY)) return null
  return [valuesOf(frame, keys[0]!), valuesOf(frame, keys[1]!)]
}

/** Numbers runs of equal pairs, with `restarts` from 0 wherever the first key changes. Returns the number of runs. */
function numberPairs(a: Int32Array, b: Int32Array, out: Int32Array, restarts: boolean): number {
  // Keys may be negative, so the first pair starts the first run whatever its values.
  let q = out.length === 0 ? -1 : 0
  let p = a[0]!
  let c = b[0]!
  for (let s = 0; s < out.length; s++) {
    if (a[s] !== p) {
      q = restarts ? 0 : q + 1
      p = a[s]!
      c = b[s]!
    } else if (b[s] !== c) {
      q++
      c = b[s]!
    }
    out[s] = q
  }
  return q + 1
}

export const ranks: Host['ranks'] = (frame, name, starts, within) => {
  const out = borrowExact(frame.n, 'entries')
  const pair = within === 1 ? pairOf(frame, starts) : null
  if (pair) {
    numberPairs(...pair, out, true)
    return frame.set(name, out)
  }
  const group = changes(starts.keys.slice(0, within).map((k) => valuesOf(frame, k)))
  const isStart = runStarts(frame, starts, within > 0 ? group : undefined, within)
  let rank = -1
  for (let s = 0; s < out.length; s++) {
    rank = group[s] === 1 ? 0 : rank + (isStart ? isStart[s]! : 1)
    out[s] = rank
  }
  frame.set(name, out)
}

export const cuts: Host['cuts'] = (frame, name, rank, options) => {
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

export const segmentEnds: Host['segmentEnds'] = (frame, position, parent, parents, label) => {
  const indptr = allocate(parents + 1, label)
  const [positions, parentColumn] = [valuesOf(frame, position), valuesOf(frame, parent)]
  for (let s = 0; s < positions.length; s++) indptr[parentColumn[s]! + 1] = positions[s]! + 1
  let end = 0
  for (let p = 1; p <= parents; p++) {
    if (indptr[p]! > end) end = indptr[p]!
    indptr[p] = end
  }
  return indptr
}

export const lengths: Host['lengths'] = (frame, parent, coordinate, parents, label) => {
  const out = allocate(parents, label)
  const [parentColumn, column] = [valuesOf(frame, parent), valuesOf(frame, coordinate)]
  for (let s = 0; s < column.length; s++) {
    const p = parentColumn[s]!
    if (column[s]! >= out[p]!) out[p] = column[s]! + 1
  }
  return out
}

export const offsets: Host['offsets'] = (lengths, _maxTotal, label) => {
  const indptr = allocate(lengths.length + 1, label)
  let total = 0
  for (let p = 0; p < lengths.length; p++) {
    total += lengths[p]!
    indptr[p + 1] = total
  }
  return ready({ indptr, total })
}

/** Pads segments by scanning from their ends, because most are nearly full. */
export const padWithLast: Host['padWithLast'] = (indices, width, none) => {
  let empty = -1
  for (let end = width; end <= indices.length && empty < 0; end += width) {
    let k = end - 1
    while (k >= end - width && indices[k] === none) k--
    if (k < end - width) empty = end / width - 1
    else if (k + 1 < end) indices.fill(indices[k]!, k + 1, end)
  }
  return ready({ indices, empty })
}

/** Entries may be in any order. */
export const bitmap: Host['bitmap'] = (frame, name, _starts, options) => {
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
  return ready({ mask, indptr, positions })
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
