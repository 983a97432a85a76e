/**
 * The structure of axis trees: a level holds the nodes of its axis under every parent node. Nodes are numbered in
 * lexicographic order of their coordinates, so a segment is a range.
 */
import { isDense as isDenseAxis, type StoredAxis } from '../../ir/coordinates/axis.ts'

/** Coordinates that a tensor or structure stores, one column per axis. */
export interface Source {
  /** The name of the input, for messages. */
  readonly name: string
  readonly axes: readonly string[]
  readonly columns: readonly Int32Array[]
  readonly length: number
  readonly keep: boolean
}

export interface Level {
  readonly axis: StoredAxis
  readonly parent: Level | null
  readonly extent: number
  /** Number of nodes. */
  readonly count: number
  /** Nodes under parent node p (0 for a root) are `start[p] … start[p+1]-1`; `null` for a dense root. */
  readonly start: Float64Array | null
  /** Coordinate of each node; `null` if nodes are contiguous coordinates from 0. */
  readonly coord: Int32Array | null
}

/** True if the level and all its ancestors store every coordinate. */
export const isDense = (l: Level): boolean => isDenseAxis(l.axis) && (l.parent === null || isDense(l.parent))
export const isUnique = (l: Level): boolean => !('unique' in l.axis) || l.axis.unique

/** Coordinate of node `q` under parent node `p`. */
export const coordinateOf = (l: Level, p: number, q: number): number =>
  l.coord ? l.coord[q]! : l.start ? q - l.start[p]! : q

/** Levels from the root down to `l`. */
export function chainOf(l: Level): readonly Level[] {
  return l.parent ? [...chainOf(l.parent), l] : [l]
}

/** The first node with this coordinate under parent node `p`, or -1. */
export function findNode(l: Level, p: number, c: number): number {
  if (!l.start) return c >= 0 && c < l.extent ? c : -1
  let lo = l.start[p]!
  let hi = l.start[p + 1]!
  if (!l.coord) return c >= 0 && c < hi - lo ? lo + c : -1
  const end = hi
  while (lo < hi) {
    const mid = Math.floor((lo + hi) / 2)
    if (l.coord[mid]! < c) lo = mid + 1
    else hi = mid
  }
  return lo < end && l.coord[lo] === c ? lo : -1
}

/** The first leaf at these coordinates; on `nonunique` levels every branch with the coordinate is searched. */
export function findPath(chain: readonly Level[], coords: readonly number[], k = 0, parent = 0): number {
  const l = chain[k]!
  let q = findNode(l, parent, coords[k]!)
  if (k === chain.length - 1 || q < 0) return q
  const end = l.start ? l.start[parent + 1]! : q + 1
  for (; q < end && coordinateOf(l, parent, q) === coords[k]; q++) {
    const leaf = findPath(chain, coords, k + 1, q)
    if (leaf >= 0) return leaf
  }
  return -1
}

/** Nodes of a level for every entry of every source, kept while the tree below is built. */
export type EntryNodes = Map<Source, Float64Array>
