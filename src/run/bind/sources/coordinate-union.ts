/** Union of the coordinates of several tensors over the same axes, as one list of entries. */

import { failWith } from '../../../ast/diagnostics/diagnostic.ts'
import { allocate, ascending, concat, gather } from '../../../columns/allocate.ts'
import { repetitions, uniqueTuples } from '../../../columns/key-columns.ts'
import { type Axis, isNonunique } from '../../../ir/coordinates/axis.ts'
import { type Storage, separatesDuplicates } from '../../../storage/storage.ts'
import type { Piece, Source } from '../types.ts'
import { storedAxis } from './caller-tensors.ts'
import { lengthOf } from './remap-entries.ts'

/** The piece that contains all entries of a source, before formats split it. */
export const wholeOf = (source: Source, over: readonly string[]): Piece => ({
  source,
  entries: null,
  columns: new Map(over.map((a) => [a, source.columns[source.axes.indexOf(a)]!])),
  order: 'unknown',
})

interface Union {
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

/** The rank of each entry among its equals in its piece; 0 in pieces that do not keep duplicates apart. */
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

// Duplicate coordinates: entries of a `nonunique` axis that must stay separate, in formats that cannot keep
// them apart.

/** Equal coordinates on nonunique axes have separate positions, as iterations visit each. Throws `bind/duplicates`. */
export function checkApart(
  axes: ReadonlyMap<string, Axis>,
  pieces: readonly Piece[],
  union: Union,
  storage: Storage,
): void {
  const positions = storage.entries?.positions
  // Without positions, and under a nonunique axis, each entry has its own position.
  if (!positions || (storage.trees.length === 1 && storage.axes.some(isNonunique))) return
  for (const piece of pieces) {
    if (piece.columns.size !== storage.axes.length) continue
    const declared = piece.source.axes.map((a) => storedAxis(axes, a))
    if (separatesDuplicates(declared)) checkDistinct(piece, union.positionsOf(piece, positions)!, storage)
  }
}

function checkDistinct(piece: Piece, positions: Int32Array, storage: Storage): void {
  const first = allocate(storage.size, 'positions').fill(-1)
  for (let e = 0; e < positions.length; e++) {
    const at = positions[e]!
    const other = first[at]!
    first[at] = e
    if (other < 0) continue
    const [a, b] = [other, e].map((k) => piece.entries?.[k] ?? k)
    const coordinate = piece.source.columns.map((c) => c[b!]).join(', ')
    failWith(
      'bind/duplicates',
      `entries ${a} and ${b} of ${piece.source.name} are both at (${coordinate}); its axes are declared nonunique, so each is visited, and its format over [${storage.axes.map((x) => x.name).join(', ')}] has a single place`,
      {
        expected: 'each coordinate once, or a format with a nonunique axis, such as coo',
        hint: 'add equal coordinates up before binding, or declare the axes unique: equal coordinates then add up',
      },
    )
  }
}
