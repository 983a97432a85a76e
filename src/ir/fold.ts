/** What operators and functions give for constants. */
import type { BinaryOp, BitFn } from './ops.ts'

/** `a op b` in exact integers; nothing where the divisor is 0 or `op` gives a truth value. */
export function foldInt(op: BinaryOp, a: number, b: number): number | undefined {
  switch (op) {
    case 'add':
      return a + b
    case 'sub':
      return a - b
    case 'mul':
      return a * b
    case 'div':
      return b === 0 ? undefined : Math.floor(a / b)
    case 'mod':
      return b === 0 ? undefined : a - b * Math.floor(a / b)
    case 'quo':
      return b === 0 ? undefined : Math.trunc(a / b)
    case 'rem':
      return b === 0 ? undefined : a % b
    case 'min':
      return Math.min(a, b)
    case 'max':
      return Math.max(a, b)
    default:
      return undefined
  }
}

/** The bits of an i32; the count clears the lowest bit set in each step (Kernighan). */
export function foldBits(fn: BitFn, x: number, n: number): number {
  if (fn === 'shift_left') return x << n
  if (fn === 'bit_xor') return x ^ n
  let count = 0
  for (let rest = x; rest !== 0; rest &= rest - 1) count++
  return count
}

export function foldCompare(op: BinaryOp, a: number, b: number): boolean | undefined {
  switch (op) {
    case 'lt':
      return a < b
    case 'le':
      return a <= b
    case 'gt':
      return a > b
    case 'ge':
      return a >= b
    case 'eq':
      return a === b
    case 'ne':
      return a !== b
    case 'and':
      return a !== 0 && b !== 0
    case 'or':
      return a !== 0 || b !== 0
    default:
      return undefined
  }
}
