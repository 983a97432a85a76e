/** Where nonunique axes begin new positions. */

import { changes } from '../../columns/keys.ts'
import { hasIndices, type StoredAxis } from '../../ir/axis.ts'

const repeats = (a: StoredAxis): boolean => hasIndices(a) && !a.unique

const everywhere = (column: Int32Array): Uint8Array => new Uint8Array(column.length).fill(1)

/**
 * For each nonunique axis of a tree, 1 where an entry needs a new position although its coordinate is that of the
 * entry before; `null`: everywhere. With a `sparse_fixed` child a position takes `widths` different child
 * coordinates (any number where the width is still to be measured), without one it takes one tuple. Entries of
 * equal tuples have a position each where they are kept apart (`keep`).
 *
 * @param tree the axes of a chain from one with indices on
 * @param sorted columns of these axes, entries in lexicographic order by `above` and them
 * @param above position above the first of these axes; `null`: one for all
 */
export function newPositions(
  tree: readonly StoredAxis[],
  sorted: readonly Int32Array[],
  above: Int32Array | null,
  widths: ReadonlyMap<string, number>,
  keep: boolean,
): readonly (Uint8Array | null)[] {
  const out: (Uint8Array | null)[] = tree.map(() => null)
  const down = (depth: number): Uint8Array =>
    changes(above ? [above, ...sorted.slice(0, depth)] : sorted.slice(0, depth))
  let tuples: Uint8Array | null = null
  // A child begins new positions inside a run of its parent: the deepest axis first.
  for (let d = tree.length - 1; d >= 0; d--) {
    if (!repeats(tree[d]!)) continue
    const child = tree[d + 1]
    if (keep && child?.kind !== 'sparse_fixed') continue
    if (keep || child?.kind !== 'sparse_fixed') tuples ??= down(sorted.length)
    out[d] =
      child?.kind === 'sparse_fixed'
        ? runs(
            down(d + 1),
            sorted[d + 1]!,
            repeats(child) ? (out[d + 1] ?? everywhere(sorted[d + 1]!)) : null,
            keep && !repeats(child) ? tuples : null,
            widths.get(child.name) ?? 0,
          )
        : tuples
  }
  return out
}

/**
 * Cuts runs of equal coordinates (which begin at 1s of `own`, written to) after `width` child positions (0: never),
 * and where a tuple comes again. Child positions begin at 1s of `child`, or where the child's `column` changes.
 */
function runs(
  own: Uint8Array,
  column: Int32Array,
  child: Uint8Array | null,
  tuples: Uint8Array | null,
  width: number,
): Uint8Array {
  let rank = 0
  for (let s = 0; s < own.length; s++) {
    if (own[s] === 1) rank = 0
    else if (tuples !== null && tuples[s] === 0) {
      own[s] = 1
      rank = 0
    } else if (child ? child[s] === 1 : column[s] !== column[s - 1]) {
      rank++
      if (rank === width) {
        own[s] = 1
        rank = 0
      }
    }
  }
  return own
}
