/** Values into a structure: element e of a tensor goes to the position of its coordinates. */
import { fail } from '../../ast/diagnostic.ts'
import { outOfMemory } from '../../columns/allocate.ts'
import type { Dtype } from '../../ir/dtype.ts'
import type { BuiltinReducer } from '../../ir/monoid.ts'
import { restrict, type Storage } from '../storage.ts'
import type { CoordTensor, ValueArray } from '../tensor.ts'
import { checkValueArray, decoder, encoder, filled, misfitAt } from '../values.ts'
import { locate } from './locate.ts'

/** What `scatterValues` needs of a tensor: one coordinate array for each axis. */
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

/** Position of each entry; `null`: entry e has position e. @throws SptError `bind/absent-coordinate` */
export function positionsOf(storage: Storage, coords: readonly Int32Array[]): Int32Array | null {
  return isKnown(storage, coords) ? storage.entries!.positions : locate(storage, coords)
}

/** Whether these are the entries that the storage was built from. */
function isKnown({ entries }: Storage, coords: readonly Int32Array[]): boolean {
  return entries?.coords.length === coords.length && coords.every((c, k) => c === entries.coords[k])
}

function scatter(
  size: number,
  positions: Int32Array | null,
  n: number,
  tensor: Entry,
  dtype: Dtype,
  fill: number,
  reduce: BuiltinReducer,
  distinct: boolean,
  place?: (entry: number) => string,
): ValueArray {
  const { values } = tensor
  const same = values !== null && tensor.dtype === dtype
  if (same && !positions && n === size) return values.slice()
  const out = filled(dtype, size, fill)
  if (positions && !distinct && shared(positions, size))
    return reduceInto(out, positions, tensor, dtype, reduce, place)
  if (same) {
    if (positions) copyTo(out, values, positions)
    else out.set(values)
    return out
  }
  const read = decoder(tensor.dtype)
  const write = encoder(dtype, misfitAt(dtype, place))
  for (let e = 0; e < n; e++) {
    const x = values === null ? 1 : read ? read(values[e]!) : values[e]!
    out[positions ? positions[e]! : e] = write ? write(x, e) : x
  }
  return out
}

function copyTo(out: ValueArray, values: ValueArray, positions: Int32Array): void {
  for (let e = 0; e < positions.length; e++) out[positions[e]!] = values[e]!
}

/** Whether two entries have one position. */
function shared(positions: Int32Array, size: number): boolean {
  if (positions.length > size) return true
  const seen = new Uint8Array(size)
  for (let e = 0; e < positions.length; e++) {
    const p = positions[e]!
    if (seen[p] === 1) return true
    seen[p] = 1
  }
  return false
}

const COMBINE: Readonly<Record<BuiltinReducer, (a: number, b: number) => number>> = {
  '+': (a, b) => a + b,
  '*': (a, b) => a * b,
  min: (a, b) => Math.min(a, b),
  max: (a, b) => Math.max(a, b),
  and: (a, b) => (a !== 0 && b !== 0 ? 1 : 0),
  or: (a, b) => (a !== 0 || b !== 0 ? 1 : 0),
}

function reduceInto(
  out: ValueArray,
  positions: Int32Array,
  tensor: Entry,
  dtype: Dtype,
  reduce: BuiltinReducer,
  place = (e: number): string => `element ${positions[e]}`,
): ValueArray {
  const { values } = tensor
  const read = decoder(tensor.dtype)
  const write = encoder(
    dtype,
    misfitAt(dtype, (p) => place(positions.indexOf(p))),
  )
  const combine = COMBINE[reduce]
  const sums = wide(out.length)
  const seen = new Uint8Array(out.length)
  for (let e = 0; e < positions.length; e++) {
    const p = positions[e]!
    const given = values === null ? 1 : read ? read(values[e]!) : values[e]!
    // Numbers are checked as sums; what is no truth value would be one after `or`.
    const x = write && dtype === 'bool' ? write(given, p) : given
    sums[p] = seen[p] === 1 ? combine(sums[p]!, x) : x
    seen[p] = 1
  }
  for (let p = 0; p < out.length; p++) if (seen[p] === 1) out[p] = write ? write(sums[p]!, p) : sums[p]!
  return out
}

function wide(length: number): Float64Array {
  try {
    return new Float64Array(length)
  } catch (e) {
    return outOfMemory(e, length, 'float64 sums')
  }
}
