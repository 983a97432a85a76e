/** Statistics of a tensor in a format, as plain data. */

import { allocate } from '../columns/allocate.ts'
import { largest } from '../columns/key-columns.ts'
import { DTYPE_BYTES } from '../ir/values/dtype.ts'
import { occupiedEntries, type StoredParts } from '../storage/entries/stored-parts.ts'
import { describe, type StorageReport } from '../storage/storage-report.ts'
import type { CoordTensor } from '../storage/tensor.ts'

/** Number of entries per coordinate of one dimension: row lengths for the first. */
export interface LengthReport {
  /** Number of coordinates of the dimension, and number of coordinates without an entry. */
  readonly segments: number
  readonly empty: number
  /** Statistics over all segments, including empty ones; 0 without segments. */
  readonly min: number
  readonly mean: number
  readonly median: number
  readonly max: number
  /** Segments with more entries than the class before and at most `upTo`: 0, 1, 2, 4, 8, … */
  readonly histogram: readonly { readonly upTo: number; readonly segments: number }[]
}

/** Statistics of a part, or their sums over parts. */
interface Totals {
  /** Number of slots of the value array, and number of slots with a coordinate of the tensor. */
  readonly slots: number
  readonly stored: number
  /** Padding slots, and their share of all slots (0 if there are none). */
  readonly padding: number
  readonly paddingShare: number
  /** Bytes of index arrays of axes; of permutations and lists; of values; total. */
  readonly structureBytes: number
  readonly tableBytes: number
  readonly valueBytes: number
  readonly bytes: number
}

export interface PartReport extends Totals {
  readonly label: string
  readonly format: string
  /** Values of the part's measured sizes. */
  readonly parameters: Readonly<Record<string, number>>
  /** Number of distinct coordinates of the first dimension in the part. */
  readonly rows: number
  readonly storage: StorageReport
}

export interface TensorReport extends Totals {
  readonly format: string
  readonly shape: readonly number[]
  readonly dtype: CoordTensor['dtype']
  /** Lengths by dimension. */
  readonly lengths: readonly LengthReport[]
  readonly parts: readonly PartReport[]
  /** Bytes of the same elements in CSR. */
  readonly compressedBytes: number
}

/** Counts, bytes and lengths of a tensor in a format. O(entries + positions). */
export function reportTensor(tensor: StoredParts): TensorReport {
  const occupied = tensor.parts.map((p) => occupiedEntries(p, tensor))
  const parts = tensor.parts.map((p, k): PartReport => {
    const storage = describe(p.storage, tensor.dtype)
    const stored = occupied[k]!.positions?.length ?? storage.size - storage.padding
    const tableBytes = [...p.tables.values()].reduce((sum, t) => sum + t.byteLength, 0)
    return {
      label: p.part.label,
      format: p.part.instance.text,
      parameters: Object.fromEntries(p.measured),
      rows: countDistinct(occupied[k]!.coords[0], tensor.shape[0] ?? 0),
      slots: storage.size,
      stored,
      padding: storage.size - stored,
      paddingShare: share(storage.size - stored, storage.size),
      structureBytes: storage.structureBytes,
      tableBytes,
      valueBytes: storage.valueBytes,
      bytes: storage.bytes + tableBytes,
      storage,
    }
  })
  const sum = (measure: (p: PartReport) => number): number =>
    parts.reduce((total, p) => total + measure(p), 0)
  const slots = sum((p) => p.slots)
  const stored = sum((p) => p.stored)
  const padding = sum((p) => p.padding)
  return {
    format: tensor.instance.text,
    shape: tensor.shape,
    dtype: tensor.dtype,
    lengths: tensor.shape.map((extent, d) =>
      lengthsOf(
        occupied.map(({ coords }) => coords[d]!),
        extent,
      ),
    ),
    parts,
    slots,
    stored,
    padding,
    paddingShare: share(padding, slots),
    structureBytes: sum((p) => p.structureBytes),
    tableBytes: sum((p) => p.tableBytes),
    valueBytes: sum((p) => p.valueBytes),
    bytes: sum((p) => p.bytes),
    compressedBytes: compressedBytes(tensor.shape, stored, tensor.dtype),
  }
}

/** Bytes in CSR with i32 indices: row pointers, and for each element its other coordinates and its value. */
export function compressedBytes(
  shape: readonly number[],
  stored: number,
  dtype: CoordTensor['dtype'],
): number {
  return 4 * ((shape[0] ?? 0) + 1) + stored * (4 * (shape.length - 1) + DTYPE_BYTES[dtype])
}

function countDistinct(column: Int32Array | undefined, extent: number): number {
  const present = new Uint8Array(extent)
  if (column) for (let e = 0; e < column.length; e++) present[column[e]!] = 1
  let n = 0
  for (let x = 0; x < extent; x++) n += present[x]!
  return n
}

const share = (part: number, total: number): number => (total === 0 ? 0 : part / total)

/** Number of entries by coordinate, including duplicates. O(entries + extent). */
export function lengthReport(column: Int32Array, extent: number): LengthReport {
  return lengthsOf([column], extent)
}

function lengthsOf(columns: readonly Int32Array[], extent: number): LengthReport {
  const lengths = allocate(extent, 'coordinates')
  let count = 0
  for (const column of columns) {
    for (let e = 0; e < column.length; e++) lengths[column[e]!]!++
    count += column.length
  }
  const max = largest(lengths)
  const counts = new Int32Array(max + 1)
  for (let x = 0; x < extent; x++) counts[lengths[x]!]!++
  const kthLength = (k: number): number => {
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
    min: extent === 0 ? 0 : kthLength(0),
    mean: share(count, extent),
    median: extent === 0 ? 0 : (kthLength((extent - 1) >> 1) + kthLength(extent >> 1)) / 2,
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
