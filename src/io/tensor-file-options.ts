/** Options of reading and writing tensors. */
import type { Diagnostic } from '../ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../ir/values/dtype.ts'

export interface ReadOptions {
  /** Element type to read the values as; default: the nearest to the file's. */
  readonly dtype?: Dtype | undefined
  /** Shape: required for files without one (edge lists, coordinate arrays), checked against all others. */
  readonly shape?: readonly number[] | undefined
  /** The tensor to read from a file of several; for an `.npz` also a prefix, or coordinate arrays joined by commas. */
  readonly address?: string | undefined
  /** For a layer written by `spt prune`: only the elements in tiles, without values. Not for other files. */
  readonly tiles?: boolean | undefined
}

export interface WriteOptions {
  /** Called if the file is valid but another library cannot read it; default: `process.emitWarning`. */
  readonly onWarning?: ((warning: Diagnostic) => void) | undefined
}
