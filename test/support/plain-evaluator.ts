/**
 * The arithmetic of the language once more, for tests of the code that folds constants and of the reference, which share
 * theirs: integers are BigInt, halves come from a table of all their numbers, and nothing is simplified.
 */

import type { Binary, Call, Expr } from '../../src/ir/expressions/expr-nodes.ts'
import type { ExprType } from '../../src/ir/values/dtype.ts'

/** Numbers from 0 to the largest of a type with so many bits of exponent and fraction, by their bits. */
function numbersOf(exponents: number, fractions: number): readonly number[] {
  const bias = 2 ** (exponents - 1) - 1
  return Array.from({ length: (2 ** exponents - 1) * 2 ** fractions }, (_, bits) => {
    const exponent = Math.floor(bits / 2 ** fractions)
    const fraction = bits % 2 ** fractions
    return exponent === 0
      ? fraction * 2 ** (1 - bias - fractions)
      : (2 ** fractions + fraction) * 2 ** (exponent - bias - fractions)
  })
}
const HALVES = { f16: numbersOf(5, 10), bf16: numbersOf(8, 7) }

function nearestHalf(t: 'f16' | 'bf16', x: number): number {
  if (Number.isNaN(x) || x === 0) return x
  const table = HALVES[t]
  const size = Math.abs(x)
  let [low, high] = [0, table.length]
  while (high - low > 1) {
    const mid = (low + high) >> 1
    if (table[mid]! <= size) low = mid
    else high = mid
  }
  const below = table[low]!
  const step = low + 1 < table.length ? table[low + 1]! - below : below - table[low - 1]!
  // The distances are exact, and so is their comparison.
  const up = size - below > step / 2 || (size - below === step / 2 && low % 2 === 1)
  const value = up ? (low + 1 < table.length ? table[low + 1]! : Number.POSITIVE_INFINITY) : below
  return x < 0 ? -value : value
}

/** The nearest number of a type, ties to even. */
export function nearest(t: ExprType, x: number): number {
  if (t === 'f16' || t === 'bf16') return nearestHalf(t, x)
  return t === 'f32' ? new Float32Array([x])[0]! : x
}

const BITS: Partial<Record<ExprType, readonly [bits: number, signed: boolean]>> = {
  i32: [32, true],
  index: [32, true],
  u32: [32, false],
  i8: [8, true],
  u8: [8, false],
}
export const isWhole = (t: ExprType): boolean => BITS[t] !== undefined

function wrapped(t: ExprType, x: bigint): number {
  const [bits, signed] = BITS[t]!
  return Number(signed ? BigInt.asIntN(bits, x) : BigInt.asUintN(bits, x))
}

/** What floats of this type are computed in. */
const wide = (t: ExprType): ExprType => (t === 'f64' ? 'f64' : 'f32')

const floorDiv = (a: bigint, b: bigint): bigint => {
  const q = a / b
  return a % b !== 0n && a < 0n !== b < 0n ? q - 1n : q
}

function whole(op: Binary['op'], a: bigint, b: bigint): bigint {
  switch (op) {
    case 'add':
      return a + b
    case 'sub':
      return a - b
    case 'mul':
      return a * b
    case 'div':
      return b === 0n ? 0n : floorDiv(a, b)
    case 'mod':
      return b === 0n ? 0n : a - b * floorDiv(a, b)
    case 'quo':
      return a / b
    case 'rem':
      return a % b
    case 'min':
      return a < b ? a : b
    case 'max':
      return a > b ? a : b
    default:
      throw new Error(`${op} of integers`)
  }
}

function real(op: Binary['op'], a: number, b: number): number {
  switch (op) {
    case 'add':
      return a + b
    case 'sub':
      return a - b
    case 'mul':
      return a * b
    case 'div':
      return a / b
    case 'mod':
      return a - b * Math.floor(a / b)
    case 'min':
    case 'max': {
      if (Number.isNaN(a) || Number.isNaN(b)) return Number.NaN
      const first = a === b ? Object.is(a, -0) : a < b
      return first === (op === 'min') ? a : b
    }
    default:
      throw new Error(`${op} of floats`)
  }
}

