/** Union of the coordinates of several tensors over the same axes, as one list of entries. */

import { ascending, concat, gather } from '../../columns/allocate.ts'
import { changes, largest } from '../../columns/key-columns.ts'
import { lexicographic } from '../../columns/lexicographic-sort.ts'
import { lengthOf } from './remap-entries.ts'
import type { Piece, Source } from './types.ts'

/** A source before anything is split. */
export const wholeOf = (source: Source, over: readonly string[]): Piece => ({
  source,
  entries: null,
  columns: new Map(over.map((a) => [a, source.columns[source.axes.indexOf(a)]!])),
  order: 'unknown',
})

export interface Union {
  readonly columns: readonly Int32Array[]
  /** The positions of a piece's entries, in its order, from those of the union's (`null`: entry e has position e). */
  readonly positionsOf: (piece: Piece, positions: Int32Array | null) => Int32Array | null
}

/**
 * The union of what pieces hold on these axes, in their order. Entries of equal coordinates are listed each; where each
 * gets a position of its own (a piece `keeps` them apart: under `nonunique` axes), the k-th such entry of one piece is
 * the k-th of another, so that a coordinate is there as often as in the piece that has it most often; those of a piece
 * whose equal coordinates add up (over several trees) are all the first.
 */
export function united(
  pieces: readonly Piece[],
  axes: readonly string[],
  keeps: (p: Piece) => boolean,
): Union {
  const columns = axes.map((a) => concat(pieces.map((p) => p.columns.get(a)!)))
  const kept = pieces.map(keeps)
  const ids = kept.includes(true) && pieces.length > 1 ? identified(columns, ownersOf(pieces), kept) : null
  const starts = new Map<Piece, number>()
  let before = 0
  for (const p of pieces) {
    starts.set(p, before)
    before += lengthOf(p)
  }
  const positionsOf = (p: Piece, positions: Int32Array | null): Int32Array | null => {
    if (pieces.length === 1) return positions
    const at = starts.get(p)!
    const to = at + lengthOf(p)
    const own = ids?.of.subarray(at, to)
    if (own) return positions ? gather(positions, own) : own
    return positions ? positions.subarray(at, to) : ascending(to - at, 'positions', at)
  }
  return { columns: ids ? columns.map((c) => gather(c, ids.entries)) : columns, positionsOf }
}

/** For each entry of concatenated pieces the number of its piece. */
function ownersOf(pieces: readonly Piece[]): Int32Array {
  const out = new Int32Array(pieces.reduce((n, p) => n + lengthOf(p), 0))
  let at = 0
  pieces.forEach((p, k) => {
    out.fill(k, at, at + lengthOf(p))
    at += lengthOf(p)
  })
  return out
}

/** The entries that are the first of their kind, and for each entry its place among them. O(entries × axes). */
function identified(
  columns: readonly Int32Array[],
  owner: Int32Array,
  kept: readonly boolean[],
): { readonly entries: Int32Array; readonly of: Int32Array } {
  const n = owner.length
  const sorted = lexicographic(columns, columns.map(largest))
  const begins = changes(sorted.columns)
  // Of equal entries those of one piece stand together, in their order.
  const like = new Int32Array(n)
  let run: number[] = []
  let times = 0
  for (let s = 0; s < n; s++) {
    const e = sorted.order ? sorted.order[s]! : s
    if (begins[s] === 1) run = []
    const follows = run.length > 0 && owner[e] === owner[sorted.order ? sorted.order[s - 1]! : s - 1]
    times = follows && kept[owner[e]!] ? times + 1 : 0
    if (times === run.length) run.push(e)
    like[e] = run[times]!
  }
  const entries = Int32Array.from(owner.keys()).filter((e) => like[e] === e)
  const place = new Int32Array(n)
  entries.forEach((e, k) => {
    place[e] = k
  })
  return { entries, of: like.map((e) => place[e]!) }
}
