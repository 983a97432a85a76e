/**
 * Bitmap levels: each word of the mask holds 32 coordinates of one parent position, lowest bit first. The position of a coordinate is its
 * rank: the number of set bits below it, plus the bits of earlier parents.
 */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { type MaskedAxis, maskOf } from '../../ir/coordinates/axis.ts'
import { add, call, div, type Expr, int, load, lt, max, min, mul, sub } from '../../ir/expressions/expr.ts'

/** The number of 32-bit words per parent position. */
export function wordsOf(axis: MaskedAxis): number {
  invariant(axis.extent.kind === 'const', `the extent of the bitmap ${axis.name} is a constant`)
  return Math.ceil(axis.extent.value / 32)
}

const wordAt = (axis: MaskedAxis, parent: Expr, word: Expr): Expr =>
  load(maskOf(axis.name), [add(mul(parent, int(wordsOf(axis))), word)], 'i32')

/** Shifts a word left so that the bit of the coordinate is the highest. */
function upTo(axis: MaskedAxis, parent: Expr, coordinate: Expr): Expr {
  const one = wordsOf(axis) === 1
  const word = wordAt(axis, parent, one ? int(0) : div(coordinate, int(32)))
  // Shift counts are taken modulo 32.
  return call('shift_left', [word, sub(int(31), coordinate)])
}

/** Tests the bit of a coordinate, which is the sign after the shift. */
export const isSet = (axis: MaskedAxis, parent: Expr, coordinate: Expr): Expr =>
  lt(upTo(axis, parent, coordinate), int(0))

/** The number of stored coordinates under this parent position that are smaller. */
export function rankOf(axis: MaskedAxis, parent: Expr, coordinate: Expr): Expr {
  let rank = call('popcount', [call('shift_left', [upTo(axis, parent, coordinate), int(1)])])
  for (let w = wordsOf(axis) - 2; w >= 0; w--) {
    // 1 for words below the coordinate's word, otherwise 0. Arithmetic is used, because branches would multiply with the number of
    // words.
    const after = min(max(sub(div(coordinate, int(32)), int(w)), int(0)), int(1))
    rank = add(rank, mul(call('popcount', [wordAt(axis, parent, int(w))]), after))
  }
  return rank
}
