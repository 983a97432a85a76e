/** Draws the storage of each part as a box of its slots; nonzeros and padding have different colours. */

import { arraysOfLevel, coordinatesOf } from '../../columns/stored-level.ts'
import type { OccupiedEntries, StoredPart } from '../../storage/entries/stored-parts.ts'
import { type Layout, layoutOf, type Region } from './layout.ts'
import {
  cellsByKey,
  count,
  element,
  escapeXml,
  fitText,
  type Grid,
  type GridSide,
  gridBy,
  NEUTRAL,
  type Panel,
  percent,
  Rectangles,
  text,
} from './svg.ts'

export interface StoragePart {
  readonly part: StoredPart
  readonly occupied: OccupiedEntries
}

const GAP = 22
const TEXT = 46
const MIN_CELL = 6
/** Minimum pixels per element for elements that are drawn individually. */
const MIN_SEPARATE_PIXELS = 4
const MAX_CELL = 14
const BOXES = 500
/** Opacities of cells by fill ratio. */
const SHARES: readonly number[] = [0.12, 0.32, 0.54, 0.76, 1]

interface Limits {
  readonly width: number
  readonly height: number
  /** Pixels of a cell with several elements. */
  readonly cell: number
}

/** Limits by number of parts: fewer parts get more space. */
const limitsFor = (parts: number): Limits =>
  parts <= 4
    ? { width: 280, height: 200, cell: 2 }
    : parts <= 16
      ? { width: 200, height: 130, cell: 2 }
      : { width: 120, height: 70, cell: parts <= 64 ? 2 : 3 }

