/** Draws a matrix and its parts: elements coloured by part, stored padding, and cuts between parts. */
import type { Boxes, MatrixPart } from './blocks.ts'
import type { Window } from './detail.ts'
import type { Grid, GridSide, Panel } from './svg.ts'
import { cellsByKey, element, gridBy, NEUTRAL, Rectangles, SHADES, shadeOf } from './svg.ts'

export interface MatrixPanel extends Panel {
  /** Pixels of the highlighted window. */
  readonly highlight: Rectangle | null
}

interface Rectangle {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** Maximum pixels of the longer side. */
export const SIDE = 480
const CELLS = 240
const LARGEST_CELL = 24
/** Minimum pixels of the shorter side; long matrices are stretched. */
const SHORTEST = 60
/** Boxes are outlined if they have at least this many pixels, and there are at most this many boxes. */
const OUTLINED = { pixels: 4, boxes: 1500 }
const CUTS = { pixels: 5, most: 64 }

/** Grid of the matrix; cells are square unless the sides differ too much. */
function gridOf(rows: number, columns: number, maxPixels: number): Grid {
  const side = Math.max(rows, columns, 1)
  const bin = Math.ceil(side / CELLS)
  const pixels = (n: number): number =>
    Math.max(1, Math.min(LARGEST_CELL, Math.floor(maxPixels / Math.max(1, n))))
  const cell = pixels(Math.ceil(side / bin))
  const direction = (n: number): GridSide => {
    const cells = Math.ceil(n / bin)
    if (cells * cell >= SHORTEST || n === side || cells === 0) return { cells, bin, cell }
    const finer = Math.max(1, Math.floor(n / SHORTEST))
    const count = Math.ceil(n / finer)
    const pixelsOfCell = Math.min(LARGEST_CELL, Math.max(1, Math.round(SHORTEST / count)))
    return { cells: count, bin: finer, cell: pixelsOfCell }
  }
  return gridBy(direction(columns), direction(rows))
}

/**
 * Draws parts of a matrix with its upper left corner at (x, y). O(entries + cells × parts).
 * @param colors - A colour for each part
 * @param highlighted - A window to outline
 */
export function drawMatrix(
  [rows, columns]: readonly [number, number],
  parts: readonly MatrixPart[],
  colors: readonly string[],
  cuts: { readonly rows: readonly number[]; readonly columns: readonly number[] },
  x: number,
  y: number,
  side: number,
  highlighted: Window | null = null,
): MatrixPanel {
  const grid = gridOf(rows, columns, side)
  const width = grid.columns * grid.width
  const height = grid.rows * grid.height
  const isFine = grid.across === 1 && grid.down === 1 && Math.min(grid.width, grid.height) >= 5
  const px = grid.width / grid.across
  const py = grid.height / grid.down
  const placement = { grid, x, y, px, py, right: x + columns * px, bottom: y + rows * py, colors }
  const highlight = highlighted && windowRectangle(highlighted, placement)
  const content = [
    element('rect', { x, y, width: columns * px, height: rows * py, fill: NEUTRAL, 'fill-opacity': 0.07 }),
    ...drawStored(parts, placement),
    ...drawEntries(parts, placement, isFine ? 1 : 0),
    ...parts.map((p, k) => drawOutlines(p, k, placement)),
    drawCuts(cuts, placement),
    highlight ? element('rect', { ...highlight, fill: 'none', stroke: NEUTRAL, 'stroke-width': 1.5 }) : '',
    element('rect', { x, y, width: columns * px, height: rows * py, fill: 'none', stroke: NEUTRAL }),
  ]
  return { content: content.join(''), width: Math.max(width, 1), height: Math.max(height, 1), highlight }
}

function windowRectangle(w: Window, placement: GridPlacement): Rectangle {
  const [x, y] = [placement.x + w.left * placement.px, placement.y + w.top * placement.py]
  const width = Math.max(5, (w.right - w.left) * placement.px)
  const height = Math.max(5, (w.bottom - w.top) * placement.py)
  return { x, y, width, height }
}

interface GridPlacement {
  readonly grid: Grid
  readonly x: number
  readonly y: number
  /** Pixels of an element. */
  readonly px: number
  readonly py: number
  readonly right: number
  readonly bottom: number
  readonly colors: readonly string[]
}

/** For each cell, the part with the most elements (from 1), and the total number of elements. */
class Majority {
  readonly part: Int32Array
  readonly total: Int32Array
  readonly #most: Int32Array
  readonly #own: Int32Array

  constructor(cells: number) {
    this.part = new Int32Array(cells)
    this.total = new Int32Array(cells)
    this.#most = new Int32Array(cells)
    this.#own = new Int32Array(cells)
  }

