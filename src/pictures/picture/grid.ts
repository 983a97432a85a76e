/** Counts in cells of a grid, and cells as few rectangles. */
import { Rectangles } from './svg.ts'

/** Partition of elements into a grid of cells with a maximum size, on whole pixels. */
export interface Grid {
  readonly columns: number
  readonly rows: number
  /** Elements of a cell in each direction. */
  readonly across: number
  readonly down: number
  /** Pixels of a cell. */
  readonly width: number
  readonly height: number
}

/** Opacities that a cell can have, faintest first. */
export const SHADES: readonly number[] = [0.42, 0.55, 0.7, 0.85, 1]

/** A shade from 1 to their number for a positive amount of at most `most`, logarithmic; 0 for nothing. */
export function shadeOf(amount: number, most: number): number {
  if (amount <= 0) return 0
  return 1 + Math.floor(((SHADES.length - 0.01) * Math.log1p(amount)) / Math.log1p(Math.max(amount, most)))
}

/**
 * The cells of each key as rectangles, neighbours of a row joined. Keys of cells are positive; 0 is left out.
 * @param gap pixels that are left free at the right and at the bottom of each cell; with a gap nothing is joined
 */
export function cellsByKey(
  grid: Grid,
  keyOf: (cell: number) => number,
  x: number,
  y: number,
  gap = 0,
): ReadonlyMap<number, Rectangles> {
  const out = new Map<number, Rectangles>()
  const { columns, rows, width, height } = grid
  for (let r = 0; r < rows; r++)
    for (let c = 0; c < columns; ) {
      const key = keyOf(r * columns + c)
      let end = c + 1
      if (gap === 0) while (end < columns && keyOf(r * columns + end) === key) end++
      if (key > 0) {
        let cells = out.get(key)
        if (!cells) out.set(key, (cells = new Rectangles()))
        cells.add(x + c * width, y + r * height, (end - c) * width - gap, height - gap)
      }
      c = end
    }
  return out
}
