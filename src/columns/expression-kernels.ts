/** Loops over chunks, one per operator. */

import type { Expr } from '../ir/expressions/expr.ts'
import { keyOf } from '../ir/expressions/structural-equality.ts'
import { isWord } from '../ir/values/dtype.ts'
import type { BinaryOp } from '../ir/values/math.ts'

/** Float64 values of some entries, including integers. */
export type Chunk = Float64Array
type Kernel = (out: Chunk, a: Chunk, b: Chunk, n: number) => void

const loop =
  (f: (a: number, b: number) => number): Kernel =>
  (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = f(a[k]!, b[k]!)
  }

export const REAL: Partial<Readonly<Record<BinaryOp, Kernel>>> = {
  div: loop((a, b) => a / b),
  mod: loop((a, b) => a - b * Math.floor(a / b)),
}

/** Frequent operators are written out with one call site each, so that they run at memory speed. */
export const KERNELS: Readonly<Record<BinaryOp, Kernel>> = {
  add: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = a[k]! + b[k]!
  },
  sub: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = a[k]! - b[k]!
  },
  mul: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = a[k]! * b[k]!
  },
  div: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = b[k] === 0 ? 0 : Math.floor(a[k]! / b[k]!)
  },
  mod: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = b[k] === 0 ? 0 : a[k]! - b[k]! * Math.floor(a[k]! / b[k]!)
  },
  lt: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = a[k]! < b[k]! ? 1 : 0
  },
  le: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = a[k]! <= b[k]! ? 1 : 0
  },
  gt: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = a[k]! > b[k]! ? 1 : 0
  },
  min: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = Math.min(a[k]!, b[k]!)
  },
  and: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = a[k] !== 0 && b[k] !== 0 ? 1 : 0
  },
  ge: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = a[k]! >= b[k]! ? 1 : 0
  },
  quo: loop((a, b) => (b === 0 ? 0 : Math.trunc(a / b))),
  rem: loop((a, b) => (b === 0 ? 0 : a - b * Math.trunc(a / b))),
  max: loop(Math.max),
  or: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = a[k] !== 0 || b[k] !== 0 ? 1 : 0
  },
  eq: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = a[k] === b[k] ? 1 : 0
  },
  ne: (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = a[k] !== b[k] ? 1 : 0
  },
}

// Fast paths of div and mod in coordinate maps: a digit of each coordinate, in one pass over a 32-bit column.

interface Digit {
  readonly op: 'div' | 'mod'
  readonly input: string
  readonly divisor: number
}

export function digitOf(e: Expr): Digit | null {
  if (e.kind !== 'binary' || (e.op !== 'div' && e.op !== 'mod') || !isWord(e.dtype)) return null
  if (e.a.kind !== 'var' || e.b.kind !== 'const' || e.b.value < 1) return null
  return { op: e.op, input: e.a.name, divisor: e.b.value }
}

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

// Bucketing by table look-up: a sum of comparisons with constants becomes one look-up: `(x > 1) + (x > 2) +
// (x > 4)`, the class of x.

interface Thresholds {
  readonly compared: Expr
  /** The number of constants below x, for x from 0 on; the last element applies to all larger x. */
  readonly below: Float64Array
}

/** Largest table that fits the cache. */
const LARGEST = 4096

/** The thresholds of such a sum; `null` for other expressions, and for negative or large constants. */
export function thresholdsOf(e: Expr): Thresholds | null {
  if (e.kind !== 'binary' || e.op !== 'add' || !isWord(e.dtype)) return null
  const bounds: number[] = []
  let compared: Expr | null = null
  const pending: Expr[] = [e]
  for (let term = pending.pop(); term; term = pending.pop()) {
    if (term.kind === 'binary' && term.op === 'add') {
      pending.push(term.a, term.b)
      continue
    }
    if (term.kind === 'const' && term.value === 0) continue
    const match = comparison(term)
    if (!match || (compared && keyOf(compared) !== keyOf(match.compared))) return null
    compared ??= match.compared
    bounds.push(match.bound)
  }
  const top = Math.max(...bounds)
  if (!compared || bounds.length < 2 || Math.min(...bounds) < 0 || top > LARGEST) return null
  const below = Float64Array.from({ length: top + 2 }, (_, x) => bounds.filter((b) => b < x).length)
  return { compared, below }
}

function comparison(e: Expr): { readonly compared: Expr; readonly bound: number } | null {
  if (e.kind !== 'select' || !isFlag(e)) return null
  const { cond } = e
  if (cond.kind !== 'binary' || cond.op !== 'gt' || !isWord(cond.a.dtype) || cond.b.kind !== 'const')
    return null
  return Number.isInteger(cond.b.value) ? { compared: cond.a, bound: cond.b.value } : null
}

/** True for a condition converted to 1 or 0, which is its representation already. */
export const isFlag = (e: Extract<Expr, { kind: 'select' }>): boolean =>
  e.then.kind === 'const' && e.then.value === 1 && e.else.kind === 'const' && e.else.value === 0
