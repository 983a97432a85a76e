/** Drawing of a matrix and its parts: elements coloured by part, padding stored around them, and cuts between parts. */
import type { Boxes, MatrixPart } from './blocks.ts'
import type { Window } from './detail.ts'
import { cellsByKey, type Grid, SHADES, shadeOf } from './grid.ts'
import { colorOf, element, NEUTRAL, Rectangles } from './svg.ts'

export interface MatrixPanel {
  readonly content: string
  readonly width: number
  readonly height: number
}

/** Pixels of the longer side, at most. */
export const SIDE = 480
const CELLS = 240
const LARGEST_CELL = 24
/** Shorter sides of long matrices are stretched to this. */
const SHORTEST = 60
/** Boxes are outlined where they are at least this large, and no more than this many. */
const OUTLINED = { pixels: 4, boxes: 1500 }
const CUTS = { pixels: 5, most: 64 }

/** Cells of the matrix, square where its sides are not too different. */
function gridOf(rows: number, columns: number, most: number): Grid {
  const side = Math.max(rows, columns, 1)
  const bin = Math.ceil(side / CELLS)
  const pixels = (n: number): number => Math.max(1, Math.min(LARGEST_CELL, Math.floor(most / Math.max(1, n))))
  const cell = pixels(Math.ceil(side / bin))
  const direction = (n: number): { cells: number; bin: number; cell: number } => {
    const cells = Math.ceil(n / bin)
    if (cells * cell >= SHORTEST || n === side || cells === 0) return { cells, bin, cell }
    const finer = Math.max(1, Math.floor(n / SHORTEST))
    const count = Math.ceil(n / finer)
    return {
      cells: count,
      bin: finer,
      cell: Math.min(LARGEST_CELL, Math.max(1, Math.round(SHORTEST / count))),
    }
  }
  const down = direction(rows)
  const across = direction(columns)
  return {
    columns: across.cells,
    rows: down.cells,
    across: across.bin,
    down: down.bin,
    width: across.cell,
    height: down.cell,
  }
}

/**
 * Draws parts of a matrix with its upper left corner at (x, y). O(entries + cells × parts).
 * @param marked a window to point out
 */
export function drawMatrix(
  [rows, columns]: readonly [number, number],
  parts: readonly MatrixPart[],
  cuts: { readonly rows: readonly number[]; readonly columns: readonly number[] },
  x: number,
  y: number,
  side: number,
  marked: Window | null = null,
): MatrixPanel {
  const grid = gridOf(rows, columns, side)
  const width = grid.columns * grid.width
  const height = grid.rows * grid.height
  const fine = grid.across === 1 && grid.down === 1 && Math.min(grid.width, grid.height) >= 5
  const px = grid.width / grid.across
  const py = grid.height / grid.down
  const at = { grid, x, y, px, py, right: x + columns * px, bottom: y + rows * py }
  const content = [
    element('rect', { x, y, width: columns * px, height: rows * py, fill: NEUTRAL, 'fill-opacity': 0.07 }),
    ...stored(parts, at),
    ...entries(parts, at, fine ? 1 : 0),
    ...parts.map((p, k) => outlines(p, k, at)),
    lines(cuts, at),
    marked ? mark(marked, at) : '',
    element('rect', { x, y, width: columns * px, height: rows * py, fill: 'none', stroke: NEUTRAL }),
  ]
  return { content: content.join(''), width: Math.max(width, 1), height: Math.max(height, 1) }
}

function mark(w: Window, at: GridPlacement): string {
  const [x, y] = [at.x + w.left * at.px, at.y + w.top * at.py]
  const width = Math.max(5, (w.right - w.left) * at.px)
  const height = Math.max(5, (w.bottom - w.top) * at.py)
  return element('rect', { x, y, width, height, fill: 'none', stroke: NEUTRAL, 'stroke-width': 1.5 })
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
}

