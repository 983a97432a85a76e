/** Selects a window of a matrix, small enough to draw individual elements and blocks. */
import type { Boxes, MatrixPart } from './blocks.ts'

/** Maximum number of rows and columns of a window. */
const WINDOW = 72
/** Maximum number of compared tiles in each direction. */
const TILES = 240

export interface Window {
  readonly top: number
  readonly left: number
  readonly bottom: number
  readonly right: number
}

/** The tile with elements of the most parts (ties: the most elements); `null` if the matrix fits one window. */
export function windowOf(
  [rows, columns]: readonly [number, number],
  parts: readonly MatrixPart[],
): Window | null {
  if (Math.max(rows, columns) <= WINDOW) return null
  const side = Math.max(WINDOW, Math.ceil(Math.max(rows, columns) / TILES))
  const tile = fullestTile(parts, { top: 0, left: 0, bottom: rows, right: columns }, side)
  return tile && fullestTile(parts, tile, WINDOW)
}

function fullestTile(parts: readonly MatrixPart[], area: Window, side: number): Window | null {
  const across = Math.ceil((area.right - area.left) / side)
  const down = Math.ceil((area.bottom - area.top) / side)
  const total = new Int32Array(across * down)
  const partCounts = new Int32Array(across * down)
  const lastPart = new Int32Array(across * down).fill(-1)
  parts.forEach(({ entries: [rows, columns] }, k) => {
    for (let e = 0; e < rows.length; e++) {
      if (!contains(area, rows[e]!, columns[e]!)) continue
      const tile =
        Math.floor((rows[e]! - area.top) / side) * across + Math.floor((columns[e]! - area.left) / side)
      total[tile]!++
      if (lastPart[tile] !== k) partCounts[tile]!++
      lastPart[tile] = k
    }
  })
  let best = 0
  for (let t = 1; t < total.length; t++)
    if (
      partCounts[t]! > partCounts[best]! ||
      (partCounts[t] === partCounts[best] && total[t]! > total[best]!)
    )
      best = t
  if (!total[best]) return null
  const top = area.top + Math.floor(best / across) * side
  const left = area.left + (best % across) * side
  return { top, left, bottom: Math.min(area.bottom, top + side), right: Math.min(area.right, left + side) }
}

const contains = (w: Window, row: number, column: number): boolean =>
  row >= w.top && row < w.bottom && column >= w.left && column < w.right

/** The elements of a part inside a window, in the window's coordinates. */
export function crop({ entries, storedCells }: MatrixPart, w: Window): MatrixPart {
  return {
    entries: cropPoints(entries, w),
    storedCells:
      storedCells === null
        ? null
        : 'top' in storedCells
          ? cropBoxes(storedCells, w)
          : cropPoints(storedCells, w),
  }
}

function cropPoints(
  [rows, columns]: readonly [Int32Array, Int32Array],
  w: Window,
): readonly [Int32Array, Int32Array] {
  const indices: number[] = []
  for (let e = 0; e < rows.length; e++) if (contains(w, rows[e]!, columns[e]!)) indices.push(e)
  return [
    Int32Array.from(indices, (e) => rows[e]! - w.top),
    Int32Array.from(indices, (e) => columns[e]! - w.left),
  ]
}

function cropBoxes({ top, left, bottom, right }: Boxes, w: Window): Boxes {
  const indices: number[] = []
  for (let b = 0; b < top.length; b++)
    if (top[b]! < w.bottom && bottom[b]! > w.top && left[b]! < w.right && right[b]! > w.left) indices.push(b)
  return {
    top: Int32Array.from(indices, (b) => Math.max(0, top[b]! - w.top)),
    left: Int32Array.from(indices, (b) => Math.max(0, left[b]! - w.left)),
    bottom: Int32Array.from(indices, (b) => Math.min(w.bottom, bottom[b]!) - w.top),
    right: Int32Array.from(indices, (b) => Math.min(w.right, right[b]!) - w.left),
  }
}
