/** Packed index arrays: coordinates as fields of 32-bit words. The only module that defines the location of a field. */
import { failAt } from '../../ast/diagnostics/diagnostic.ts'
import { codesOf, hasHoles, indexBits, type StoredAxis } from '../coordinates/axis.ts'
import { binary, call, type Expr, int, mul, sub } from '../expressions/expr.ts'

export const MASK_BITS = 1

export const wordsFor = (count: number, bits: number): number => Math.ceil(count / (32 / bits))

/**
 * The element at a position; `word` reads a word of the array. A field is extracted by shifting out the fields above
 * and below it. `truncating`: uses truncating division, after flooring divisions of positions have been lowered.
 */
export function fieldAt(
  position: Expr,
  bits: number,
  word: (wordIndex: Expr) => Expr,
  truncating = false,
): Expr {
  if (bits === 32) return word(position)
  const perWord = int(32 / bits)
  const [wordIndex, field] = [
    binary(truncating ? 'quo' : 'div', position, perWord),
    binary(truncating ? 'rem' : 'mod', position, perWord),
  ]
  const unusedBits = sub(int(32 - bits), mul(field, int(bits)))
  return call('shift_right', [call('shift_left', [word(wordIndex), unusedBits]), int(32 - bits)])
}

/** Numbers as fields of `bits` bits each, the first in the lowest bits of the first word. */
export function packFields(values: ArrayLike<number>, bits: number): Int32Array {
  const perWord = 32 / bits
  const out = new Int32Array(wordsFor(values.length, bits))
  for (let k = 0; k < values.length; k++)
    out[Math.floor(k / perWord)]! |= values[k]! << ((k % perWord) * bits)
  return out
}

/** The first `count` fields, as integers. */
export function unpackFields(words: ArrayLike<number>, bits: number, count: number): Int32Array {
  const perWord = 32 / bits
  const out = new Int32Array(count)
  for (let k = 0; k < count; k++)
    out[k] = (words[Math.floor(k / perWord)]! << (32 - bits - (k % perWord) * bits)) >>> (32 - bits)
  return out
}

/**
 * Checks that fields can hold every coordinate, and one more code if positions may be empty. @throws SptError
 * `format/packed`
 */
export function checkFields(axis: StoredAxis, extent: number): void {
  const bits = indexBits(axis)
  const codes = codesOf(axis, extent)
  if (bits === 32 || codes <= 2 ** bits) return
  const hasEmptyCode = hasHoles(axis)
  failAt('format/packed', axis.span, {
    message: `axis ${axis.name} packs coordinates into ${bits} bits, and its extent is ${extent}${hasEmptyCode ? ', with one number more for positions that hold nothing' : ''}`,
    expected: `an extent up to ${2 ** bits - (hasEmptyCode ? 1 : 0)}`,
    hint: hasEmptyCode
      ? 'give more bits, or no padding a number of its own: `compact`, or `padded with` a coordinate'
      : 'give more bits, or store coordinates within smaller ranges',
  })
}

// Bit counts of 32-bit words, for bitmap axes.

export function bitCount(word: number): number {
  let x = word - ((word >>> 1) & 0x55555555)
  x = (x & 0x33333333) + ((x >>> 2) & 0x33333333)
  x = (x + (x >>> 4)) & 0x0f0f0f0f
  return Math.imul(x, 0x01010101) >>> 24
}
