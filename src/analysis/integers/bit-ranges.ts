/** Ranges of bit operations, from the ranges of their operands. Results are 32-bit words for any operands. */
import type { MathFn } from '../../ir/values/math.ts'

type Ends = readonly [lo: number, hi: number]

const WORD: Ends = [-(2 ** 31), 2 ** 31 - 1]

/** Returns the range of a function of type `bits`. An operand beyond 32 bits may be any word. */
export function endsOfBits(fn: MathFn, x: Ends, y: Ends = [0, 0]): Ends {
  const [a, b] = [wordOf(x), wordOf(y)]
  switch (fn) {
    case 'popcount':
      return a[0] >= 0 ? [Math.min(a[0], 1), places(a[1])] : [0, 32]
    case 'shift_left':
      return shiftedLeft(a, shiftsBy(b))
    case 'shift_right':
      return shiftedRight(a, shiftsBy(b))
    case 'bit_and':
    case 'bit_or':
    case 'bit_xor':
      return combined(fn, a, b)
    default:
      return WORD
  }
}

const wordOf = ([lo, hi]: Ends): Ends => (lo >= WORD[0] && hi <= WORD[1] ? [lo, hi] : WORD)

/** Returns the number of bits of a non-negative number. */
const places = (x: number): number => 32 - Math.clz32(x)

/** Returns the range of shift distances, which are taken mod 32. */
const shiftsBy = ([lo, hi]: Ends): Ends =>
  Math.floor(lo / 32) === Math.floor(hi / 32) ? [lo & 31, hi & 31] : [0, 31]

/** Returns the range of products with powers of two if no bit is lost; otherwise that of any word. */
function shiftedLeft([lo, hi]: Ends, [least, most]: Ends): Ends {
  const ends: Ends = [lo * 2 ** (lo < 0 ? most : least), hi * 2 ** (hi < 0 ? least : most)]
  return wordOf(ends)
}

/** Returns the range of a logical shift: quotients of non-negative numbers, or the remaining bits of any word. */
function shiftedRight([lo, hi]: Ends, [least, most]: Ends): Ends {
  if (lo >= 0) return [Math.floor(lo / 2 ** most), Math.floor(hi / 2 ** least)]
  return least === 0 ? WORD : [0, 2 ** (32 - least) - 1]
}

/**
 * Returns the range of a bitwise operation: as many bits as the wider operand, with the possible signs. `and` is at
 * most each non-negative operand, and `or` at least each negative one.
 */
function combined(fn: 'bit_and' | 'bit_or' | 'bit_xor', a: Ends, b: Ends): Ends {
  const ends = [...a, ...b]
  const most = 2 ** places(Math.max(...ends.map((x) => (x < 0 ? -1 - x : x)))) - 1
  const signs = signsOf(a).flatMap((x) => signsOf(b).map((y) => SIGN[fn](x, y)))
  const naturals = [a, b].filter(([lo]) => lo >= 0)
  const negatives = [a, b].filter(([, hi]) => hi < 0)
  let [lo, hi] = [signs.includes(true) ? -most - 1 : 0, signs.includes(false) ? most : -1]
  if (fn === 'bit_and') {
    hi = Math.min(hi, ...naturals.map((x) => x[1]))
    if (negatives.length === 2) hi = Math.min(hi, a[1], b[1])
  }
  if (fn === 'bit_or') {
    lo = Math.max(lo, ...negatives.map((x) => x[0]))
    if (naturals.length === 2) lo = Math.max(lo, a[0], b[0])
  }
  return [lo, hi]
}

const SIGN = {
  bit_and: (x: boolean, y: boolean) => x && y,
  bit_or: (x: boolean, y: boolean) => x || y,
  bit_xor: (x: boolean, y: boolean) => x !== y,
}

/** Returns the possible signs: true for negative, false for non-negative values. */
const signsOf = ([lo, hi]: Ends): boolean[] => [...(lo < 0 ? [true] : []), ...(hi >= 0 ? [false] : [])]
