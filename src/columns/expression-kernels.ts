/** Loops over chunks, one per operator. */
import type { BinaryOp } from '../ir/values/ops.ts'

/** Float64 values of some entries, including integers. */
export type Chunk = Float64Array
type Kernel = (out: Chunk, a: Chunk, b: Chunk, n: number) => void

const loop =
  (f: (a: number, b: number) => number): Kernel =>
  (out, a, b, n) => {
    for (let k = 0; k < n; k++) out[k] = f(a[k]!, b[k]!)
  }

/** Operators that differ between reals and integers. */
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
