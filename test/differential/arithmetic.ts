/** Operators and functions on numbers of each type, by big integers where those are integers. */
import { isFloat, range, rounded, type Type, wrap } from './numbers.ts'

/** A result that depends on the order of operations: no case for an exact comparison. */
export class Inexact extends Error {}

export const identityOf = (reducer: string, t: Type): number => {
  if (reducer === 'min') return isFloat(t) ? Infinity : t === 'bool' ? 1 : range(t)[1]
  if (reducer === 'max') return isFloat(t) ? -Infinity : t === 'bool' ? 0 : range(t)[0]
  return reducer === '*' || reducer === 'and' ? 1 : 0
}

/** Integers up to here are exact in a type, and so is every sum of integers whose magnitudes add up to less. */
export const EXACT: Partial<Record<Type, number>> = { f64: 2 ** 53, f32: 2 ** 24, f16: 2 ** 11, bf16: 2 ** 8 }

/** Whether an infinity or a NaN came out of an operation. */
export const met = { special: false }

export function exact(t: Type, x: number): number {
  if (!Number.isFinite(x)) met.special = true
  if (Number.isFinite(x) && (rounded(t, x) !== x || Math.abs(x) > 2 ** 53)) throw new Inexact(`${x} in ${t}`)
  return x
}

export function binary(op: string, t: Type, a: number, b: number): number {
  switch (op) {
    case 'and':
      return a && b ? 1 : 0
    case 'or':
      return a || b ? 1 : 0
    case '==':
      return a === b ? 1 : 0
    case '!=':
      return a !== b ? 1 : 0
    case '<':
      return a < b ? 1 : 0
    case '<=':
      return a <= b ? 1 : 0
    case '>':
      return a > b ? 1 : 0
    case '>=':
      return a >= b ? 1 : 0
    case 'min':
      return Math.min(a, b)
    case 'max':
      return Math.max(a, b)
  }
  if (isFloat(t)) {
    if (op === '+') return exact(t, a + b)
    if (op === '-') return exact(t, a - b)
    if (op === '*') return exact(t, a * b)
    if (op === '/') return exact(t, a / b)
    throw new Error(`no ${op} on ${t}`)
  }
  const [x, y] = [BigInt(a), BigInt(b)]
  if (op === '+') return wrap(t, x + y)
  if (op === '-') return wrap(t, x - y)
  if (op === '*') return wrap(t, x * y)
  if (y === 0n) return 0
  const q = x / y
  const down = x % y !== 0n && x < 0n !== y < 0n ? q - 1n : q
  if (op === '/') return wrap(t, down)
  if (op === '%') return wrap(t, x - down * y)
  if (op === 'ceildiv') return wrap(t, x % y !== 0n && x < 0n === y < 0n ? q + 1n : q)
  throw new Error(`no ${op} on ${t}`)
}

export function call(fn: string, t: Type, xs: readonly number[]): number {
  const [a, b, c] = xs as [number, number, number]
  switch (fn) {
    case 'select':
      return a ? b : c
    case 'min':
    case 'max':
    case 'ceildiv':
      return xs.reduce((x, y) => binary(fn, t, x, y))
    case 'abs':
      return isFloat(t) ? Math.abs(a) : wrap(t, a < 0 ? -BigInt(a) : BigInt(a))
    case 'sign':
      return Math.sign(a)
    case 'floor':
      return Math.floor(a)
    case 'ceil':
      return Math.ceil(a)
    case 'round': {
      const low = Math.floor(a)
      return a - low > 0.5 || (a - low === 0.5 && low % 2 !== 0) ? low + 1 : Number.isFinite(a) ? low : a
    }
    case 'popcount':
      return BigInt.asUintN(32, BigInt(a)).toString(2).replaceAll('0', '').length
    case 'shift_left':
      return wrap(t, BigInt(a) << BigInt(((b % 32) + 32) % 32))
    case 'shift_right':
      return wrap(t, BigInt.asUintN(32, BigInt(a)) >> BigInt(((b % 32) + 32) % 32))
    case 'bit_xor':
      return wrap(t, BigInt.asUintN(32, BigInt(a)) ^ BigInt.asUintN(32, BigInt(b)))
  }
  throw new Error(`no function ${fn}`)
}
