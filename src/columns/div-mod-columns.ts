/** Fast paths of div and mod in coordinate maps: a digit of each coordinate, in one pass over a 32-bit column. */
import type { Expr } from '../ir/expressions/expr.ts'

/** `column / divisor` or `column % divisor`. */
export interface Digit {
  readonly op: 'div' | 'mod'
  readonly input: string
  readonly divisor: number
}

export function digitOf(e: Expr): Digit | null {
  if (e.kind !== 'binary' || (e.op !== 'div' && e.op !== 'mod') || e.dtype !== 'i32') return null
  if (e.a.kind !== 'var' || e.b.kind !== 'const' || e.b.value < 1) return null
  return { op: e.op, input: e.a.name, divisor: e.b.value }
}

/** Writes the digit of every element. */
export function writeDigit({ op, divisor }: Digit, column: Int32Array, out: Int32Array): void {
  const n = column.length
  if ((divisor & (divisor - 1)) === 0) {
    const shift = 31 - Math.clz32(divisor)
    const mask = divisor - 1
    if (op === 'div') for (let e = 0; e < n; e++) out[e] = column[e]! >> shift
    else for (let e = 0; e < n; e++) out[e] = column[e]! & mask
  } else if (op === 'div') for (let e = 0; e < n; e++) out[e] = Math.floor(column[e]! / divisor)
  else for (let e = 0; e < n; e++) out[e] = column[e]! - divisor * Math.floor(column[e]! / divisor)
}
