/** Ends of what functions of bits give, by those of their operands. Results are words of 32 bits, whatever goes in. */
import type { MathFn } from '../../ir/math.ts'

type Ends = readonly [lo: number, hi: number]

const WORD: Ends = [-(2 ** 31), 2 ** 31 - 1]

/** Of functions whose type is `bits`. What leaves 32 bits may be any word. */
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

/** How many bits a number takes that is not negative. */
const places = (x: number): number => 32 - Math.clz32(x)

/** Shifts are by n mod 32 places. */
const shiftsBy = ([lo, hi]: Ends): Ends =>
  Math.floor(lo / 32) === Math.floor(hi / 32) ? [lo & 31, hi & 31] : [0, 31]

/** Products by powers of two, where no bit is lost. */
function shiftedLeft([lo, hi]: Ends, [least, most]: Ends): Ends {
  const ends: Ends = [lo * 2 ** (lo < 0 ? most : least), hi * 2 ** (hi < 0 ? least : most)]
  return wordOf(ends)
}

/** Zeros come in: quotients of what is not negative, and what is left of any word. */
function shiftedRight([lo, hi]: Ends, [least, most]: Ends): Ends {
  if (lo >= 0) return [Math.floor(lo / 2 ** most), Math.floor(hi / 2 ** least)]
  return least === 0 ? WORD : [0, 2 ** (32 - least) - 1]
}

/** As many bits as the wider operand has, and the sign that theirs give; and no more of both, no less of either. */
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

/** Whether it may be negative, or not. */
const signsOf = ([lo, hi]: Ends): boolean[] => [...(lo < 0 ? [true] : []), ...(hi >= 0 ? [false] : [])]
