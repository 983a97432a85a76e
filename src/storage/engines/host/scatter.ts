/** Scatter of values to the positions of their entries, with sums at equal positions; partition of entries. */

import { ready } from '../../../ast/work.ts'
import { allocate, borrowExact, gatherInto } from '../../../columns/allocate.ts'
import type { PlacedEntries } from '../../../columns/stored-level.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import type { TypedArray } from '../../../ir/values/arrays.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import type { CoordTensor, ValueArray } from '../../tensor.ts'
import { decoder, encoder, filledArray, rejectMisfit, newValues as zeroed } from '../../tensor.ts'
import { columnOf, type F, type Host, newValues } from './map-reduce.ts'

export const storeValues: Host['storeValues'] = (frame, position, size, source) => {
  const { dtype, fill, stored } = source
  const entries = placedEntries(frame, position, source.distinct)
  const entry = frame.entry as Int32Array | null
  const values = stored && (entry ? gatherColumn(stored, entry) : stored)
  const tensor = { values, dtype }
  const out = scatter(size, entries.positions, frame.n, tensor, dtype, fill, source.distinct)
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

/** Scatters values of `n` entries into an array of `size`. Values at one position are added. */
export function scatter(
  size: number,
  positions: Int32Array | null,
  n: number,
  tensor: Values,
  dtype: Dtype,
  fill: number,
  distinct: boolean,
  place?: (entry: number) => string,
): ValueArray {
  const { values } = tensor
  const sameType = values !== null && tensor.dtype === dtype
  if (sameType && !positions && n === size) return values.slice()
  const out = filledArray(dtype, size, fill)
  if (positions && !distinct && hasCollision(positions, size))
    return sumInto(out, positions, tensor, dtype, place)
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

export function scatterCopy(out: ValueArray, values: ValueArray, positions: Int32Array): void {
  for (let e = 0; e < positions.length; e++) out[positions[e]!] = values[e]!
}

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

/** Adds values at one position in float64, or combines them by `or`. */
function sumInto(
  out: ValueArray,
  positions: Int32Array,
  tensor: Values,
  dtype: Dtype,
  place = (e: number): string => `element ${positions[e]}`,
): ValueArray {
  const { values } = tensor
  const read = decoder(tensor.dtype)
  const write = encoder(
    dtype,
    rejectMisfit(dtype, (p) => place(positions.indexOf(p))),
  )
  const sums = zeroed('f64', out.length)
  const seen = zeroed('u8', out.length)
  for (let e = 0; e < positions.length; e++) {
    const p = positions[e]!
    const raw = values === null ? 1 : read ? read(values[e]!) : values[e]!
    // Sums of numbers are checked; for `or`, a non-boolean input would otherwise become a truth value.
    const x = write && dtype === 'bool' ? write(raw, p) : raw
    sums[p] = seen[p] === 0 ? x : dtype === 'bool' ? Math.max(sums[p]!, x) : sums[p]! + x
    seen[p] = 1
  }
  for (let p = 0; p < out.length; p++) if (seen[p] === 1) out[p] = write ? write(sums[p]!, p) : sums[p]!
  return out
}

// Partition of entries by a small number: a counting sort that yields one frame per value.

/** Columns stay alive until the last frame is released. The frame itself, if all entries have one number. */
export const partition: Host['partition'] = (frame, name, count) => {
  const { n } = frame
  const children = Array.from({ length: count }, (_, k) => k)
  const childNumbers = frame.column(name)
  const bounds = new Int32Array(count + 1)
  if (childNumbers instanceof Int32Array) countRuns(childNumbers, bounds.subarray(1))
  const onlyChild = n === 0 ? 0 : children.find((k) => bounds[k + 1] === n)
  if (onlyChild !== undefined) {
    frame.drop(name)
    return ready(children.map((k) => (k === onlyChild ? frame : emptyFrame(frame))))
  }
  for (let k = 0; k < count; k++) bounds[k + 1]! += bounds[k]!
  // Each part keeps its subarray.
  const order = allocate(n, 'entries')
  scatterRuns(childNumbers as Int32Array, bounds.slice(), order)
  frame.drop(name)
  let remaining = count
  const parts = children.map((k) => {
    const out = gatherPart(frame, order.subarray(bounds[k]!, bounds[k + 1]!))
    out.sortedBy = frame.sortedBy
    out.onRelease = () => {
      if (--remaining === 0) frame.release()
    }
    return out
  })
  return ready(parts)
}

function emptyFrame(frame: F): F {
  const out = frame.sibling(0)
  for (const name of frame.names()) out.set(name, frame.column(name)!.subarray(0, 0), false)
  out.setEntry(new Int32Array(0), false)
  return out
}

function gatherPart(frame: F, order: Int32Array): F {
  const out = frame.sibling(order.length)
  for (const name of frame.names()) out.deferred.set(name, () => gatherColumn(frame.column(name)!, order))
  const parentEntry = frame.entry as Int32Array | null
  out.setEntry(parentEntry ? gatherInto(allocate(order.length, 'entries'), parentEntry, order) : order, false)
  return out
}

export function gatherColumn(from: TypedArray, order: Int32Array): TypedArray {
  if (from instanceof Int32Array) return gatherInto(borrowExact(order.length, 'entries'), from, order)
  const out = new (from.constructor as Float64ArrayConstructor)(order.length)
  for (let s = 0; s < order.length; s++) out[s] = from[order[s]!]!
  return out
}

/** Counts equal numbers, which are mostly adjacent: counters are updated once per run. */
export function countRuns(childNumbers: Int32Array, counts: Int32Array): void {
  const n = childNumbers.length
  for (let lo = 0; lo < n; ) {
    const k = childNumbers[lo]!
    let hi = lo + 1
    while (hi < n && childNumbers[hi] === k) hi++
    counts[k]! += hi - lo
    lo = hi
  }
}

/** The entries in the order of their numbers, stable; `next`: where the entries of each number begin, and afterwards where they end. */
export function scatterRuns(childNumbers: Int32Array, next: Int32Array, order: Int32Array): void {
  const n = childNumbers.length
  for (let e = 0; e < n; ) {
    const k = childNumbers[e]!
    let slot = next[k]!
    do order[slot++] = e++
    while (e < n && childNumbers[e] === k)
    next[k] = slot
  }
}
