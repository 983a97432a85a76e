/** Memory of the interpreters: elements of buffers, with a poison value for unwritten memory. */
import { invariant } from '../ast/diagnostics/diagnostic.ts'
import type { Buffer } from '../ir/statements/loops.ts'
import { type ExprType, isFloat } from '../ir/values/dtype.ts'

/** Row-major elements of a buffer. */
export type Cells = { readonly length: number; [k: number]: number }

/** Fill value of unwritten memory: a value that no kernel computes. */
export const poisonValue = (t: ExprType): number =>
  isFloat(t) ? Number.NaN : t === 'bool' ? 1 : t === 'u32' || t === 'i32' ? 1234567 : 77

export const createPoisoned = (t: ExprType, length: number): Cells =>
  new Array<number>(length).fill(poisonValue(t))

/** The array bound to a buffer of the kernel; a missing array of a `local` buffer is created. */
export function cellsOf(b: Buffer, length: number, arrays: ReadonlyMap<string, Cells>): Cells {
  const cells = arrays.get(b.name) ?? createPoisoned(b.dtype, length)
  invariant(arrays.has(b.name) || b.role === 'local', `no array for buffer ${b.name}`)
  invariant(cells.length === length, `${b.name} has ${cells.length} elements, not ${length}`)
  return cells
}
