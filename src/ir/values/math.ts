/**
 * The mathematical functions of expressions, one row each. Each function also needs a row in the table of every target
 * (`backends/targets`) and in the reference's (`reference/evaluation/bounded-operators.ts`), which the types enforce.
 */

/** The result type: `float` (f32 for integer operands), the operand's type, or i32 for bitwise functions. */
type MathType = 'float' | 'operand' | 'bits'

interface MathRow {
  readonly arity: 1 | 2
  readonly type: MathType
  /** True if f64 results are identical on every machine, so that hosts and devices agree on computed coordinates. */
  readonly reproducible: boolean
  /** In float64 precision; bitwise functions wrap. */
  readonly evaluate: (x: number, y: number) => number
}

const realRow = (evaluate: MathRow['evaluate'], arity: 1 | 2 = 1): MathRow => ({
  arity,
  type: 'float',
  reproducible: false,
  evaluate,
})
const reproducibleRow = (evaluate: MathRow['evaluate']): MathRow => ({
  ...realRow(evaluate),
  reproducible: true,
})
const sameTypeRow = (evaluate: MathRow['evaluate']): MathRow => ({
  ...reproducibleRow(evaluate),
  type: 'operand',
})
const bitRow = (evaluate: MathRow['evaluate'], arity: 1 | 2): MathRow => ({
  arity,
  type: 'bits',
  reproducible: true,
  evaluate,
})

const ROWS = {
  exp: realRow(Math.exp),
  /** 2^x, one instruction on GPUs; results below the least normal number may be flushed to 0. */
  exp2: realRow((x) => 2 ** x),
  log: realRow(Math.log),
  /** log(1 + x), accurate for small x. */
  log1p: realRow(Math.log1p),
  // Correctly rounded, by IEEE 754.
  sqrt: reproducibleRow(Math.sqrt),
  rsqrt: realRow((x) => 1 / Math.sqrt(x)),
  abs: sameTypeRow(Math.abs),
  sin: realRow(Math.sin),
  cos: realRow(Math.cos),
  tanh: realRow(Math.tanh),
  sigmoid: realRow((x) => 1 / (1 + Math.exp(-x))),
  floor: reproducibleRow(Math.floor),
  ceil: reproducibleRow(Math.ceil),
  round: reproducibleRow(roundEven),
  pow: realRow((x, y) => x ** y, 2),
  erf: realRow(erf),
  sign: sameTypeRow(Math.sign),
  popcount: bitRow(popcount, 1),
  /** Shifts by `n mod 32` bits. */
  shift_left: bitRow((x, n) => x << n, 2),
  /** Logical right shift by `n mod 32` bits. */
  shift_right: bitRow((x, n) => (x >>> n) | 0, 2),
  bit_and: bitRow((x, y) => x & y, 2),
  bit_or: bitRow((x, y) => x | y, 2),
  bit_xor: bitRow((x, y) => x ^ y, 2),
}

export type MathFn = keyof typeof ROWS
export const MATH: Readonly<Record<MathFn, MathRow>> = ROWS
export const MATH_FNS = Object.keys(ROWS) as readonly MathFn[]

/** erf(x) = 2/√π · e^(-x²) · Σ 2^n x^(2n+1) / (2n+1)!!: positive terms only, so no cancellation. */
function erf(x: number): number {
  if (Number.isNaN(x)) return x
  const a = Math.abs(x)
  if (a > 6) return Math.sign(x)
  let term = a
  let sum = a
  for (let n = 1; term > sum * 1e-17; n++) {
    term *= (2 * a * a) / (2 * n + 1)
    sum += term
  }
  return Math.sign(x) * Math.min(1, (2 / Math.sqrt(Math.PI)) * Math.exp(-a * a) * sum)
}

function roundEven(x: number): number {
  const f = Math.floor(x)
  const d = x - f
  return d < 0.5 || (d === 0.5 && f % 2 === 0) ? f : f + 1
}

/** The number of set bits of an i32; each step clears the lowest (Kernighan). */
function popcount(x: number): number {
  let count = 0
  for (let remaining = x; remaining !== 0; remaining &= remaining - 1) count++
  return count
}

// The operators of expressions, by name; functions are in `math.ts`.

/** Integer `div` and `mod` round towards minus infinity; `quo` and `rem` (Stage III) towards zero. */
export type ArithOp = 'add' | 'sub' | 'mul' | 'div' | 'mod' | 'quo' | 'rem' | 'min' | 'max'
export type LogicOp = 'and' | 'or'
export type CompareOp = 'lt' | 'le' | 'gt' | 'ge' | 'eq' | 'ne'
export type BinaryOp = ArithOp | LogicOp | CompareOp

const COMPARE: ReadonlySet<string> = new Set(['lt', 'le', 'gt', 'ge', 'eq', 'ne'])
/** True if the operator returns a truth value. */
export const isTruth = (op: BinaryOp): op is CompareOp | LogicOp =>
  COMPARE.has(op) || op === 'and' || op === 'or'
export const isCompare = (op: BinaryOp): op is CompareOp => COMPARE.has(op)
