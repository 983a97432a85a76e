/** One level of a tree from entries in order: its arrays, and the position of each entry on it. */
import { fail } from '../../ast/diagnostic.ts'
import { allocate, MAX_POSITIONS, tooLarge } from '../../columns/allocate.ts'
import { bitCount } from '../../columns/bits.ts'
import { borrow, giveBack, renewed } from '../../columns/scratch.ts'
import type { Bitmap, DenseFixed, DenseVariable, SparseFixed, SparseVariable } from '../../ir/axis.ts'
import { type Level, wordsOf } from '../storage.ts'

/** Entries in lexicographic order. `order[s]` is the input entry at place s (`null`: s itself), `at[s]` its position. */
export interface Sweep {
  readonly order: Int32Array | null
  readonly at: Int32Array
}

export interface LevelInput {
  readonly extent: number
  /** Positions of the parent; 1 for a root. */
  readonly parents: number
  /** Parent position at each place; `null` for a root: all 0. */
  readonly at: Int32Array | null
  /** What positions without an element hold, where all positions are there; the extent, if the axis does not say. */
  readonly padding: number
  /** Coordinate on this axis at each place. */
  readonly column: Int32Array
  /** Where a nonunique axis begins a new position: 1 at the place; `null`: every place. */
  readonly fresh: Uint8Array | null
}

export interface Made {
  readonly level: Level
  readonly at: Int32Array
}

/** indptr from counts shifted by one place. */
export function scan(indptr: Int32Array, axis: string): number {
  let total = 0
  for (let p = 1; p < indptr.length; p++) {
    total += indptr[p]!
    if (total > 2147483647) tooLarge(total, `positions of axis ${axis}`)
    indptr[p] = total
  }
  return total
}

/** All coordinates under every parent position: arithmetic alone. */
export function denseFixed(axis: DenseFixed, input: LevelInput): Made {
  const { extent, parents, at: parent, column } = input
  const positions = parents * extent
  if (positions > MAX_POSITIONS) tooLarge(positions, `positions of axis ${axis.name}`)
  const level: Level = { axis, extent, width: null, positions, indptr: null, indices: null, mask: null }
  if (parent === null) return { level, at: column }
  const at = renewed(column.length, 'entries')
  for (let s = 0; s < column.length; s++) at[s] = parent[s]! * extent + column[s]!
  return { level, at }
}

/** Bits of a mask; needs no order of the entries. */
export function bitmap(axis: Bitmap, input: LevelInput): Made {
  const { extent, parents, column } = input
  const parent = input.at!
  const words = wordsOf(extent)
  const mask = allocate(parents * words, `mask words of axis ${axis.name}`)
  const n = column.length
  for (let s = 0; s < n; s++) {
    const c = column[s]!
    mask[parent[s]! * words + (c >>> 5)]! |= 1 << (c & 31)
  }
  const indptr = allocate(parents + 1, `positions of axis ${axis.parent}`)
  const before = allocate(mask.length, `mask words of axis ${axis.name}`)
  let total = 0
  for (let p = 0; p < parents; p++) {
    for (let w = p * words; w < (p + 1) * words; w++) {
      before[w] = total
      total += bitCount(mask[w]!)
    }
    indptr[p + 1] = total
  }
  const at = renewed(n, 'entries')
  for (let s = 0; s < n; s++) {
    const c = column[s]!
    const w = parent[s]! * words + (c >>> 5)
    at[s] = before[w]! + bitCount(mask[w]! & ((1 << (c & 31)) - 1))
  }
  return { level: { axis, extent, width: null, positions: total, indptr, indices: null, mask }, at }
}

/** Ragged: each segment is as long as given, or as its largest coordinate needs. */
export function denseVariable(axis: DenseVariable, input: LevelInput, lengths: Int32Array | undefined): Made {
  const { extent, parents, column } = input
  const at = input.at!
  const n = column.length
  const indptr = allocate(parents + 1, `positions of axis ${axis.parent}`)
  if (lengths) {
    if (!(lengths instanceof Int32Array) || lengths.length !== parents)
      fail({
        code: 'bind/lengths',
        message: `axis ${axis.name} has ${lengths.length} given lengths for ${parents} positions of ${axis.parent}`,
        expected: `an Int32Array of ${parents} lengths`,
        hint: 'give one length for every parent position, or none at all',
      })
    for (let p = 0; p < parents; p++) {
      const length = lengths[p]!
      if (length < 0 || length > extent)
        fail({
          code: 'bind/lengths',
          message: `axis ${axis.name} has the given length ${length} at position ${p} of ${axis.parent}`,
          expected: `lengths from 0 to ${extent}`,
          hint: 'bind a larger size or shorter lengths',
        })
      indptr[p + 1] = length
    }
    for (let s = 0; s < n; s++)
      if (column[s]! >= lengths[at[s]!]!)
        fail({
          code: 'bind/lengths',
          message: `axis ${axis.name} holds the coordinate ${column[s]} at position ${at[s]} of ${axis.parent}, whose given length is ${lengths[at[s]!]}`,
          expected: 'coordinates below the length',
          hint: 'give longer lengths, or leave them to be measured',
        })
  } else
    for (let s = 0; s < n; s++) {
      const p = at[s]! + 1
      if (column[s]! >= indptr[p]!) indptr[p] = column[s]! + 1
    }
  const positions = scan(indptr, axis.name)
  const out = renewed(n, 'entries')
  for (let s = 0; s < n; s++) out[s] = indptr[at[s]!]! + column[s]!
  return { level: { axis, extent, width: null, positions, indptr, indices: null, mask: null }, at: out }
}

