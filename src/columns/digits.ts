/** The commonest maps in one pass over 32-bit columns: a digit of a coordinate, and a coordinate from two digits. */
import type { Expr } from '../ir/expr.ts'

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

/** The entry of the first result outside of 0 … top; -1: none is. */
export function firstBeyond(out: Int32Array, top: number): number {
  for (let e = 0; e < out.length; e++) if (out[e]! < 0 || out[e]! > top) return e
  return -1
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

/** `high · scale + low`. */
export interface Joined {
  readonly high: string
  readonly scale: number
  readonly low: string
}

export function joinedOf(e: Expr): Joined | null {
  if (e.kind !== 'binary' || e.op !== 'add' || e.dtype !== 'i32' || e.b.kind !== 'var') return null
  const { a } = e
  if (a.kind !== 'binary' || a.op !== 'mul' || a.a.kind !== 'var' || a.b.kind !== 'const') return null
  return { high: a.a.name, scale: a.b.value, low: e.b.name }
}

/** The first entry where the digits do not join to what is wanted; -1: none. */
export function firstUnjoined(scale: number, high: Int32Array, low: Int32Array, wanted: Int32Array): number {
  for (let e = 0; e < wanted.length; e++) if (high[e]! * scale + low[e]! !== wanted[e]) return e
  return -1
}