/** Definition of the hatching of padding. */
export const HATCHING = element(
  'pattern',
  { id: 'padding', width: 5, height: 5, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
  element('path', { d: 'M0 0V5', stroke: NEUTRAL, 'stroke-width': 1.6, 'stroke-opacity': 0.55 }),
)

/** Enlarged drawing of the first slots, if there are few parts. */
const BEGINNING = { width: 56, height: 40, pixels: 5, parts: 4 }

interface Item {
  readonly part: StoragePart
  readonly color: string
  readonly layout: Layout
  readonly grid: Grid
  readonly region: Region
  readonly lines: readonly string[]
}

/**
 * Draws boxes of all non-empty parts, in lines of at most `width` pixels, at a common scale. O(elements).
 */
export function drawStorage(
  parts: readonly StoragePart[],
  colors: readonly string[],
  x: number,
  y: number,
  width: number,
): Panel {
  const layouts = parts.map((p) => layoutOf(p.part))
  const limits = limitsFor(parts.length)
  const maxOf = (measure: (l: Layout) => number): number =>
    layouts.reduce((m, l) => Math.max(m, measure(l)), 1)
  const across = limits.width / maxOf((l) => l.width)
  const down = limits.height / maxOf((l) => l.height)
  const square = Math.floor(Math.min(across, down, MAX_CELL))
  const scale = square >= MIN_SEPARATE_PIXELS ? { across: square, down: square } : { across, down }
  const groups = layouts.flatMap((layout, k): Item[][] => {
    const part = parts[k]!
    if (part.part.storage.size === 0) return []
    const item: Item = {
      part,
      color: colors[k]!,
      layout,
      grid: gridOf(layout, scale, limits),
      region: layout,
      lines: captions(part, layout),
    }
    const large = square >= MIN_SEPARATE_PIXELS || parts.length > BEGINNING.parts
    return [large ? [item] : [item, beginningItem(item)]]
  })
  const out: string[] = []
  let left = x
  let top = y
  let tallest = 0
  let right = x
  const itemWidth = ({ grid }: Item): number => Math.max(grid.columns * grid.width, TEXT + 64) + GAP
  for (const items of groups) {
    const groupWidth = items.reduce((sum, item) => sum + itemWidth(item), 0) - GAP
    if (left > x && left + groupWidth > x + width) {
      left = x
      top += tallest + TEXT + GAP
      tallest = 0
    }
    for (const item of items) {
      out.push(drawItem(item, left, top, itemWidth(item) - 6))
      left += itemWidth(item)
      right = Math.max(right, left)
      tallest = Math.max(tallest, item.grid.rows * item.grid.height)
    }
  }
  return { content: out.join('\n'), width: right - x, height: top + tallest + TEXT - y }
}

function beginningItem(item: Item): Item {
  const { width, height } = item.layout
  const region = { width: Math.min(width, BEGINNING.width), height: Math.min(height, BEGINNING.height) }
  const side = (cells: number): GridSide => ({ cells, bin: 1, cell: BEGINNING.pixels })
  const grid = gridBy(side(region.width), side(region.height))
  return { ...item, region, grid, lines: ['its beginning'] }
}

function captions({ part, occupied }: StoragePart, layout: Layout): string[] {
  const { size } = part.storage
  const stored = occupied.coords[0]!.length
  const isFull = layout.width * layout.height === size
  return [
    `${count(layout.height)} × ${isFull ? '' : 'up to '}${count(layout.width)}`,
    size === stored ? 'no padding' : `${percent((size - stored) / size)} padding`,
  ]
}

function gridOf(
  layout: Layout,
  scale: { readonly across: number; readonly down: number },
  limits: Limits,
): Grid {
  const direction = (elements: number, pixels: number): GridSide => {
    if (pixels >= 1) {
      const cell = Math.max(elements === 1 ? MIN_CELL : 1, Math.floor(pixels))
      return { cells: elements, bin: 1, cell: Math.min(cell, Math.max(MAX_CELL, MIN_CELL)) }
    }
    const bin = Math.ceil(elements / Math.max(MIN_CELL / limits.cell, (elements * pixels) / limits.cell))
    return { cells: Math.ceil(elements / bin), bin, cell: limits.cell }
  }
  return gridBy(direction(layout.width, scale.across), direction(layout.height, scale.down))
}

function drawItem(item: Item, x: number, y: number, maxWidth: number): string {
  const { part, layout, grid, region, lines } = item
  const { storage, part: instance } = part.part
  const below = y + grid.rows * grid.height + 15
  const name = instance.label === '' ? instance.instance.text : instance.label
  const stored = part.occupied.coords[0]!.length
  const description = `${name}: ${instance.instance.text}, ${count(stored)} of ${count(storage.size)} slots`
  return element(
    'g',
    {},
    [
      element('title', {}, escapeXml(description)),
      cells(item, x, y),
      frames(layout, grid, region, x, y),
      text(x, below, fitText(name, maxWidth, 12), { 'font-weight': 'bold' }),
      ...lines.map((line, k) => text(x, below + 14 * (k + 1), line)),
    ].join(''),
  )
}

/** Draws slots: occupied slots in the colour of the part, padding hatched. */
function cells(
  { part: { part, occupied }, color, layout, grid, region }: Item,
  x: number,
  y: number,
): string {
  const marks = new Uint8Array(part.storage.size)
  const { positions } = occupied
  if (positions) for (let e = 0; e < positions.length; e++) marks[positions[e]!] = 1
  const slots = new Int32Array(grid.columns * grid.rows)
  const occupiedSlots = new Int32Array(grid.columns * grid.rows)
  layout.elements(region, (address, ex, ey) => {
    const cell = Math.floor(ey / grid.down) * grid.columns + Math.floor(ex / grid.across)
    slots[cell]!++
    occupiedSlots[cell]! += marks[address]!
  })
  const separate = Math.min(grid.width, grid.height) >= MIN_SEPARATE_PIXELS ? 1 : 0
  const ground = cellsByKey(grid, (c) => (slots[c]! > 0 ? 1 : 0), x, y, separate)
  const padded = cellsByKey(grid, (c) => (slots[c]! > occupiedSlots[c]! ? 1 : 0), x, y, separate)
  const shade = (c: number): number =>
    occupiedSlots[c] === 0 ? 0 : Math.ceil((SHARES.length * occupiedSlots[c]!) / slots[c]!)
  return [
    ...[...ground.values()].map((r) => r.path({ fill: color, 'fill-opacity': 0.14 })),
    ...[...padded.values()].map((r) => r.path({ fill: 'url(#padding)' })),
    ...[...cellsByKey(grid, shade, x, y, separate)].map(([s, r]) =>
      r.path({ fill: color, 'fill-opacity': SHARES[s - 1]! }),
    ),
  ].join('')
}

/** Frames of slices, groups and blocks, if they are large enough to be distinguished. */
function frames(layout: Layout, grid: Grid, region: Region, x: number, y: number): string {
  const px = grid.width / grid.across
  const py = grid.height / grid.down
  const isComplete = region.width === layout.width && region.height === layout.height
  const out = new Rectangles()
  layout.boxes(region, isComplete ? BOXES : Number.POSITIVE_INFINITY, (bx, by, w, h) => {
    const width = Math.min(w, region.width - bx) * px
    const height = Math.min(h, region.height - by) * py
    if (w * px >= MIN_SEPARATE_PIXELS && h * py >= MIN_SEPARATE_PIXELS)
      out.add(x + bx * px, y + by * py, width, height)
  })
  return out.path({ fill: 'none', stroke: NEUTRAL, 'stroke-width': 0.8 })
}

// Draws the index arrays of small tensors: the name of each array, and a cell for each number.

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
export function drawIndexArrays(parts: readonly StoragePart[], x: number, y: number): Panel | null {
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
  return { content: rows.join('\n'), width: left + longest * CELL.width - x, height: arrays.length * ROW }
}
