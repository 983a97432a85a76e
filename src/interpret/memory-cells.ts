/** Memory of the interpreters. */
import { type Dtype, isFloat } from '../ir/dtype.ts'

/** Row-major elements of a buffer. */
export type Cells = { readonly length: number; [k: number]: number }

/** What unwritten memory holds: no value that a kernel would compute. */
export const poison = (t: Dtype): number =>
  isFloat(t) ? Number.NaN : t === 'bool' ? 1 : t === 'u32' || t === 'i32' ? 1234567 : 77
