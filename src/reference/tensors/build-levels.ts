/**
 * Construction of axis trees by sorting and merging coordinate columns; deliberately independent of the compiler's
 * builders.
 */
import { failWith, invariant } from '../../ast/diagnostics/diagnostic.ts'
import { AXES, type LevelProperties } from '../../ast/nodes/axis-kinds.ts'
import type { Axis, StoredAxis } from '../../ir/coordinates/axis.ts'
import { chainTo, hasWidth, isDenseRoot, isStored, parentOf } from '../../ir/coordinates/axis.ts'
import { type EntryNodes, findNode, type Level, type Source } from './axis-trees.ts'

/** Builds the levels of all stored axes; `nodes` has, for every axis, the node of each source's entries. */
export function buildLevels(
  axes: readonly Axis[],
  extentOf: (a: StoredAxis) => number,
  widthOf: (a: StoredAxis) => number | null,
  sources: readonly Source[],
): { levels: ReadonlyMap<string, Level>; nodes: ReadonlyMap<string, EntryNodes> } {
  const byName = new Map(axes.map((a) => [a.name, a]))
  const levels = new Map<string, Level>()
  const nodes = new Map<string, EntryNodes>()
  const visit = (axis: Axis): void => {
    if (levels.has(axis.name) || !isStored(axis)) return
    const parentName = parentOf(axis)
    const parentAxis = axes.find((a) => a.name === parentName)
    if (parentAxis) visit(parentAxis)
    const parent = parentName === null ? null : levels.get(parentName)
    invariant(parent !== undefined, `axis ${axis.name} has no parent ${parentName}`)
    const ownSources = sources.filter((s) => s.axes.includes(axis.name))
    const extent = extentOf(axis)
    for (const s of ownSources) checkRange(s, axis.name, extent)
    const entryNodes: EntryNodes = new Map()
    const parentNodes = parent ? nodes.get(parent.axis.name)! : null
    const subtree = new Map(
      axes
        .filter(isStored)
        .filter((a) => chainTo(byName, a.name).includes(axis.name))
        .map((a) => [a.name, a]),
    )
    const level = buildLevel(axis, parent, extent, ownSources, subtree, widthOf, parentNodes, entryNodes)
    const width = widthOf(axis)
    if (width !== null && level.start)
      for (let p = 0; p + 1 < level.start.length; p++) {
        const n = level.start[p + 1]! - level.start[p]!
        if (n > width)
          failWith(
            'reference/width',
            `axis ${axis.name} holds at most ${width} coordinates under each parent, but ${n} are stored under one`,
            { expected: `at most ${width}` },
          )
      }
    levels.set(axis.name, level)
    nodes.set(axis.name, entryNodes)
  }
  for (const a of axes) visit(a)
  return { levels, nodes }
}

function checkRange(s: Source, axis: string, extent: number): void {
  const column = s.columns[s.axes.indexOf(axis)]!
  for (let e = 0; e < s.length; e++) {
    const c = column[e]!
    if (c < 0 || c >= extent)
      failWith(
        'reference/coordinate-range',
        `${s.name} has the coordinate ${c} on axis ${axis}, whose extent is ${extent}`,
        { expected: `a coordinate from 0 to ${extent - 1}` },
      )
  }
}

function buildLevel(
  axis: StoredAxis,
  parent: Level | null,
  extent: number,
  sources: readonly Source[],
  subtree: ReadonlyMap<string, StoredAxis>,
  widthOf: (a: StoredAxis) => number | null,
  parentNodes: EntryNodes | null,
  entryNodes: EntryNodes,
): Level {
  const columnOf = (s: Source): Int32Array => s.columns[s.axes.indexOf(axis.name)]!
  const parents = parent ? parent.count : 1
  const { stores }: LevelProperties = AXES[axis.kind].level
  if (isDenseRoot(axis)) {
    for (const s of sources) entryNodes.set(s, Float64Array.from(columnOf(s)))
    return { axis, parent, extent, count: extent, start: null, coord: null }
  }
  const parentNode = (s: Source, e: number): number => (parentNodes ? parentNodes.get(s)![e]! : 0)
  /** Calls `run` with the parent node and the coordinate of each entry. */
  const each = (run: (p: number, c: number) => void): void => {
    for (const s of sources) {
      const column = columnOf(s)
      for (let e = 0; e < s.length; e++) run(parentNode(s, e), column[e]!)
    }
  }
  const place = (nodeOf: (p: number, c: number) => number): void => {
    for (const s of sources) {
      const column = columnOf(s)
      entryNodes.set(
        s,
        new Float64Array(s.length).map((_, e) => nodeOf(parentNode(s, e), column[e]!)),
      )
    }
  }
  const start = new Float64Array(parents + 1)
  const base = { axis, parent, extent }
  if (stores === 'all') {
    for (let p = 0; p <= parents; p++) start[p] = p * extent
    place((p, c) => p * extent + c)
    return { ...base, count: parents * extent, start, coord: null }
  }
  if (stores === 'prefix') {
    each((p, c) => {
      start[p + 1] = Math.max(start[p + 1]!, c + 1)
    })
    for (let p = 0; p < parents; p++) start[p + 1]! += start[p]!
    place((p, c) => start[p]! + c)
    return { ...base, count: start[parents]!, start, coord: null }
  }
  if (stores === 'interval') {
    const first = new Float64Array(parents).fill(extent)
    const end = new Float64Array(parents)
    each((p, c) => {
      first[p] = Math.min(first[p]!, c)
      end[p] = Math.max(end[p]!, c + 1)
    })
    const coord: number[] = []
    for (let p = 0; p < parents; p++) {
      for (let c = first[p]!; c < end[p]!; c++) coord.push(c)
      start[p + 1] = coord.length
    }
    place((p, c) => start[p]! + c - first[p]!)
    return { ...base, count: coord.length, start, coord: Int32Array.from(coord) }
  }
  const others: 'elements' = stores
  invariant(others, 'all ways to store coordinates are covered')
  if ('unique' in axis && !axis.unique)
    return buildNonunique(base, sources, subtree, widthOf, parentNode, start, entryNodes)
  // key = parent · extent + coordinate, exact in float64 for all sizes that fit memory
  const keys = new Float64Array(sources.reduce((n, s) => n + s.length, 0))
  const keysBySource = new Map<Source, Float64Array>()
  let offset = 0
  for (const s of sources) {
    const column = columnOf(s)
    const entryKeys = keys.subarray(offset, (offset += s.length))
    for (let e = 0; e < s.length; e++) entryKeys[e] = parentNode(s, e) * extent + column[e]!
    keysBySource.set(s, entryKeys.slice())
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
    // The distinct entries, in order, are the nodes.
    if (isAscending && count === keys.length && s.length === count) {
      entryNodes.set(
        s,
        Float64Array.from({ length: count }, (_, q) => q),
      )
      continue
    }
    entryNodes.set(
      s,
      keysBySource.get(s)!.map((_, e) => findNode(level, parentNode(s, e), column[e]!)),
    )
  }
  return level
}

