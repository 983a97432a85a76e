/** Partition of entries by a small number: a counting sort that yields one frame per value. */
import { allocate, gatherInto } from '../../../columns/allocate.ts'
import { borrowExact } from '../../../columns/scratch-buffers.ts'
import type { TypedArray } from '../../../ir/values/arrays.ts'
import type { F } from './map-reduce.ts'

/**
 * Drops the column and takes ownership of the frame; its columns stay alive until the last resulting frame is released.
 * Returns the frame itself if all entries have one number.
 */
export function partition(frame: F, name: string, count: number): F[] {
  const { n } = frame
  const children = Array.from({ length: count }, (_, k) => k)
  const childNumbers = frame.column(name)
  const bounds = new Int32Array(count + 1)
  if (childNumbers instanceof Int32Array) countRuns(childNumbers, bounds)
  const onlyChild = n === 0 ? 0 : children.find((k) => bounds[k + 1] === n)
  if (onlyChild !== undefined) {
    frame.drop(name)
    return children.map((k) => (k === onlyChild ? frame : emptyFrame(frame)))
  }
  for (let k = 0; k < count; k++) bounds[k + 1]! += bounds[k]!
  // Each part keeps its subarray.
  const order = allocate(n, 'entries')
  scatterRuns(childNumbers as Int32Array, bounds.slice(), order)
  frame.drop(name)
  let remaining = count
  return children.map((k) => {
    const out = gatherPart(frame, order.subarray(bounds[k]!, bounds[k + 1]!))
    out.sortedBy = frame.sortedBy
    out.onRelease = () => {
      if (--remaining === 0) frame.release()
    }
    return out
  })
}

/** A frame without entries that shares no data with the other. */
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

/** Gathers elements of a column. */
export function gatherColumn(from: TypedArray, order: Int32Array): TypedArray {
  if (from instanceof Int32Array) return gatherInto(borrowExact(order.length, 'entries'), from, order)
  const out = new (from.constructor as Float64ArrayConstructor)(order.length)
  for (let s = 0; s < order.length; s++) out[s] = from[order[s]!]!
  return out
}

/** Equal numbers are mostly adjacent: counters are updated once per run. */
function countRuns(childNumbers: Int32Array, bounds: Int32Array): void {
  const n = childNumbers.length
  for (let lo = 0; lo < n; ) {
    const k = childNumbers[lo]!
    let hi = lo + 1
    while (hi < n && childNumbers[hi] === k) hi++
    bounds[k + 1]! += hi - lo
    lo = hi
  }
}

function scatterRuns(childNumbers: Int32Array, next: Int32Array, order: Int32Array): void {
  const n = childNumbers.length
  for (let e = 0; e < n; ) {
    const k = childNumbers[e]!
    let slot = next[k]!
    do order[slot++] = e++
    while (e < n && childNumbers[e] === k)
    next[k] = slot
  }
}
