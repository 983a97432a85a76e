/**
 * Bitmap levels: a word of the mask holds 32 coordinates of one parent position, lowest bit first; the position
 * of a coordinate is the number of bits below it, after those of earlier parents.
 */
import { invariant } from '../../ast/diagnostic.ts'
import { type Bitmap, maskOf } from '../../ir/axis.ts'
import { add, call, div, type Expr, int, load, lt, mod, mul, select, sub } from '../../ir/expr.ts'

/** Words for each parent position. */
export function wordsOf(axis: Bitmap): number {
  invariant(axis.extent.kind === 'const', `the extent of the bitmap ${axis.name} is a constant`)
  return Math.ceil(axis.extent.value / 32)
}

const wordAt = (axis: Bitmap, parent: Expr, word: Expr): Expr =>
  load(maskOf(axis.name), [add(mul(parent, int(wordsOf(axis))), word)], 'i32')

/** The word of a coordinate with the coordinate's bit as its highest: bits above are shifted out. */
function upTo(axis: Bitmap, parent: Expr, coordinate: Expr): Expr {
  const one = wordsOf(axis) === 1
  const word = wordAt(axis, parent, one ? int(0) : div(coordinate, int(32)))
  return call('shift_left', [word, sub(int(31), one ? coordinate : mod(coordinate, int(32)))])
}

/** Whether the coordinate is there: the highest bit is the sign. */
export const isSet = (axis: Bitmap, parent: Expr, coordinate: Expr): Expr =>
  lt(upTo(axis, parent, coordinate), int(0))

/** How many coordinates under this parent position are smaller. */
export function rankOf(axis: Bitmap, parent: Expr, coordinate: Expr): Expr {
  const below = call('popcount', [call('shift_left', [upTo(axis, parent, coordinate), int(1)])])
  let rank = below
  for (let w = wordsOf(axis) - 2; w >= 0; w--) {
    const word = call('popcount', [wordAt(axis, parent, int(w))])
    rank = add(rank, select(lt(int(w), div(coordinate, int(32))), word, int(0)))
  }
  return rank
}