  /** Counts the elements of part k. @param mark - Calls `add` with the cell of each element */
  count(k: number, mark: (add: (cell: number) => void) => void): void {
    const touched: number[] = []
    const partCounts = this.#own
    mark((cell) => {
      if (partCounts[cell]!++ === 0) touched.push(cell)
    })
    for (const cell of touched) {
      this.total[cell]! += partCounts[cell]!
      if (partCounts[cell]! > this.#most[cell]!) {
        this.#most[cell] = partCounts[cell]!
        this.part[cell] = k + 1
      }
      partCounts[cell] = 0
    }
  }
}

function pointMarker(
  { grid }: GridPlacement,
  [rows, columns]: readonly [Int32Array, Int32Array],
): (add: (cell: number) => void) => void {
  return (add) => {
    for (let e = 0; e < rows.length; e++)
      add(Math.floor(rows[e]! / grid.down) * grid.columns + Math.floor(columns[e]! / grid.across))
  }
}

function drawEntries(parts: readonly MatrixPart[], placement: GridPlacement, gap: number): string[] {
  const { grid } = placement
  const majority = new Majority(grid.rows * grid.columns)
  parts.forEach((p, k) => {
    majority.count(k, pointMarker(placement, p.entries))
  })
  let max = 0
  for (const n of majority.total) if (n > max) max = n
  const key = (cell: number): number =>
    majority.part[cell] === 0 ? 0 : majority.part[cell]! * 8 + shadeOf(majority.total[cell]!, max)
  return [...cellsByKey(grid, key, placement.x, placement.y, gap)].map(([k, cells]) =>
    cells.path({ fill: placement.colors[(k >> 3) - 1]!, 'fill-opacity': SHADES[(k & 7) - 1]! }),
  )
}

/** Draws stored cells (covered by blocks or slots of dense axes) faintly below the entries. */
function drawStored(parts: readonly MatrixPart[], placement: GridPlacement): string[] {
  const { grid } = placement
  const majority = new Majority(grid.rows * grid.columns)
  parts.forEach(({ storedCells }, k) => {
    if (storedCells === null) return
    majority.count(
      k,
      'top' in storedCells ? boxMarker(storedCells, placement) : pointMarker(placement, storedCells),
    )
  })
  return [...cellsByKey(grid, (cell) => majority.part[cell]!, placement.x, placement.y)].map(([k, cells]) =>
    cells.path({ fill: placement.colors[k - 1]!, 'fill-opacity': 0.2 }),
  )
}

function boxMarker(
  { top, left, bottom, right }: Boxes,
  { grid }: GridPlacement,
): (add: (cell: number) => void) => void {
  return (add) => {
    for (let b = 0; b < top.length; b++) {
      const lo = Math.floor(left[b]! / grid.across)
      const hi = Math.min(grid.columns, Math.ceil(right[b]! / grid.across))
      const end = Math.min(grid.rows, Math.ceil(bottom[b]! / grid.down))
      for (let r = Math.floor(top[b]! / grid.down); r < end; r++)
        for (let c = lo; c < hi; c++) add(r * grid.columns + c)
    }
  }
}

function drawOutlines({ storedCells }: MatrixPart, k: number, placement: GridPlacement): string {
  if (storedCells === null || !('top' in storedCells)) return ''
  const { top, left, bottom, right } = storedCells
  if (top.length === 0 || top.length > OUTLINED.boxes) return ''
  const out = new Rectangles()
  for (let b = 0; b < top.length; b++) {
    const x = placement.x + left[b]! * placement.px
    const y = placement.y + top[b]! * placement.py
    const width = Math.min(placement.right, placement.x + right[b]! * placement.px) - x
    const height = Math.min(placement.bottom, placement.y + bottom[b]! * placement.py) - y
    if (Math.max(width, height) < OUTLINED.pixels) return ''
    out.add(x, y, width, height)
  }
  return out.path({ fill: 'none', stroke: placement.colors[k]!, 'stroke-width': 1 })
}

function drawCuts(
  cuts: { readonly rows: readonly number[]; readonly columns: readonly number[] },
  placement: GridPlacement,
): string {
  const fits = (xs: readonly number[], pixels: number): boolean =>
    xs.length <= CUTS.most && xs.every((c, k) => k === 0 || (c - xs[k - 1]!) * pixels >= CUTS.pixels)
  const columns = fits(cuts.columns, placement.px) ? cuts.columns : []
  const rows = fits(cuts.rows, placement.py) ? cuts.rows : []
  const d = [
    ...columns.map(
      (c) => `M${Math.round((placement.x + c * placement.px) * 10) / 10} ${placement.y}V${placement.bottom}`,
    ),
    ...rows.map(
      (r) => `M${placement.x} ${Math.round((placement.y + r * placement.py) * 10) / 10}H${placement.right}`,
    ),
  ].join('')
  if (d === '') return ''
  return element('path', { d, fill: 'none', stroke: NEUTRAL, 'stroke-width': 1.5, 'stroke-dasharray': '6 3' })
}