// Levels with repeated coordinates under a parent: one node per entry, or one per group of child nodes.

/** An entry at one coordinate of a nonunique level. */
interface Entry {
  readonly s: Source
  readonly e: number
  /** Parent node, coordinates from this level down and, if duplicates are kept, the number of equal predecessors. */
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
 * A nonunique level has one node for each stored path below it (each entry, if duplicates are kept); above a
 * `sparse_fixed` level of width w, one for each w child nodes.
 */
function buildNonunique(
  base: { axis: StoredAxis; parent: Level | null; extent: number },
  sources: readonly Source[],
  subtree: ReadonlyMap<string, StoredAxis>,
  widthOf: (a: StoredAxis) => number | null,
  parentNode: (s: Source, e: number) => number,
  start: Float64Array,
  entryNodes: EntryNodes,
): Level {
  const entries: Entry[] = []
  const keepsDuplicates = sources.some((s) => s.keep)
  let chain: readonly StoredAxis[] = [base.axis]
  for (const s of sources) {
    const deeperAxes = s.axes.filter((a) => a !== base.axis.name && subtree.has(a))
    if (deeperAxes.length >= chain.length) chain = [base.axis, ...deeperAxes.map((a) => subtree.get(a)!)]
    const columns = deeperAxes.map((a) => s.columns[s.axes.indexOf(a)]!)
    const column = s.columns[s.axes.indexOf(base.axis.name)]!
    const seen = new Map<string, number>()
    for (let e = 0; e < s.length; e++) {
      const key = [parentNode(s, e), column[e]!, ...columns.map((c) => c[e]!)]
      if (keepsDuplicates) {
        const text = key.join()
        const occurrence = seen.get(text) ?? 0
        if (s.keep) seen.set(text, occurrence + 1)
        key.push(occurrence)
      }
      entries.push({ s, e, key })
    }
    entryNodes.set(s, new Float64Array(s.length))
  }
  entries.sort(compare)
  const startsNode = nodeStarts(entries, chain, widthOf, 0)
  const coord: number[] = []
  entries.forEach((entry, k) => {
    if (startsNode[k]) {
      coord.push(entry.key[1]!)
      start[entry.key[0]! + 1]!++
    }
    entryNodes.get(entry.s)![entry.e] = coord.length - 1
  })
  for (let p = 0; p + 1 < start.length; p++) start[p + 1]! += start[p]!
  return { ...base, count: coord.length, start, coord: Int32Array.from(coord) }
}

/** For each entry, true if it needs a new node on `chain[depth]`. */
function nodeStarts(
  entries: readonly Entry[],
  chain: readonly StoredAxis[],
  widthOf: (a: StoredAxis) => number | null,
  depth: number,
): readonly boolean[] {
  const differs = (k: number, length: number): boolean =>
    k === 0 || entries[k]!.key.slice(0, length).join() !== entries[k - 1]!.key.slice(0, length).join()
  const axis = chain[depth]!
  const startsCoordinate = (k: number): boolean => differs(k, depth + 2)
  if (!('unique' in axis) || axis.unique) return entries.map((_, k) => startsCoordinate(k))
  const child = chain[depth + 1]
  const startsTuple = entries.map((entry, k) => k === 0 || compare(entries[k - 1]!, entry) !== 0)
  if (!hasWidth(child)) return startsTuple
  const width = widthOf(child) ?? Number.POSITIVE_INFINITY
  const childStarts = nodeStarts(entries, chain, widthOf, depth + 1)
  let childNodes = 0
  return entries.map((_, k) => {
    const sameNode = startsTuple[k]! && child.unique && !differs(k, chain.length + 1)
    if (childStarts[k]) childNodes++
    if (!startsCoordinate(k) && !sameNode && childNodes <= width) return false
    childNodes = 1
    return true
  })
}
