/** Scatter of values into a structure: element e of a tensor goes to the position of its coordinates. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import type { BuiltinReducer } from '../../ir/values/monoid.ts'
import { scatter } from '../engines/host/scatter.ts'
import { restrict, type Storage } from '../storage.ts'
import type { CoordTensor, ValueArray } from '../tensor.ts'
import { checkValueArray } from '../values.ts'
import { locate } from './locate.ts'

/** The fields of a tensor that `scatterValues` uses: one coordinate array per axis. */
export type Entry = Pick<CoordTensor, 'coords' | 'values' | 'dtype'>

/**
 * The values of a buffer over `axes` (all of the storage's axes, or a prefix of each tree): an array of the
 * buffer's type, in position order, with `fill` at positions without an entry. Entries at one position are
 * reduced in float64, then rounded; the default is `+`, and `or` for bool. If the storage was built from
 * another tensor, this tensor may have fewer coordinates, but no additional ones. `locationOf` describes an
 * entry in messages.
 *
 * @throws SptError `bind/absent-coordinate`, `bind/coordinates`, `bind/coordinate-range`, `bind/value-range`,
 * `bind/value-type`, `bind/values-length`, `bind/out-of-memory`
 */
export function scatterValues(
  storage: Storage,
  tensor: Entry,
  dtype: Dtype,
  fill: number,
  reduce: BuiltinReducer = dtype === 'bool' ? 'or' : '+',
  axes?: readonly string[],
  locationOf?: (entry: number) => string,
): ValueArray {
  const part = axes ? restrict(storage, axes) : storage
  if (tensor.values) checkValueArray(tensor.values, tensor.dtype)
  const positions = positionsOf(part, tensor.coords)
  const n = tensor.coords[0]?.length ?? tensor.values?.length ?? 0
  if (tensor.values && tensor.values.length !== n)
    fail({
      code: 'bind/values-length',
      message: `${tensor.values.length} values for ${n} entries`,
      expected: `${n} values`,
      hint: 'give a value for every entry, or none for a pattern',
    })
  const distinct = isBuiltFrom(part, tensor.coords) && part.entries!.distinct
  return scatter(part.size, positions, n, tensor, dtype, fill, reduce, distinct, locationOf)
}

/**
 * Position of each entry (`separateDuplicates`, `candidates`: as in `locate`); `null`: entry e has position e. @throws SptError
 * `bind/absent-coordinate`
 */
export function positionsOf(
  storage: Storage,
  coords: readonly Int32Array[],
  separateDuplicates?: boolean,
  candidates?: Iterable<Storage>,
): Int32Array | null {
  return isBuiltFrom(storage, coords)
    ? storage.entries!.positions
    : locate(storage, coords, separateDuplicates, candidates)
}

/** True if the storage was built from these entries. */
function isBuiltFrom({ entries }: Storage, coords: readonly Int32Array[]): boolean {
  return entries?.coords.length === coords.length && coords.every((c, k) => c === entries.coords[k])
}
