/** Scatter of values into a structure: element e of a tensor goes to the position of its coordinates. */
import { fail } from '../ast/diagnostic.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { BuiltinReducer } from '../ir/monoid.ts'
import { scatter } from './engines/host/scatter.ts'
import { locate } from './locate.ts'
import { restrict, type Storage } from './storage.ts'
import type { CoordTensor, ValueArray } from './tensor.ts'
import { checkValueArray } from './values.ts'

/** The fields of a tensor that `scatterValues` uses: one coordinate array per axis. */
export type Entry = Pick<CoordTensor, 'coords' | 'values' | 'dtype'>

/**
 * The values of a buffer over `axes` (all of the storage's, or those named: a prefix of each tree): an array of
 * the buffer's type, in position order, `fill` where the tensor has no entry. Entries at one position are
 * reduced in float64, then rounded; `+` unless stated, `or` for bool. A tensor other than the one the storage was
 * built from may have fewer coordinates, not others. `place` says where an entry is.
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
  place?: (entry: number) => string,
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
      hint: 'give one value for every entry, or none for a pattern',
    })
  const distinct = isKnown(part, tensor.coords) && part.entries!.distinct
  return scatter(part.size, positions, n, tensor, dtype, fill, reduce, distinct, place)
}

/**
 * Position of each entry (`apart`, `others`: as in `locate`); `null`: entry e has position e. @throws SptError
 * `bind/absent-coordinate`
 */
export function positionsOf(
  storage: Storage,
  coords: readonly Int32Array[],
  apart?: boolean,
  others?: Iterable<Storage>,
): Int32Array | null {
  return isKnown(storage, coords) ? storage.entries!.positions : locate(storage, coords, apart, others)
}

/** True if the storage was built from these entries. */
function isKnown({ entries }: Storage, coords: readonly Int32Array[]): boolean {
  return entries?.coords.length === coords.length && coords.every((c, k) => c === entries.coords[k])
}
