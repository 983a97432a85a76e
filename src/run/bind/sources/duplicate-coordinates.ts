/** Duplicate coordinates: entries of a `nonunique` axis that must stay separate, in formats that cannot keep them apart. */

import { fail } from '../../../ast/diagnostics/diagnostic.ts'
import { allocate } from '../../../columns/allocate.ts'
import { type Axis, isNonunique } from '../../../ir/coordinates/axis.ts'
import { type Storage, separatesDuplicates } from '../../../storage/storage.ts'
import type { Piece } from '../types.ts'
import { storedAxis } from './caller-tensors.ts'
import type { Union } from './coordinate-union.ts'

/**
 * Checks that entries with equal coordinates on nonunique axes have separate positions, because iterations visit each. `pieces`: the
 * pieces of `union`, from which the storage was built. Throws SptError `bind/duplicates`.
 */
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
    fail({
      code: 'bind/duplicates',
      message: `entries ${a} and ${b} of ${piece.source.name} are both at (${coordinate}); its axes are declared nonunique, so each is visited, and its format over [${storage.axes.map((x) => x.name).join(', ')}] has a single place`,
      expected: 'each coordinate once, or a format with a nonunique axis, such as coo',
      hint: 'add equal coordinates up before binding, or declare the axes unique: equal coordinates then add up',
    })
  }
}
