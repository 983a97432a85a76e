/**
 * The mathematical functions of expressions, one row each. Each function also needs a row in the table of every target
 * (`backends/targets`) and in the reference's (`reference/evaluation/bounded-operators.ts`), which the types enforce.
 */

/** The result type: `float` (f32 for integer operands), the operand's type, or i32 for bitwise functions. */
type MathType = 'float' | 'operand' | 'bits'

/**
 * A partial derivative, over the operands `x` and `y` and the result `r`; a condition stands for 1 where it holds, and for
 * 0 elsewhere. `where`: 0 where the condition does not hold, whatever `x` is there.
 */
export type Derivative =
  | number
  | 'x'
  | 'y'
  | 'r'
  | readonly [op: BinaryOp, a: Derivative, b: Derivative]
  | readonly [fn: 'neg' | 'sign' | 'sin' | 'cos' | 'exp' | 'log' | 'floor', x: Derivative]
  | readonly [fn: 'pow', x: Derivative, y: Derivative]
  | readonly [op: 'where', condition: Derivative, x: Derivative]

interface MathRow {
  readonly arity: 1 | 2
  readonly type: MathType
  /** With respect to each operand, almost everywhere; none for functions of integers. */
  readonly derivatives: readonly Derivative[]
  /** True if f64 results are identical on every machine, so that hosts and devices agree on computed coordinates. */
  readonly reproducible: boolean
  /** In float64 precision; bitwise functions wrap. */
  readonly evaluate: (x: number, y: number) => number
}

const realRow = (
  evaluate: MathRow['evaluate'],
  ...derivatives: readonly [Derivative, Derivative?]
): MathRow => ({
  arity: derivatives.length,
  type: 'float',
  derivatives: derivatives as readonly Derivative[],
  reproducible: false,
  evaluate,
})
const reproducibleRow = (evaluate: MathRow['evaluate'], derivative: Derivative): MathRow => ({
  ...realRow(evaluate, derivative),
  reproducible: true,
})
const sameTypeRow = (evaluate: MathRow['evaluate'], derivative: Derivative): MathRow => ({
  ...reproducibleRow(evaluate, derivative),
  type: 'operand',
})
const bitRow = (evaluate: MathRow['evaluate'], arity: 1 | 2): MathRow => ({
  arity,
  type: 'bits',
  derivatives: [],
  reproducible: true,
  evaluate,
})

const ROWS = {
  exp: realRow(Math.exp, 'r'),
  /** 2^x, one instruction on GPUs; results below the least normal number may be flushed to 0. */
  exp2: realRow((x) => 2 ** x, ['mul', Math.LN2, 'r']),
  log: realRow(Math.log, ['div', 1, 'x']),
  /** log(1 + x), accurate for small x. */
  log1p: realRow(Math.log1p, ['div', 1, ['add', 1, 'x']]),
  // Correctly rounded, by IEEE 754.
  sqrt: reproducibleRow(Math.sqrt, ['div', 0.5, 'r']),
  rsqrt: realRow((x) => 1 / Math.sqrt(x), ['div', ['mul', -0.5, 'r'], 'x']),
  abs: sameTypeRow(Math.abs, ['sign', 'x']),
  sin: realRow(Math.sin, ['cos', 'x']),
  cos: realRow(Math.cos, ['neg', ['sin', 'x']]),
  tanh: realRow(Math.tanh, ['sub', 1, ['mul', 'r', 'r']]),
  sigmoid: realRow((x) => 1 / (1 + Math.exp(-x)), ['mul', 'r', ['sub', 1, 'r']]),
  floor: reproducibleRow(Math.floor, 0),
  ceil: reproducibleRow(Math.ceil, 0),
  round: reproducibleRow(roundEven, 0),
  pow: realRow(
    (x, y) => x ** y,
    ['where', ['ne', 'y', 0], ['mul', 'y', ['pow', 'x', ['sub', 'y', 1]]]],
    ['mul', 'r', ['log', 'x']],
  ),
  erf: realRow(erf, ['mul', 2 / Math.sqrt(Math.PI), ['exp', ['neg', ['mul', 'x', 'x']]]]),
  sign: sameTypeRow(Math.sign, 0),
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

/** Partial derivatives of the arithmetic of floats; of equal operands, the first is the maximum and the minimum. */
export const OPERATOR_DERIVATIVES: Readonly<Partial<Record<BinaryOp, readonly [Derivative, Derivative]>>> = {
  add: [1, 1],
  sub: [1, -1],
  mul: ['y', 'x'],
  div: [
    ['div', 1, 'y'],
    ['neg', ['div', 'r', 'y']],
  ],
  mod: [1, ['neg', ['floor', ['div', 'x', 'y']]]],
  max: [
    ['ge', 'x', 'y'],
    ['lt', 'x', 'y'],
  ],
  min: [
    ['le', 'x', 'y'],
    ['gt', 'x', 'y'],
  ],
}
