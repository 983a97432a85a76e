/** Error bounds of functions: propagation of the operands' errors, and the devices' own errors. */
import type { MathFn } from '../ir/math.ts'
import { UNDECIDED } from './error.ts'

export interface ErrorRow {
  /**
   * Propagation of an operand's error: not increased (`steady`); determined by the results at its ends, for a monotone
   * function (`monotone`; with integer results: `steps`); unknown (`undecided`); or computed.
   */
  readonly carries:
    | 'steady'
    | 'monotone'
    | 'steps'
    | 'undecided'
    | ((x: number, ex: number, y: number, ey: number, v: number) => number)
  /**
   * Errors of devices for a result v: half units in the last place (`settled` allows twice as many), and an absolute
   * error added in f32 (WGSL, section 15.7.4). `null`: results are exact for given operands.
   */
  readonly own: null | ((x: number, y: number, v: number) => readonly [units: number, absolute: number])
}

/** An absolute error, unless the result is exactly 0. */
const unlessZero = (v: number, absolute: number): number => (v === 0 ? 0 : absolute)

const whole: ErrorRow = { carries: 'steps', own: null }
const bits: ErrorRow = { carries: 'undecided', own: null }

export const FUNCTION_ERRORS: Readonly<Record<MathFn, ErrorRow>> = {
  exp: { carries: 'monotone', own: (x) => [6 + 4 * Math.abs(x), 0] },
  exp2: { carries: 'monotone', own: (x) => [8 + 4 * Math.abs(x), 0] },
  log: { carries: 'monotone', own: (_x, _y, v) => [6, unlessZero(v, 2 ** -21)] },
  log1p: { carries: 'monotone', own: (x) => [16, Math.abs(x) < 0.25 ? 0 : 2 ** -21 + 2 ** -22] },
  sqrt: { carries: 'monotone', own: () => [10, 0] },
  rsqrt: { carries: 'monotone', own: () => [4, 0] },
  abs: { carries: 'steady', own: null },
  sin: { carries: 'steady', own: (x) => [4, 2 ** -11 + 2 ** -20 * Math.abs(x)] },
  cos: { carries: 'steady', own: (x, _y, v) => [4, unlessZero(v, 2 ** -11 + 2 ** -20 * Math.abs(x))] },
  tanh: { carries: 'monotone', own: (_x, _y, v) => [40, unlessZero(v, 1e-5)] },
  sigmoid: { carries: 'monotone', own: (x) => [20 + 4 * Math.abs(x), 0] },
  floor: whole,
  ceil: whole,
  round: whole,
  pow: {
    carries: (x, ex, y, ey, v) =>
      x > 2 * ex
        ? 2 * Math.abs(v) * ((Math.abs(y) * ex) / x + Math.abs(Math.log(x)) * ey)
        : Number.POSITIVE_INFINITY,
    // WGSL computes exp2(y * log2(x)), and log2 has an absolute error of 2^-21 between 0.5 and 2.
    own: (x, y, v) => [
      20 + 8 * Math.abs(y * Math.log2(Math.abs(x) || 1)),
      x >= 0.5 && x <= 2 ? Math.abs(v * y) * Math.LN2 * 2 ** -21 : 0,
    ],
  },
  erf: { carries: 'monotone', own: (_x, _y, v) => [40, unlessZero(v, 1e-6)] },
  sign: { carries: (x, ex) => (Math.abs(x) > ex ? 0 : UNDECIDED), own: null },
  popcount: bits,
  shift_left: bits,
  shift_right: bits,
  bit_and: bits,
  bit_or: bits,
  bit_xor: bits,
}