/** For each cell the part that has the most there, from 1, and how much there is of all. */
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

  /** @param mark calls `add` for each cell that an element of the part is in. */
  count(k: number, mark: (add: (cell: number) => void) => void): void {
    const touched: number[] = []
    const own = this.#own
    mark((cell) => {
      if (own[cell]!++ === 0) touched.push(cell)
    })
    for (const cell of touched) {
      this.total[cell]! += own[cell]!
      if (own[cell]! > this.#most[cell]!) {
        this.#most[cell] = own[cell]!
        this.part[cell] = k + 1
      }
      own[cell] = 0
    }
  }
}

function marker(
  { grid }: GridPlacement,
  [rows, columns]: readonly [Int32Array, Int32Array],
): (add: (cell: number) => void) => void {
  return (add) => {
    for (let e = 0; e < rows.length; e++)
      add(Math.floor(rows[e]! / grid.down) * grid.columns + Math.floor(columns[e]! / grid.across))
  }
}

function entries(parts: readonly MatrixPart[], at: GridPlacement, gap: number): string[] {
  const { grid } = at
  const found = new Majority(grid.rows * grid.columns)
  parts.forEach((p, k) => {
    found.count(k, marker(at, p.entries))
  })
  let most = 0
  for (const n of found.total) if (n > most) most = n
  const key = (cell: number): number =>
    found.part[cell] === 0 ? 0 : found.part[cell]! * 8 + shadeOf(found.total[cell]!, most)
  return [...cellsByKey(grid, key, at.x, at.y, gap)].map(([k, cells]) =>
    cells.path({ fill: colorOf((k >> 3) - 1), 'fill-opacity': SHADES[(k & 7) - 1]! }),
  )
}

/** Stored cells, drawn faintly under the entries: cells covered by blocks or by elements of dense axes. */
function stored(parts: readonly MatrixPart[], at: GridPlacement): string[] {
  const { grid } = at
  const found = new Majority(grid.rows * grid.columns)
  parts.forEach(({ around }, k) => {
    if (around === null) return
    found.count(k, 'top' in around ? boxMarker(around, at) : marker(at, around))
  })
  return [...cellsByKey(grid, (cell) => found.part[cell]!, at.x, at.y)].map(([k, cells]) =>
    cells.path({ fill: colorOf(k - 1), 'fill-opacity': 0.2 }),
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

function outlines({ around }: MatrixPart, k: number, at: GridPlacement): string {
  if (around === null || !('top' in around)) return ''
  const { top, left, bottom, right } = around
  if (top.length === 0 || top.length > OUTLINED.boxes) return ''
  const out = new Rectangles()
  for (let b = 0; b < top.length; b++) {
    const x = at.x + left[b]! * at.px
    const y = at.y + top[b]! * at.py
    const width = Math.min(at.right, at.x + right[b]! * at.px) - x
    const height = Math.min(at.bottom, at.y + bottom[b]! * at.py) - y
    if (Math.max(width, height) < OUTLINED.pixels) return ''
    out.add(x, y, width, height)
  }
  return out.path({ fill: 'none', stroke: colorOf(k), 'stroke-width': 1 })
}

function lines(
  cuts: { readonly rows: readonly number[]; readonly columns: readonly number[] },
  at: GridPlacement,
): string {
  const fits = (xs: readonly number[], pixels: number): boolean =>
    xs.length <= CUTS.most && xs.every((c, k) => k === 0 || (c - xs[k - 1]!) * pixels >= CUTS.pixels)
  const columns = fits(cuts.columns, at.px) ? cuts.columns : []
  const rows = fits(cuts.rows, at.py) ? cuts.rows : []
  const d = [
    ...columns.map((c) => `M${Math.round((at.x + c * at.px) * 10) / 10} ${at.y}V${at.bottom}`),
    ...rows.map((r) => `M${at.x} ${Math.round((at.y + r * at.py) * 10) / 10}H${at.right}`),
  ].join('')
  if (d === '') return ''
  return element('path', { d, fill: 'none', stroke: NEUTRAL, 'stroke-width': 1.5, 'stroke-dasharray': '6 3' })
}
