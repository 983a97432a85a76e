/** Figures of a tensor in a format, as plain data. */
import { DTYPE_BYTES } from '../ir/dtype.ts'
import type { StoredParts } from './convert.ts'
import { describe, type StorageReport } from './describe.ts'
import { largest } from './keys.ts'
import { allocate } from './storage.ts'
import type { CoordTensor } from './tensor.ts'

/** Entries by coordinate of one dimension: row lengths, where that is the first. */
export interface LengthReport {
  /** All coordinates of the dimension, and those without an entry. */
  readonly segments: number
  readonly empty: number
  /** Over all segments, the empty ones included; 0 where there is none. */
  readonly min: number
  readonly mean: number
  readonly median: number
  readonly max: number
  /** Segments with more entries than the class before and at most `upTo`: 0, 1, 2, 4, 8, … */
  readonly histogram: readonly { readonly upTo: number; readonly segments: number }[]
}

export interface PartReport {
  readonly label: string
  readonly format: string
  /** Values of the part's measured sizes. */
  readonly measured: Readonly<Record<string, number>>
  /** Elements of the value array, and how many of them hold a coordinate of the tensor. */
  readonly slots: number
  readonly stored: number
  /** Elements that hold none, and their share of all (0 where there are no elements). */
  readonly padding: number
  readonly paddingShare: number
  readonly tableBytes: number
  readonly bytes: number
  readonly storage: StorageReport
}

export interface TensorReport {
  readonly format: string
  readonly shape: readonly number[]
  readonly dtype: CoordTensor['dtype']
  /** By dimension. */
  readonly lengths: readonly LengthReport[]
  readonly parts: readonly PartReport[]
  /** Sums over the parts. */
  readonly slots: number
  readonly stored: number
  readonly padding: number
  readonly paddingShare: number
  readonly bytes: number
}

/**
 * Counts, bytes and lengths of a tensor in a format. O(entries + positions).
 *
 * @param coords what the tensor was brought from, one array for each dimension
 */
export function reportTensor(tensor: StoredParts, coords: readonly Int32Array[]): TensorReport {
  const parts = tensor.parts.map((p): PartReport => {
    const storage = describe(p.storage, tensor.dtype)
    const stored = p.held ?? storage.size - storage.padding
    const tableBytes = [...p.tables.values()].reduce((sum, t) => sum + t.byteLength, 0)
    return {
      label: p.part.label,
      format: p.part.instance.text,
      measured: Object.fromEntries(p.measured),
      slots: storage.size,
      stored,
      padding: storage.size - stored,
      paddingShare: share(storage.size - stored, storage.size),
      tableBytes,
      bytes: storage.structureBytes + tableBytes + storage.size * DTYPE_BYTES[tensor.dtype],
      storage,
    }
  })
  const sum = (of: (p: PartReport) => number): number => parts.reduce((total, p) => total + of(p), 0)
  const slots = sum((p) => p.slots)
  return {
    format: tensor.instance.text,
    shape: tensor.shape,
    dtype: tensor.dtype,
    lengths: tensor.shape.map((extent, k) => lengthReport(coords[k]!, extent)),
    parts,
    slots,
    stored: sum((p) => p.stored),
    padding: sum((p) => p.padding),
    paddingShare: share(
      sum((p) => p.padding),
      slots,
    ),
    bytes: sum((p) => p.bytes),
  }
}

const share = (part: number, of: number): number => (of === 0 ? 0 : part / of)

/** Entries by coordinate; equal entries count each. O(entries + extent). */
export function lengthReport(column: Int32Array, extent: number): LengthReport {
  const lengths = allocate(extent, 'coordinates')
  for (let e = 0; e < column.length; e++) lengths[column[e]!]!++
  const max = largest(lengths)
  const counts = new Int32Array(max + 1)
  for (let x = 0; x < extent; x++) counts[lengths[x]!]!++
  const nth = (k: number): number => {
    let below = 0
    for (let length = 0; length <= max; length++) {
      below += counts[length]!
      if (below > k) return length
    }
    return 0
  }
  return {
    segments: extent,
    empty: extent === 0 ? 0 : counts[0]!,
    min: extent === 0 ? 0 : nth(0),
    mean: share(column.length, extent),
    median: extent === 0 ? 0 : (nth((extent - 1) >> 1) + nth(extent >> 1)) / 2,
    max,
    histogram: histogram(counts),
  }
}

function histogram(counts: Int32Array): { upTo: number; segments: number }[] {
  const out = [{ upTo: 0, segments: counts[0]! }]
  for (let lo = 1, upTo = 1; lo < counts.length; lo = upTo + 1, upTo *= 2) {
    let segments = 0
    for (let length = lo; length <= Math.min(upTo, counts.length - 1); length++) segments += counts[length]!
    out.push({ upTo, segments })
  }
  return out
}
