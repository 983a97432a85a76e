/** Bit counts of 32-bit words, for bitmap axes. */

/** The number of set bits of a word. */
export function bitCount(word: number): number {
  let x = word - ((word >>> 1) & 0x55555555)
  x = (x & 0x33333333) + ((x >>> 2) & 0x33333333)
  x = (x + (x >>> 4)) & 0x0f0f0f0f
  return Math.imul(x, 0x01010101) >>> 24
}

/** The number of set bits below `bit` in the words from `firstWord` on. */
export function bitsBelow(mask: Int32Array, firstWord: number, bit: number): number {
  let n = 0
  const last = firstWord + (bit >>> 5)
  for (let w = firstWord; w < last; w++) n += bitCount(mask[w]!)
  const bitInWord = bit & 31
  return bitInWord === 0 ? n : n + bitCount(mask[last]! & ((1 << bitInWord) - 1))
}
