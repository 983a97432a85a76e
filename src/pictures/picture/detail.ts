/** A window of a matrix, small enough that elements and blocks can be seen. */
import type { Boxes, MatrixPart } from './blocks.ts'

/** Rows and columns of a window at most. */
const WINDOW = 72
/** Tiles in each direction that are compared. */
const TILES = 240

export interface Window {
  readonly top: number
  readonly left: number
  readonly bottom: number
  readonly right: number
}

/** The tile with elements of the most parts, and of these the one with the most; `null` where all fits one window. */
export function windowOf(
  [rows, columns]: readonly [number, number],
  parts: readonly MatrixPart[],
): Window | null {
  if (Math.max(rows, columns) <= WINDOW) return null
  const side = Math.max(WINDOW, Math.ceil(Math.max(rows, columns) / TILES))
  const tile = fullest(parts, { top: 0, left: 0, bottom: rows, right: columns }, side)
  return tile && fullest(parts, tile, WINDOW)
}

function fullest(parts: readonly MatrixPart[], within: Window, side: number): Window | null {
  const across = Math.ceil((within.right - within.left) / side)
  const down = Math.ceil((within.bottom - within.top) / side)
  const total = new Int32Array(across * down)
  const kinds = new Int32Array(across * down)
  const last = new Int32Array(across * down).fill(-1)
  parts.forEach(({ entries: [rows, columns] }, k) => {
    for (let e = 0; e < rows.length; e++) {
      if (!holds(within, rows[e]!, columns[e]!)) continue
      const tile =
        Math.floor((rows[e]! - within.top) / side) * across + Math.floor((columns[e]! - within.left) / side)
      total[tile]!++
      if (last[tile] !== k) kinds[tile]!++
      last[tile] = k
    }
  })
  let best = 0
  for (let t = 1; t < total.length; t++)
    if (kinds[t]! > kinds[best]! || (kinds[t] === kinds[best] && total[t]! > total[best]!)) best = t
  if (!total[best]) return null
  const top = within.top + Math.floor(best / across) * side
  const left = within.left + (best % across) * side
  return {
    top,
    left,
    bottom: Math.min(within.bottom, top + side),
    right: Math.min(within.right, left + side),
  }
}

const holds = (w: Window, row: number, column: number): boolean =>
  row >= w.top && row < w.bottom && column >= w.left && column < w.right

/** The elements of a part inside a window, in the window's coordinates. */
export function cropped({ entries, around }: MatrixPart, w: Window): MatrixPart {
  return {
    entries: pointsIn(entries, w),
    around: around === null ? null : 'top' in around ? boxesIn(around, w) : pointsIn(around, w),
  }
}

function pointsIn(
  [rows, columns]: readonly [Int32Array, Int32Array],
  w: Window,
): readonly [Int32Array, Int32Array] {
  const kept: number[] = []
  for (let e = 0; e < rows.length; e++) if (holds(w, rows[e]!, columns[e]!)) kept.push(e)
  return [Int32Array.from(kept, (e) => rows[e]! - w.top), Int32Array.from(kept, (e) => columns[e]! - w.left)]
}

function boxesIn({ top, left, bottom, right }: Boxes, w: Window): Boxes {
  const kept: number[] = []
  for (let b = 0; b < top.length; b++)
    if (top[b]! < w.bottom && bottom[b]! > w.top && left[b]! < w.right && right[b]! > w.left) kept.push(b)
  return {
    top: Int32Array.from(kept, (b) => Math.max(0, top[b]! - w.top)),
    left: Int32Array.from(kept, (b) => Math.max(0, left[b]! - w.left)),
    bottom: Int32Array.from(kept, (b) => Math.min(w.bottom, bottom[b]!) - w.top),
    right: Int32Array.from(kept, (b) => Math.min(w.right, right[b]!) - w.left),
  }
}
