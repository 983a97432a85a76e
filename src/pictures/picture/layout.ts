/**
 * Two-dimensional layout of the slots of a part: each level places the segments of its positions side by side or one below the
 * other. Rows of equal width form a rectangle, slices form rows of unequal boxes, blocks form small boxes.
 */
import { firstPosition, type Level } from '../../columns/stored-level.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { formatOf } from '../../levels/index.ts'
import type { StoredPart } from '../../storage/entries/stored-parts.ts'
import type { Storage } from '../../storage/storage.ts'
import { count, element, escapeXml, fitText, percent, text } from './svg.ts'

interface View {
  readonly level: Level
  /** True if positions are placed one below the other. */
  readonly vertical: boolean
  /** True for the root of every tree after the first; `treeSize` is the number of positions of its tree's last level. */
  readonly root: boolean
  readonly treeSize: number
}

/** Width and height by position; a number if equal for all positions. */
interface Sizes {
  readonly width: Int32Array | number
  readonly height: Int32Array | number
}

/** A region at the upper left corner of a layout. */
export interface Region {
  readonly width: number
  readonly height: number
}

export interface Layout {
  readonly width: number
  readonly height: number
  /** Visits the elements that begin in a region, with address and position. O(elements). */
  readonly elements: (region: Region, visit: (address: number, x: number, y: number) => void) => void
  /**
   * Visits the boxes of inner levels' positions that begin in a region and have several rows and columns. Levels with more
   * than `most` positions are left out.
   */
  readonly boxes: (
    region: Region,
    maxAcross: number,
    visit: (x: number, y: number, width: number, height: number) => void,
  ) => void
}

/** Computes the layout. Levels that determine coordinates other than the last one are vertical. */
export function layoutOf({ part, storage }: StoredPart): Layout {
  const { inverse } = part.instance
  const vertical = (axis: string): boolean =>
    inverse.slice(0, -1).some((e) => freeVars(e).has(axis)) &&
    !formatOf(storage.levels.get(axis)!.axis).inline
  const views = viewsOf(storage, vertical)
  const sizes: Sizes[] = []
  for (let d = views.length - 1; d >= 0; d--)
    sizes[d] =
      d === views.length - 1
        ? { width: 1, height: 1 }
        : sizesAbove(views[d + 1]!, sizes[d + 1]!, positionsOf(views[d]!))
  const [size] = views.length > 0 ? [segmentSize(views[0]!, sizes[0]!, 0)] : [{ width: 0, height: 0 }]
  return {
    ...size!,
    elements: (region, visit) => {
      if (views.length > 0) walk(views, sizes, region, visit)
    },
    boxes: (region, maxAcross, visit) => {
      for (let d = 0; d < views.length - 1; d++) {
        const n = views
          .slice(0, d + 1)
          .reduce((m, v, k) => (k === d || views[k + 1]!.root ? m * positionsOf(v) : m), 1)
        if (n > 0 && n <= maxAcross)
          walk(views.slice(0, d + 1), sizes, region, (_, x, y, p) => {
            const w = valueAt(sizes[d]!.width, p)
            const h = valueAt(sizes[d]!.height, p)
            if (w > 1 && h > 1) visit(x, y, w, h)
          })
      }
    },
  }
}

function viewsOf(storage: Storage, vertical: (axis: string) => boolean): View[] {
  return storage.trees.flatMap((tree, t) =>
    tree.map((level, d): View => {
      const treeSize = tree.at(-1)!.positions
      return { level, vertical: vertical(level.axis.name), root: t > 0 && d === 0, treeSize }
    }),
  )
}

const positionsOf = (v: View): number => v.level.positions
const valueAt = (x: Int32Array | number, p: number): number => (typeof x === 'number' ? x : x[p]!)

/** Size of the segment of a position, whose own positions have these sizes. */
function segmentSize({ level, vertical }: View, { width, height }: Sizes, p: number) {
  const lo = firstPosition(level, p)
  const hi = firstPosition(level, p + 1)
  const along = vertical ? height : width
  const across = vertical ? width : height
  let sum = 0
  let maxAcross = 0
  if (typeof along === 'number' && typeof across === 'number') {
    sum = (hi - lo) * along
    maxAcross = hi > lo ? across : 0
  } else
    for (let q = lo; q < hi; q++) {
      sum += valueAt(along, q)
      maxAcross = Math.max(maxAcross, valueAt(across, q))
    }
  return vertical ? { width: maxAcross, height: sum } : { width: sum, height: maxAcross }
}

function sizesAbove(view: View, sizes: Sizes, positions: number): Sizes {
  const isUniform =
    view.root || (!view.level.indptr && typeof sizes.width === 'number' && typeof sizes.height === 'number')
  if (isUniform) return segmentSize(view, sizes, 0)
  const width = new Int32Array(positions)
  const height = new Int32Array(positions)
  for (let p = 0; p < positions; p++) {
    const size = segmentSize(view, sizes, p)
    width[p] = size.width
    height[p] = size.height
  }
  return { width, height }
}

function walk(
  views: readonly View[],
  sizes: readonly Sizes[],
  region: Region,
  visit: (address: number, x: number, y: number, position: number) => void,
): void {
  const last = views.length - 1
  const visitLevel = (d: number, parent: number, base: number, x: number, y: number): void => {
    const { level, vertical, treeSize } = views[d]!
    const { width, height } = sizes[d]!
    const hi = firstPosition(level, parent + 1)
    const isTreeEnd = d === last || views[d + 1]!.root
    for (let q = firstPosition(level, parent); q < hi && x < region.width && y < region.height; q++) {
      if (d === last) visit(base * treeSize + q, x, y, q)
      else if (isTreeEnd) visitLevel(d + 1, 0, base * treeSize + q, x, y)
      else visitLevel(d + 1, q, base, x, y)
      if (vertical) y += valueAt(height, q)
      else x += valueAt(width, q)
    }
  }
  visitLevel(0, 0, 0, 0, 0)
}

// The legend of a picture: colour, format, nonzeros and padding of each part.

/** Pixels of a line. */
export const LINE = 18

export interface LegendEntry {
  readonly label: string
  readonly format: string
  readonly stored: number
  readonly slots: number
}

const partName = ({ label, format }: LegendEntry): string =>
  label === '' || label === format ? format : `${label}: ${format}`

/** The label of a part with its numbers of nonzeros and padding. */
export function legendLine(e: LegendEntry): string {
  const padding = e.slots > e.stored ? `, ${percent((e.slots - e.stored) / e.slots)} padding` : ''
  return `${partName(e)}, ${count(e.stored)} nonzeros${padding}`
}

/** Draws a legend with a line for each part. */
export function drawLegend(
  entries: readonly LegendEntry[],
  colors: readonly string[],
  x: number,
  y: number,
  width: number,
  columns: number,
): string {
  const lines = Math.ceil(entries.length / columns)
  const availableWidth = width / columns
  return entries
    .map((e, k) => {
      const left = x + Math.floor(k / lines) * availableWidth
      const base = y + (k % lines) * LINE + 11
      const line = legendLine(e)
      const square = element('rect', { x: left, y: base - 10, width: 11, height: 11, fill: colors[k]! })
      const label = columns === 1 ? line : `${partName(e)}, ${count(e.stored)}`
      const words = text(left + 18, base, fitText(label, availableWidth - 26, 12))
      return element('g', {}, element('title', {}, escapeXml(line)) + square + words)
    })
    .join('\n')
}
