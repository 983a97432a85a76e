/** Error bounds of functions: propagation of the operands' errors, and the devices' own errors. */
import type { MathFn } from '../../ir/values/math.ts'
import { UNDECIDED } from '../error.ts'

export interface ErrorRow {
  /**
   * Propagation of an operand's error: not increased (`steady`); determined by the results at its ends, for a monotone
   * function (`monotone`; with integer results: `steps`); unknown (`undecided`); or computed.
   */
  readonly propagation:
    | 'steady'
    | 'monotone'
    | 'steps'
    | 'undecided'
    | ((x: number, ex: number, y: number, ey: number, v: number) => number)
  /**
   * Errors of devices for a result v: half units in the last place (`settled` allows twice as many), and an absolute
   * error added in f32 (WGSL, section 15.7.4). `null`: results are exact for given operands.
   */
  readonly deviceError:
    | null
    | ((x: number, y: number, v: number) => readonly [units: number, absolute: number])
}

/** An absolute error, unless the result is exactly 0. */
const zeroIfExact = (v: number, absolute: number): number => (v === 0 ? 0 : absolute)

const INTEGER_ROW: ErrorRow = { propagation: 'steps', deviceError: null }
const BIT_ROW: ErrorRow = { propagation: 'undecided', deviceError: null }

export const FUNCTION_ERRORS: Readonly<Record<MathFn, ErrorRow>> = {
  exp: { propagation: 'monotone', deviceError: (x) => [6 + 4 * Math.abs(x), 0] },
  exp2: { propagation: 'monotone', deviceError: (x) => [8 + 4 * Math.abs(x), 0] },
  log: { propagation: 'monotone', deviceError: (_x, _y, v) => [6, zeroIfExact(v, 2 ** -21)] },
  log1p: { propagation: 'monotone', deviceError: (x) => [16, Math.abs(x) < 0.25 ? 0 : 2 ** -21 + 2 ** -22] },
  sqrt: { propagation: 'monotone', deviceError: () => [10, 0] },
  rsqrt: { propagation: 'monotone', deviceError: () => [4, 0] },
  abs: { propagation: 'steady', deviceError: null },
  sin: { propagation: 'steady', deviceError: (x) => [4, 2 ** -11 + 2 ** -20 * Math.abs(x)] },
  cos: {
    propagation: 'steady',
    deviceError: (x, _y, v) => [4, zeroIfExact(v, 2 ** -11 + 2 ** -20 * Math.abs(x))],
  },
  tanh: { propagation: 'monotone', deviceError: (_x, _y, v) => [40, zeroIfExact(v, 1e-5)] },
  sigmoid: { propagation: 'monotone', deviceError: (x) => [20 + 4 * Math.abs(x), 0] },
  floor: INTEGER_ROW,
  ceil: INTEGER_ROW,
  round: INTEGER_ROW,
  pow: {
    propagation: (x, ex, y, ey, v) =>
      x > 2 * ex
        ? 2 * Math.abs(v) * ((Math.abs(y) * ex) / x + Math.abs(Math.log(x)) * ey)
        : Number.POSITIVE_INFINITY,
    // WGSL computes exp2(y * log2(x)), and log2 has an absolute error of 2^-21 between 0.5 and 2.
    deviceError: (x, y, v) => [
      20 + 8 * Math.abs(y * Math.log2(Math.abs(x) || 1)),
      x >= 0.5 && x <= 2 ? Math.abs(v * y) * Math.LN2 * 2 ** -21 : 0,
    ],
  },
  erf: { propagation: 'monotone', deviceError: (_x, _y, v) => [40, zeroIfExact(v, 1e-6)] },
  sign: { propagation: (x, ex) => (Math.abs(x) > ex ? 0 : UNDECIDED), deviceError: null },
  popcount: BIT_ROW,
  shift_left: BIT_ROW,
  shift_right: BIT_ROW,
  bit_and: BIT_ROW,
  bit_or: BIT_ROW,
  bit_xor: BIT_ROW,
}
