/** Grids of cells: shades by count, and rectangles that cover cells. */
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

/** Opacities of cells, faintest first. */
export const SHADES: readonly number[] = [0.42, 0.55, 0.7, 0.85, 1]

/** Logarithmic shade, from 1 to the number of shades, of a positive amount up to `max`; 0 for an amount of 0. */
export function shadeOf(amount: number, max: number): number {
  if (amount <= 0) return 0
  return 1 + Math.floor(((SHADES.length - 0.01) * Math.log1p(amount)) / Math.log1p(Math.max(amount, max)))
}

/**
 * Rectangles that cover the cells of each positive key; neighbours in a row are joined.
 * @param gap - Free pixels at the right and the bottom of each cell; with a gap, cells are not joined
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
