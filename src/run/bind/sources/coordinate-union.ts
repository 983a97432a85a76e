/** Union of the coordinates of several tensors over the same axes, as one list of entries. */

import { ascending, concat, gather } from '../../../columns/allocate.ts'
import { repetitions, uniqueTuples } from '../../../columns/repetitions.ts'
import type { Piece, Source } from '../types.ts'
import { lengthOf } from './remap-entries.ts'

/** The piece that contains all entries of a source, before formats split it. */
export const wholeOf = (source: Source, over: readonly string[]): Piece => ({
  source,
  entries: null,
  columns: new Map(over.map((a) => [a, source.columns[source.axes.indexOf(a)]!])),
  order: 'unknown',
})

export interface Union {
  readonly columns: readonly Int32Array[]
  /** Maps positions of the union's entries to those of a piece's entries, in its order. `null`: entry e has position e. */
  readonly positionsOf: (piece: Piece, positions: Int32Array | null) => Int32Array | null
}

/**
 * Returns the union of the pieces' entries on these axes, in order. Normally, equal coordinates are simply repeated. If a piece keeps
 * duplicates apart (`keeps`, for nonunique axes), the k-th duplicate of one piece is identified with the k-th of another. All duplicates
 * of other pieces are identified with the first.
 */
export function united(
  pieces: readonly Piece[],
  axes: readonly string[],
  keeps: (p: Piece) => boolean,
): Union {
  const columns = axes.map((a) => concat(pieces.map((p) => p.columns.get(a)!)))
  const kept = pieces.map(keeps)
  const apart = kept.includes(true) && pieces.length > 1
  const ids = apart ? uniqueTuples([...columns, timesOf(columns, pieces, kept)]) : null
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
    const own = ids?.indexOf.subarray(at, to)
    if (own) return positions ? gather(positions, own) : own
    return positions ? positions.subarray(at, to) : ascending(to - at, 'positions', at)
  }
  return { columns: ids ? columns.map((c) => gather(c, ids.entries)) : columns, positionsOf }
}

/**
 * For each entry of the concatenated pieces: its rank among the entries of its piece with equal coordinates. The rank is 0 in pieces that
 * do not keep duplicates apart.
 */
function timesOf(
  columns: readonly Int32Array[],
  pieces: readonly Piece[],
  kept: readonly boolean[],
): Int32Array {
  const times = new Int32Array(columns[0]!.length)
  let at = 0
  pieces.forEach((p, k) => {
    const to = at + lengthOf(p)
    if (kept[k]) times.set(repetitions(columns.map((c) => c.subarray(at, to))), at)
    at = to
  })
  return times
}
