/** Scatter of values to the positions of their entries, with a reduction at equal positions. */

import type { StoredValues } from '../../../columns/engine-operands.ts'
import type { PlacedEntries } from '../../../columns/stored-level.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import type { TypedArray } from '../../../ir/values/arrays.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import type { BuiltinReducer } from '../../../ir/values/monoid.ts'
import type { CoordTensor, ValueArray } from '../../tensor.ts'
import { decoder, encoder, filledArray, rejectMisfit, newValues as zeroed } from '../../values.ts'
import { columnOf, type F, newValues } from './map-reduce.ts'
import { gatherColumn } from './partition.ts'

export function storeValues(frame: F, position: Expr, size: number, source: StoredValues<TypedArray>) {
  const { dtype, fill, stored } = source
  const entries = placedEntries(frame, position, source.distinct)
  const entry = frame.entry as Int32Array | null
  const values = stored && (entry ? gatherColumn(stored, entry) : stored)
  const reduce = dtype === 'bool' ? 'or' : '+'
  const tensor = { values, dtype }
  const out = scatter(size, entries.positions, frame.n, tensor, dtype, fill, reduce, source.distinct)
  return { values: out, entries }
}

/** The positions of the entries, in an array that is not shared. */
export function placedEntries(frame: F, position: Expr, distinct: boolean): PlacedEntries {
  const column = columnOf(frame, position)
  const positions = column && frame.keep(column) ? column : newValues(frame, position)
  return { count: frame.n, positions: isIdentity(positions) ? null : positions, distinct }
}

function isIdentity(positions: Int32Array): boolean {
  for (let e = 0; e < positions.length; e++) if (positions[e] !== e) return false
  return true
}

/** Values of entries; `null`: all 1. */
type Values = Pick<CoordTensor, 'values' | 'dtype'>

/** Scatters values of `n` entries into an array of `size`. `reduce`: combines values at one position. */
export function scatter(
  size: number,
  positions: Int32Array | null,
  n: number,
  tensor: Values,
  dtype: Dtype,
  fill: number,
  reduce: BuiltinReducer,
  distinct: boolean,
  place?: (entry: number) => string,
): ValueArray {
  const { values } = tensor
  const sameType = values !== null && tensor.dtype === dtype
  if (sameType && !positions && n === size) return values.slice()
  const out = filledArray(dtype, size, fill)
  if (positions && !distinct && hasCollision(positions, size))
    return reduceInto(out, positions, tensor, dtype, reduce, place)
  if (sameType) {
    if (positions) scatterCopy(out, values, positions)
    else out.set(values)
    return out
  }
  const read = decoder(tensor.dtype)
  const write = encoder(dtype, rejectMisfit(dtype, place))
  for (let e = 0; e < n; e++) {
    const x = values === null ? 1 : read ? read(values[e]!) : values[e]!
    out[positions ? positions[e]! : e] = write ? write(x, e) : x
  }
  return out
}

function scatterCopy(out: ValueArray, values: ValueArray, positions: Int32Array): void {
  for (let e = 0; e < positions.length; e++) out[positions[e]!] = values[e]!
}

/** True if two entries have the same position. */
function hasCollision(positions: Int32Array, size: number): boolean {
  if (positions.length > size) return true
  const seen = zeroed('u8', size)
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
  tensor: Values,
  dtype: Dtype,
  reduce: BuiltinReducer,
  place = (e: number): string => `element ${positions[e]}`,
): ValueArray {
  const { values } = tensor
  const read = decoder(tensor.dtype)
  const write = encoder(
    dtype,
    rejectMisfit(dtype, (p) => place(positions.indexOf(p))),
  )
  const combine = COMBINE[reduce]
  const sums = zeroed('f64', out.length)
  const seen = zeroed('u8', out.length)
  for (let e = 0; e < positions.length; e++) {
    const p = positions[e]!
    const raw = values === null ? 1 : read ? read(values[e]!) : values[e]!
    // Sums of numbers are checked; for `or`, a non-boolean input would otherwise become a truth value.
    const x = write && dtype === 'bool' ? write(raw, p) : raw
    sums[p] = seen[p] === 1 ? combine(sums[p]!, x) : x
    seen[p] = 1
  }
  for (let p = 0; p < out.length; p++) if (seen[p] === 1) out[p] = write ? write(sums[p]!, p) : sums[p]!
  return out
}
