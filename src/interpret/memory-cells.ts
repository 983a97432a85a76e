/** Memory of the interpreters. */

import { invariant } from '../ast/diagnostic.ts'
import { type Dtype, isFloat } from '../ir/dtype.ts'
import type { Buffer } from '../ir/loops.ts'

/** Row-major elements of a buffer. */
export type Cells = { readonly length: number; [k: number]: number }

/** Fill value of unwritten memory: a value that no kernel computes. */
export const poison = (t: Dtype): number =>
  isFloat(t) ? Number.NaN : t === 'bool' ? 1 : t === 'u32' || t === 'i32' ? 1234567 : 77

/** Memory that nothing has written. */
export const unwritten = (t: Dtype, length: number): Cells => new Array<number>(length).fill(poison(t))

/** The array that was given for a buffer of the kernel; a `local` may come without one. */
export function cellsOf(b: Buffer, length: number, given: ReadonlyMap<string, Cells>): Cells {
  const cells = given.get(b.name) ?? unwritten(b.dtype, length)
  invariant(given.has(b.name) || b.role === 'local', `no array for buffer ${b.name}`)
  invariant(cells.length === length, `${b.name} has ${cells.length} elements, not ${length}`)
  return cells
}