/** Compressed: one position for each coordinate, or for each entry where the axis is nonunique. */
export function sparseVariable(axis: SparseVariable, input: LevelInput): Made {
  const { extent, parents, column, at: parent, fresh } = input
  const n = column.length
  const indptr = allocate(parents + 1, `positions of axis ${axis.parent ?? axis.name}`)
  const at = renewed(n, 'entries')
  const indices = borrow(n, `positions of axis ${axis.name}`)
  let q = -1
  let p0 = -1
  let c0 = -1
  for (let s = 0; s < n; s++) {
    const p = parent ? parent[s]! : 0
    const c = column[s]!
    if (p !== p0 || c !== c0 || (!axis.unique && (fresh === null || fresh[s] === 1))) {
      q++
      indices[q] = c
      indptr[p + 1]!++
      p0 = p
      c0 = c
    }
    at[s] = q
  }
  const positions = scan(indptr, axis.name)
  const own = indices.slice(0, positions)
  giveBack(indices)
  return { level: { axis, extent, width: null, positions, indptr, indices: own, mask: null }, at }
}

/**
 * Kernels visit padding that has a coordinate, which must be one of the tensor.
 * @throws SptError `format/padding`
 */
export function checkPadding(axis: SparseFixed, padding: number, extent: number, positions: number): void {
  if (!axis.padding || positions === 0 || (padding >= 0 && padding < extent)) return
  const span = axis.padding.span ?? axis.span
  fail({
    code: 'format/padding',
    message: `axis ${axis.name} is padded with the coordinate ${padding}, and its extent is ${extent}`,
    ...(span && { span }),
    expected: extent === 0 ? 'a dimension that has coordinates' : `0 to ${extent - 1}`,
    hint: 'without `padded with`, padding has no coordinate and is passed over',
  })
}

/** Fixed width: what a segment does not fill is padding, last. */
export function sparseFixed(axis: SparseFixed, input: LevelInput, given: number | undefined): Made {
  const { extent, parents, column, fresh, padding } = input
  const parent = input.at!
  const n = column.length
  const at = renewed(n, 'entries')
  let widest = 0
  let widestAt = 0
  let rank = -1
  let p0 = -1
  let c0 = -1
  for (let s = 0; s < n; s++) {
    const p = parent[s]!
    const c = column[s]!
    if (p !== p0) rank = 0
    else if (c !== c0 || (!axis.unique && (fresh === null || fresh[s] === 1))) rank++
    if (rank >= widest) {
      widest = rank + 1
      widestAt = p
    }
    p0 = p
    c0 = c
    at[s] = rank
  }
  const width = fixedWidth(axis, given, widest, widestAt)
  const positions = parents * width
  checkPadding(axis, padding, extent, positions)
  const indices = allocate(positions, `positions of axis ${axis.name}`)
  indices.fill(padding)
  for (let s = 0; s < n; s++) {
    const q = parent[s]! * width + at[s]!
    at[s] = q
    indices[q] = column[s]!
  }
  return { level: { axis, extent, width, positions, indptr: null, indices, mask: null }, at }
}

/** The width of an axis whose fullest segment, at `widestAt`, has `widest` coordinates. @throws SptError `bind/width` */
export function fixedWidth(
  axis: SparseFixed,
  given: number | undefined,
  widest: number,
  widestAt: number,
): number {
  const width = given ?? widest
  if (!Number.isInteger(width) || width < widest)
    fail({
      code: 'bind/width',
      message: Number.isInteger(width)
        ? `axis ${axis.name} has the width ${width}, but position ${widestAt} of ${axis.parent} stores ${widest} coordinates`
        : `axis ${axis.name} has the width ${width}`,
      expected: `an integer width of at least ${widest}`,
      hint: 'give a greater width, leave it to be measured (`w: size`), or choose a format for what does not fit',
    })
  return width
}
