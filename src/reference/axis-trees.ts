/**
 * The structure of axis trees from coordinates: a level knows the nodes of its axis under every node of the
 * parent. Nodes are numbered in lexicographic order of their coordinates, so a segment is a range. Built by
 * sorting and uniting coordinate columns; deliberately unlike the compiler's own builders.
 */
import { fail, invariant } from '../ast/diagnostic.ts'
import {
  type Axis,
  chainTo,
  hasWidth,
  isDense as isDenseAxis,
  isDenseRoot,
  isRagged,
  isStored,
  parentOf,
  type StoredAxis,
} from '../ir/axis.ts'

/** Coordinates that some tensor or structure stores, one column for each axis it is over. */
export interface Source {
  /** Who brought it, for messages. */
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
  /** Coordinate of each node; `null` where nodes are contiguous coordinates from 0. */
  readonly coord: Int32Array | null
}

/** Whether it and all above it hold every coordinate. */
export const isDense = (l: Level): boolean => isDenseAxis(l.axis) && (l.parent === null || isDense(l.parent))
export const isUnique = (l: Level): boolean => !('unique' in l.axis) || l.axis.unique

/** Coordinate of node `q` that lies under parent node `p`. */
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

/** The first leaf at these coordinates; with `nonunique` levels every branch with the coordinate is tried. */
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
type Placed = Map<Source, Float64Array>

/** Builds the levels of all stored axes; each source is placed: for every axis, its entries' nodes. */
export function buildLevels(
  axes: readonly Axis[],
  extentOf: (a: StoredAxis) => number,
  widthOf: (a: StoredAxis) => number | null,
  sources: readonly Source[],
): { levels: ReadonlyMap<string, Level>; nodes: ReadonlyMap<string, Placed> } {
  const byName = new Map(axes.map((a) => [a.name, a]))
  const levels = new Map<string, Level>()
  const nodes = new Map<string, Placed>()
  const visit = (axis: Axis): void => {
    if (levels.has(axis.name) || !isStored(axis)) return
    const parentName = parentOf(axis)
    const parentAxis = axes.find((a) => a.name === parentName)
    if (parentAxis) visit(parentAxis)
    const parent = parentName === null ? null : levels.get(parentName)
    invariant(parent !== undefined, `axis ${axis.name} has no parent ${parentName}`)
    const mine = sources.filter((s) => s.axes.includes(axis.name))
    const extent = extentOf(axis)
    for (const s of mine) checkRange(s, axis.name, extent)
    const placed: Placed = new Map()
    const parentNodes = parent ? nodes.get(parent.axis.name)! : null
    const below = new Map(
      axes
        .filter(isStored)
        .filter((a) => chainTo(byName, a.name).includes(axis.name))
        .map((a) => [a.name, a]),
    )
    const level = buildLevel(axis, parent, extent, mine, below, widthOf, parentNodes, placed)
    const width = widthOf(axis)
    if (width !== null && level.start)
      for (let p = 0; p + 1 < level.start.length; p++) {
        const n = level.start[p + 1]! - level.start[p]!
        if (n > width)
          fail({
            code: 'reference/width',
            message: `axis ${axis.name} holds at most ${width} coordinates under each parent, but ${n} are stored under one`,
            expected: `at most ${width}`,
          })
      }
    levels.set(axis.name, level)
    nodes.set(axis.name, placed)
  }
  for (const a of axes) visit(a)
  return { levels, nodes }
}

function checkRange(s: Source, axis: string, extent: number): void {
  const column = s.columns[s.axes.indexOf(axis)]!
  for (let e = 0; e < s.length; e++) {
    const c = column[e]!
    if (c < 0 || c >= extent)
      fail({
        code: 'reference/coordinate-range',
        message: `${s.name} has the coordinate ${c} on axis ${axis}, whose extent is ${extent}`,
        expected: `a coordinate from 0 to ${extent - 1}`,
      })
  }
}

