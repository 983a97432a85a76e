/** A report of a structure's cost: positions, padding, bytes. */

import { type Level, segment } from '../columns/stored-level.ts'
import { parentOf } from '../ir/coordinates/axis.ts'
import { DTYPE_BYTES, type Dtype } from '../ir/values/dtype.ts'
import { paddedPositions, type Storage } from './storage.ts'

interface LevelReport {
  readonly axis: string
  readonly kind: Level['axis']['kind']
  readonly extent: number
  readonly width: number | null
  readonly positions: number
  /** Positions without a coordinate, and their descendants. */
  readonly padding: number
  /** Number of segments (parent positions), of empty ones, and of positions in the longest one, without padding. */
  readonly segments: number
  readonly emptySegments: number
  readonly longestSegment: number
  /** In bytes. */
  readonly indptrBytes: number
  readonly indicesBytes: number
  readonly maskBytes: number
}

export interface StorageReport {
  readonly levels: readonly LevelReport[]
  /** Elements of a buffer over all axes including padding, and the number of padding elements. */
  readonly size: number
  readonly padding: number
  /** Bytes of all index arrays, of the values, and in total. */
  readonly structureBytes: number
  readonly valueBytes: number
  readonly bytes: number
}

/** Counts and bytes of a storage, with values of type `dtype`. O(positions). */
export function describe(storage: Storage, dtype: Dtype): StorageReport {
  const padding = new Map<string, Uint8Array | null>()
  for (const tree of storage.trees) {
    const paddingByLevel = paddedPositions(tree)
    for (const [d, { axis }] of tree.entries()) padding.set(axis.name, paddingByLevel[d]!)
  }
  const levels = storage.axes.map((axis) => {
    const parent = parentOf(axis)
    return levelReport(
      storage.levels.get(axis.name)!,
      parent === null ? 1 : storage.levels.get(parent)!.positions,
      padding.get(axis.name)!,
    )
  })
  const structureBytes = levels.reduce((sum, l) => sum + l.indptrBytes + l.indicesBytes + l.maskBytes, 0)
  const valueBytes = storage.size * DTYPE_BYTES[dtype]
  let elements = 1
  for (const tree of storage.trees) {
    const last = levels.find((l) => l.axis === tree.at(-1)!.axis.name)!
    elements *= last.positions - last.padding
  }
  return {
    levels,
    size: storage.size,
    padding: storage.size - elements,
    structureBytes,
    valueBytes,
    bytes: structureBytes + valueBytes,
  }
}

function levelReport(level: Level, segments: number, paddingMask: Uint8Array | null): LevelReport {
  let padding = 0
  let emptySegments = 0
  let longestSegment = 0
  for (let p = 0; p < segments; p++) {
    const [lo, hi] = segment(level, p)
    let length = hi - lo
    if (paddingMask) for (let q = lo; q < hi; q++) length -= paddingMask[q]!
    padding += hi - lo - length
    if (length === 0) emptySegments++
    if (length > longestSegment) longestSegment = length
  }
  return {
    axis: level.axis.name,
    kind: level.axis.kind,
    extent: level.extent,
    width: level.width,
    positions: level.positions,
    padding,
    segments,
    emptySegments,
    longestSegment,
    indptrBytes: level.indptr?.byteLength ?? 0,
    indicesBytes: level.indices?.byteLength ?? 0,
    maskBytes: level.mask?.byteLength ?? 0,
  }
}
