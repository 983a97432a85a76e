/** Structure back to coordinates: for each position of a tree's last level, the coordinates on the way to it. */
import { invariant } from '../../ast/diagnostic.ts'
import { allocate, gather } from '../../columns/allocate.ts'
import { type Level, type Storage, wordsOf } from '../storage.ts'

/** Positions of the last level of a tree that hold something (no padding), with their coordinates. */
export interface Expanded {
  readonly positions: Int32Array
  /** One array for each axis of the tree. */
  readonly coords: readonly Int32Array[]
}

/** Walks the tree from the root; padding is dropped where it occurs, with all that is under it. */
export function expandTree(storage: Storage, tree: readonly string[]): Expanded {
  let positions: Int32Array = new Int32Array(1)
  let coords: Int32Array[] = []
  for (const name of tree) {
    const level = storage.levels.get(name)
    invariant(level, `no level ${name}`)
    const n = stored(level, positions)
    const below = allocate(n, `positions of axis ${name}`)
    const parent = coords.length > 0 ? allocate(n, `positions of axis ${name}`) : null
    const own = allocate(n, `coordinates of axis ${name}`)
    if (level.mask) expandMask(level, level.mask, positions, below, parent, own)
    else expandLevel(level, positions, below, parent, own)
    if (parent) coords = coords.map((c) => gather(c, parent))
    coords.push(own)
    positions = below
  }
  return { positions, coords }
}

function expandLevel(
  level: Level,
  parents: Int32Array,
  below: Int32Array,
  parent: Int32Array | null,
  own: Int32Array,
): void {
  const { indptr, indices, extent } = level
  const width = level.width ?? extent
  let k = 0
  for (let s = 0; s < parents.length; s++) {
    const p = parents[s]!
    const lo = indptr ? indptr[p]! : p * width
    const hi = indptr ? indptr[p + 1]! : lo + width
    for (let q = lo; q < hi; q++) {
      const c = indices ? indices[q]! : q - lo
      if (c === extent) continue
      below[k] = q
      if (parent) parent[k] = s
      own[k] = c
      k++
    }
  }
}

function expandMask(
  level: Level,
  mask: Int32Array,
  parents: Int32Array,
  below: Int32Array,
  parent: Int32Array | null,
  own: Int32Array,
): void {
  const words = wordsOf(level.extent)
  let k = 0
  for (let s = 0; s < parents.length; s++) {
    const p = parents[s]!
    let q = level.indptr![p]!
    for (let w = 0; w < words; w++)
      for (let word = mask[p * words + w]!; word !== 0; word &= word - 1) {
        below[k] = q++
        if (parent) parent[k] = s
        own[k] = w * 32 + 31 - Math.clz32(word & -word)
        k++
      }
  }
}

/** Bounds of the segment under parent position p. */
export function segment(level: Level, p: number): readonly [number, number] {
  if (level.indptr) return [level.indptr[p]!, level.indptr[p + 1]!]
  const width = level.width ?? level.extent
  return [p * width, (p + 1) * width]
}

/** Positions under the given parents that are not padding. */
function stored(level: Level, parents: Int32Array): number {
  const { indptr, indices, extent } = level
  const width = level.width ?? extent
  let n = 0
  if (indptr) for (let s = 0; s < parents.length; s++) n += indptr[parents[s]! + 1]! - indptr[parents[s]!]!
  else if (indices)
    for (let s = 0; s < parents.length; s++) {
      const lo = parents[s]! * width
      for (let q = lo; q < lo + width; q++) if (indices[q] !== extent) n++
    }
  else n = parents.length * width
  return n
}
