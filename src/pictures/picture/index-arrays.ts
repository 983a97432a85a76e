/** Draws the index arrays of small tensors: the name of each array, and a cell for each number. */
import { arraysOfLevel, coordinatesOf } from '../../columns/stored-level.ts'
import type { StoragePart } from './storage-panel.ts'
import { element, NEUTRAL, text } from './svg.ts'

const ROW = 22
const CELL = { width: 22, height: 17 }
const MAX_NUMBERS = 32

interface IndexArray {
  readonly name: string
  readonly numbers: Int32Array
}

function arraysOf({ part }: StoragePart): readonly IndexArray[] {
  return [...part.storage.levels].flatMap(([axis, level]) => {
    // Bits of masks are not readable as numbers.
    const readable = { ...level, indices: coordinatesOf(level), mask: null }
    return arraysOfLevel(readable).map(([array, numbers]) => ({ name: `${axis} ${array}`, numbers }))
  })
}

/** Draws the index arrays; null if there is none, or if an array has more than 32 numbers. */
export function drawIndexArrays(
  parts: readonly StoragePart[],
  x: number,
  y: number,
): { readonly content: string; readonly width: number; readonly height: number } | null {
  const arrays = parts.flatMap(arraysOf)
  if (arrays.length === 0 || arrays.some(({ numbers }) => numbers.length > MAX_NUMBERS)) return null
  const left = x + 16 + 7 * Math.max(...arrays.map(({ name }) => name.length))
  const rows = arrays.map(({ name, numbers }, row) => {
    const top = y + row * ROW
    const cells = Array.from(
      numbers,
      (n, k) =>
        element('rect', { x: left + k * CELL.width, y: top, ...CELL, fill: 'none', stroke: NEUTRAL }) +
        text(left + (k + 0.5) * CELL.width, top + 13, String(n), {
          'text-anchor': 'middle',
          'font-size': 11,
        }),
    )
    return text(x, top + 13, name) + cells.join('')
  })
  const longest = Math.max(...arrays.map(({ numbers }) => numbers.length))
  return {
    content: rows.join('\n'),
    width: left + longest * CELL.width - x,
    height: arrays.length * ROW,
  }
}
