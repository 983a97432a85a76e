/** Structure back to coordinates: for each position of a tree's last level, the coordinates on the way to it. */
import { invariant } from '../ast/diagnostic.ts'
import { allocate, type Level, type Storage } from './storage.ts'

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
    const parent = allocate(n, `positions of axis ${name}`)
    const own = allocate(n, `coordinates of axis ${name}`)
    let k = 0
    for (let s = 0; s < positions.length; s++) {
      const [lo, hi] = segment(level, positions[s]!)
      for (let q = lo; q < hi; q++) {
        const c = level.indices ? level.indices[q]! : q - lo
        if (c === level.extent) continue
        below[k] = q
        parent[k] = s
        own[k] = c
        k++
      }
    }
    coords = coords.map((c) => gather(c, parent))
    coords.push(own)
    positions = below
  }
  return { positions, coords }
}

/** Bounds of the segment under parent position p. */
export function segment(level: Level, p: number): readonly [number, number] {
  if (level.indptr) return [level.indptr[p]!, level.indptr[p + 1]!]
  if (level.width !== null) return [p * level.width, (p + 1) * level.width]
  return [0, level.extent]
}

/** Positions under the given parents that are not padding. */
function stored(level: Level, parents: Int32Array): number {
  let n = 0
  for (let s = 0; s < parents.length; s++) {
    const [lo, hi] = segment(level, parents[s]!)
    if (level.axis.kind === 'sparse_fixed') {
      for (let q = lo; q < hi; q++) if (level.indices![q] !== level.extent) n++
    } else n += hi - lo
  }
  return n
}

function gather(from: Int32Array, at: Int32Array): Int32Array {
  const out = allocate(at.length, 'coordinates')
  for (let s = 0; s < at.length; s++) out[s] = from[at[s]!]!
  return out
}