const TRUTH: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  lt: (a, b) => a < b,
  le: (a, b) => a < b || a === b,
  gt: (a, b) => a > b,
  ge: (a, b) => a > b || a === b,
  eq: (a, b) => a === b,
  ne: (a, b) => !(a === b),
  and: (a, b) => a === 1 && b === 1,
  or: (a, b) => a === 1 || b === 1,
}

/** `a op b` in a type that both have. */
function operate(op: Binary['op'], t: ExprType, a: number, b: number): number {
  const truth = TRUTH[op]
  if (truth) return truth(a, b) ? 1 : 0
  if (isWhole(t)) return wrapped(t, whole(op, BigInt(a), BigInt(b)))
  return nearest(wide(t), real(op, a, b))
}

export function convert(from: ExprType, to: ExprType, x: number): number {
  if (to === 'bool') return x === 0 ? 0 : 1
  if (!isWhole(to)) return nearest(to, x)
  if (isWhole(from) || from === 'bool') return wrapped(to, BigInt(x))
  if (Number.isNaN(x)) return 0
  const [bits, signed] = BITS[to]!
  const [low, high] = signed ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1]
  return x <= low ? low : x >= high ? high : Number(BigInt(Math.trunc(x)))
}

function func({ fn, dtype }: Call, x: number, y: number): number {
  const word = (n: number): bigint => BigInt.asUintN(32, BigInt(n))
  const bits = (n: bigint): number => wrapped('i32', n)
  switch (fn) {
    case 'abs':
      return isWhole(dtype)
        ? wrapped(dtype, BigInt(x) < 0n ? -BigInt(x) : BigInt(x))
        : x < 0 || Object.is(x, -0)
          ? -x
          : x
    case 'sign':
      return x > 0 ? 1 : x < 0 ? -1 : x
    case 'floor':
      return Number.isFinite(x) && x % 1 !== 0 ? (x > 0 ? x - (x % 1) : x - (x % 1) - 1) : x
    case 'ceil':
      return -func({ fn: 'floor', dtype } as Call, -x, y)
    case 'sqrt':
      return nearest(wide(dtype), Math.sqrt(x))
    case 'popcount':
      return [...word(x).toString(2)].filter((c) => c === '1').length
    case 'shift_left':
      return bits(word(x) << (word(y) % 32n))
    case 'shift_right':
      return bits(word(x) >> (word(y) % 32n))
    case 'bit_and':
      return bits(word(x) & word(y))
    case 'bit_or':
      return bits(word(x) | word(y))
    case 'bit_xor':
      return bits(word(x) ^ word(y))
    default:
      throw new Error(`${fn} is not evaluated here`)
  }
}

/** The value of an expression of Stage I over names; each step rounds or wraps to the type that it is computed in. */
export function plain(e: Expr, values: ReadonlyMap<string, number>): number {
  const go = (x: Expr): number => plain(x, values)
  switch (e.kind) {
    case 'const':
      return e.value
    case 'var':
      return values.get(e.name)!
    case 'unary':
      if (e.op === 'not') return go(e.x) === 0 ? 1 : 0
      return isWhole(e.dtype) ? wrapped(e.dtype, -BigInt(go(e.x))) : -go(e.x)
    case 'binary':
      return operate(e.op, e.dtype === 'bool' ? e.a.dtype : e.dtype, go(e.a), go(e.b))
    case 'select':
      return go(e.cond) === 0 ? go(e.else) : go(e.then)
    case 'cast':
      return convert(e.x.dtype, e.dtype, go(e.x))
    case 'call':
      return func(e, go(e.args[0]!), e.args[1] ? go(e.args[1]) : 0)
    default:
      throw new Error(`${e.kind} is not evaluated here`)
  }
}
