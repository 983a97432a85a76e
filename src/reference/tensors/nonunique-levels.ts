/** Levels with repeated coordinates under a parent: one node per entry, or one per group of child nodes. */
import { hasWidth, type StoredAxis } from '../../ir/coordinates/axis.ts'
import type { EntryNodes, Level, Source } from './axis-trees.ts'

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
export function buildNonunique(
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
