/**
 * Bitmap levels: a word of the mask holds 32 coordinates of one parent position, lowest bit first; the position
 * of a coordinate is the number of bits below it, after those of earlier parents.
 */
import { invariant } from '../../ast/diagnostic.ts'
import { type MaskedAxis, maskOf } from '../../ir/axis.ts'
import { add, call, div, type Expr, int, load, lt, max, min, mul, sub } from '../../ir/expr.ts'

/** Words for each parent position. */
export function wordsOf(axis: MaskedAxis): number {
  invariant(axis.extent.kind === 'const', `the extent of the bitmap ${axis.name} is a constant`)
  return Math.ceil(axis.extent.value / 32)
}

const wordAt = (axis: MaskedAxis, parent: Expr, word: Expr): Expr =>
  load(maskOf(axis.name), [add(mul(parent, int(wordsOf(axis))), word)], 'i32')

/** The word of a coordinate with the coordinate's bit as its highest: bits above are shifted out. */
function upTo(axis: MaskedAxis, parent: Expr, coordinate: Expr): Expr {
  const one = wordsOf(axis) === 1
  const word = wordAt(axis, parent, one ? int(0) : div(coordinate, int(32)))
  // A shift is by its places mod 32.
  return call('shift_left', [word, sub(int(31), coordinate)])
}

/** Whether the coordinate is there: the highest bit is the sign. */
export const isSet = (axis: MaskedAxis, parent: Expr, coordinate: Expr): Expr =>
  lt(upTo(axis, parent, coordinate), int(0))

/** How many coordinates under this parent position are smaller. */
export function rankOf(axis: MaskedAxis, parent: Expr, coordinate: Expr): Expr {
  let rank = call('popcount', [call('shift_left', [upTo(axis, parent, coordinate), int(1)])])
  for (let w = wordsOf(axis) - 2; w >= 0; w--) {
    // 1 in words after this one, else 0: by arithmetic, as cases would multiply with the number of words.
    const after = min(max(sub(div(coordinate, int(32)), int(w)), int(0)), int(1))
    rank = add(rank, mul(call('popcount', [wordAt(axis, parent, int(w))]), after))
  }
  return rank
}