function buildLevel(
  axis: StoredAxis,
  parent: Level | null,
  extent: number,
  sources: readonly Source[],
  below: ReadonlyMap<string, StoredAxis>,
  widthOf: (a: StoredAxis) => number | null,
  parentNodes: Placed | null,
  placed: Placed,
): Level {
  const columnOf = (s: Source): Int32Array => s.columns[s.axes.indexOf(axis.name)]!
  const parents = parent ? parent.count : 1
  if (isDenseRoot(axis)) {
    for (const s of sources) placed.set(s, Float64Array.from(columnOf(s)))
    return { axis, parent, extent, count: extent, start: null, coord: null }
  }
  const under = (s: Source, e: number): number => (parentNodes ? parentNodes.get(s)![e]! : 0)
  const start = new Float64Array(parents + 1)
  const base = { axis, parent, extent }
  if (isDenseAxis(axis)) {
    for (let p = 0; p <= parents; p++) start[p] = p * extent
    for (const s of sources) {
      const column = columnOf(s)
      const nodes = new Float64Array(s.length).map((_, e) => under(s, e) * extent + column[e]!)
      placed.set(s, nodes)
    }
    return { ...base, count: parents * extent, start, coord: null }
  }
  if (isRagged(axis)) {
    for (const s of sources) {
      const column = columnOf(s)
      for (let e = 0; e < s.length; e++) {
        const p = under(s, e) + 1
        start[p] = Math.max(start[p]!, column[e]! + 1)
      }
    }
    for (let p = 0; p < parents; p++) start[p + 1]! += start[p]!
    for (const s of sources) {
      const column = columnOf(s)
      const nodes = new Float64Array(s.length).map((_, e) => start[under(s, e)]! + column[e]!)
      placed.set(s, nodes)
    }
    return { ...base, count: start[parents]!, start, coord: null }
  }
  if ('unique' in axis && !axis.unique)
    return buildNonunique(base, sources, below, widthOf, under, start, placed)
  // key = parent · extent + coordinate, exact in float64 for any sizes that toType in memory
  const keys = new Float64Array(sources.reduce((n, s) => n + s.length, 0))
  const keyed = new Map<Source, Float64Array>()
  let at = 0
  for (const s of sources) {
    const column = columnOf(s)
    const own = keys.subarray(at, (at += s.length))
    for (let e = 0; e < s.length; e++) own[e] = under(s, e) * extent + column[e]!
    keyed.set(s, own.slice())
  }
  let isAscending = true
  for (let k = 1; k < keys.length && isAscending; k++) isAscending = keys[k - 1]! <= keys[k]!
  if (!isAscending) keys.sort()
  let count = 0
  for (let k = 0; k < keys.length; k++) if (k === 0 || keys[k] !== keys[k - 1]) keys[count++] = keys[k]!
  const coord = new Int32Array(count)
  for (let q = 0; q < count; q++) {
    const p = Math.floor(keys[q]! / extent)
    coord[q] = keys[q]! - p * extent
    start[p + 1]!++
  }
  for (let p = 0; p < parents; p++) start[p + 1]! += start[p]!
  const level: Level = { ...base, count, start, coord }
  for (const s of sources) {
    const column = columnOf(s)
    // Entries that are different, and in order, are the nodes.
    if (isAscending && count === keys.length && s.length === count) {
      placed.set(
        s,
        Float64Array.from({ length: count }, (_, q) => q),
      )
      continue
    }
    placed.set(
      s,
      keyed.get(s)!.map((_, e) => findNode(level, under(s, e), column[e]!)),
    )
  }
  return level
}

/** What is stored at one coordinate of a nonunique level. */
interface Entry {
  readonly s: Source
  readonly e: number
  /** Parent node, coordinates from this level down, and how often the same came before, where that is kept. */
  readonly key: readonly number[]
}

function compare(a: Entry, b: Entry): number {
  for (let k = 0; k < Math.max(a.key.length, b.key.length); k++) {
    const d = (a.key[k] ?? -1) - (b.key[k] ?? -1)
    if (d !== 0) return d
  }
  return 0
}

/**
 * A nonunique level has a node for each stored path below it (each entry, where duplicates are kept); over a
 * `sparse_fixed` level, one for as many of its nodes as it is wide.
 */
function buildNonunique(
  base: { axis: StoredAxis; parent: Level | null; extent: number },
  sources: readonly Source[],
  below: ReadonlyMap<string, StoredAxis>,
  widthOf: (a: StoredAxis) => number | null,
  under: (s: Source, e: number) => number,
  start: Float64Array,
  placed: Placed,
): Level {
  const entries: Entry[] = []
  const apart = sources.some((s) => s.keep)
  let chain: readonly StoredAxis[] = [base.axis]
  for (const s of sources) {
    const deeper = s.axes.filter((a) => a !== base.axis.name && below.has(a))
    if (deeper.length >= chain.length) chain = [base.axis, ...deeper.map((a) => below.get(a)!)]
    const columns = deeper.map((a) => s.columns[s.axes.indexOf(a)]!)
    const own = s.columns[s.axes.indexOf(base.axis.name)]!
    const seen = new Map<string, number>()
    for (let e = 0; e < s.length; e++) {
      const key = [under(s, e), own[e]!, ...columns.map((c) => c[e]!)]
      if (apart) {
        const text = key.join()
        const times = seen.get(text) ?? 0
        if (s.keep) seen.set(text, times + 1)
        key.push(times)
      }
      entries.push({ s, e, key })
    }
    placed.set(s, new Float64Array(s.length))
  }
  entries.sort(compare)
  const begins = beginsOf(entries, chain, widthOf, 0)
  const coord: number[] = []
  entries.forEach((entry, k) => {
    if (begins[k]) {
      coord.push(entry.key[1]!)
      start[entry.key[0]! + 1]!++
    }
    placed.get(entry.s)![entry.e] = coord.length - 1
  })
  for (let p = 0; p + 1 < start.length; p++) start[p + 1]! += start[p]!
  return { ...base, count: coord.length, start, coord: Int32Array.from(coord) }
}

/** For each entry whether it needs another node on `chain[depth]` than the entry before it. */
function beginsOf(
  entries: readonly Entry[],
  chain: readonly StoredAxis[],
  widthOf: (a: StoredAxis) => number | null,
  depth: number,
): readonly boolean[] {
  const differs = (k: number, length: number): boolean =>
    k === 0 || entries[k]!.key.slice(0, length).join() !== entries[k - 1]!.key.slice(0, length).join()
  const axis = chain[depth]!
  const isNew = (k: number): boolean => differs(k, depth + 2)
  if (!('unique' in axis) || axis.unique) return entries.map((_, k) => isNew(k))
  const child = chain[depth + 1]
  const other = entries.map((entry, k) => k === 0 || compare(entries[k - 1]!, entry) !== 0)
  if (!hasWidth(child)) return other
  const width = widthOf(child) ?? Number.POSITIVE_INFINITY
  const inner = beginsOf(entries, chain, widthOf, depth + 1)
  let visited = 0
  return entries.map((_, k) => {
    const sameNode = other[k]! && child.unique && !differs(k, chain.length + 1)
    if (inner[k]) visited++
    if (!isNew(k) && !sameNode && visited <= width) return false
    visited = 1
    return true
  })
}
