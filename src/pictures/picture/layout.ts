/**
 * Layout of the elements of a part in the plane: each level puts the segments below its positions next to or on top of each
 * other. Rows of equal width form a rectangle, slices form lines of unequal boxes, blocks form small boxes.
 */
import { hasMask } from '../../ir/axis.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { Level, Storage } from '../../storage/storage.ts'
import type { StoredPart } from '../../storage/stored-parts.ts'

interface View {
  readonly level: Level
  /** Positions one below the other. */
  readonly vertical: boolean
  /** True for the root of every tree after the first; `treeSize` is the number of positions of its tree's last level. */
  readonly root: boolean
  readonly treeSize: number
}

/** Width and height by position, or of all positions. */
interface Sizes {
  readonly width: Int32Array | number
  readonly height: Int32Array | number
}

/** The upper left corner of a layout. */
export interface Region {
  readonly width: number
  readonly height: number
}

export interface Layout {
  readonly width: number
  readonly height: number
  /** Elements that begin in a region, however the format orders them: address, then the place. O(elements). */
  readonly elements: (region: Region, visit: (address: number, x: number, y: number) => void) => void
  /**
   * Visits the boxes of inner levels' positions that begin in a region and have several rows and columns. Levels with more
   * than `most` positions are left out.
   */
  readonly boxes: (
    region: Region,
    most: number,
    visit: (x: number, y: number, width: number, height: number) => void,
  ) => void
}

/** Levels of which coordinates other than the last follow are vertical. */
export function layoutOf({ part, storage }: StoredPart): Layout {
  const { inverse } = part.instance
  const vertical = (axis: string): boolean =>
    inverse.slice(0, -1).some((e) => freeVars(e).has(axis)) && !hasMask(storage.levels.get(axis)!.axis)
  const views = viewsOf(storage, vertical)
  const sizes: Sizes[] = []
  for (let d = views.length - 1; d >= 0; d--)
    sizes[d] =
      d === views.length - 1
        ? { width: 1, height: 1 }
        : sizesAbove(views[d + 1]!, sizes[d + 1]!, positionsOf(views[d]!))
  const [whole] = views.length > 0 ? [segmentSize(views[0]!, sizes[0]!, 0)] : [{ width: 0, height: 0 }]
  return {
    ...whole!,
    elements: (region, visit) => {
      if (views.length > 0) walk(views, sizes, region, visit)
    },
    boxes: (region, most, visit) => {
      for (let d = 0; d < views.length - 1; d++) {
        const n = views
          .slice(0, d + 1)
          .reduce((m, v, k) => (k === d || views[k + 1]!.root ? m * positionsOf(v) : m), 1)
        if (n > 0 && n <= most)
          walk(views.slice(0, d + 1), sizes, region, (_, x, y, p) => {
            const w = at(sizes[d]!.width, p)
            const h = at(sizes[d]!.height, p)
            if (w > 1 && h > 1) visit(x, y, w, h)
          })
      }
    },
  }
}

function viewsOf(storage: Storage, vertical: (axis: string) => boolean): View[] {
  return storage.trees.flatMap((tree, t) =>
    tree.map((name, d): View => {
      const level = storage.levels.get(name)!
      const treeSize = storage.levels.get(tree.at(-1)!)!.positions
      return { level, vertical: vertical(name), root: t > 0 && d === 0, treeSize }
    }),
  )
}

const positionsOf = (v: View): number => v.level.positions
const at = (x: Int32Array | number, p: number): number => (typeof x === 'number' ? x : x[p]!)

const start = ({ indptr, width, extent }: Level, p: number): number =>
  indptr ? indptr[p]! : p * (width ?? extent)

/** Size of the segment under a position, its own positions having `sizes`. */
function segmentSize({ level, vertical }: View, { width, height }: Sizes, p: number) {
  const lo = start(level, p)
  const hi = start(level, p + 1)
  const along = vertical ? height : width
  const across = vertical ? width : height
  let sum = 0
  let most = 0
  if (typeof along === 'number' && typeof across === 'number') {
    sum = (hi - lo) * along
    most = hi > lo ? across : 0
  } else
    for (let q = lo; q < hi; q++) {
      sum += at(along, q)
      most = Math.max(most, at(across, q))
    }
  return vertical ? { width: most, height: sum } : { width: sum, height: most }
}

/** Sizes of the positions above a level. */
function sizesAbove(view: View, sizes: Sizes, positions: number): Sizes {
  const even =
    view.root || (!view.level.indptr && typeof sizes.width === 'number' && typeof sizes.height === 'number')
  if (even) return segmentSize(view, sizes, 0)
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
  const down = (d: number, parent: number, base: number, x: number, y: number): void => {
    const { level, vertical, treeSize } = views[d]!
    const { width, height } = sizes[d]!
    const hi = start(level, parent + 1)
    const own = d === last || views[d + 1]!.root
    for (let q = start(level, parent); q < hi && x < region.width && y < region.height; q++) {
      if (d === last) visit(base * treeSize + q, x, y, q)
      else if (own) down(d + 1, 0, base * treeSize + q, x, y)
      else down(d + 1, q, base, x, y)
      if (vertical) y += at(height, q)
      else x += at(width, q)
    }
  }
  down(0, 0, 0, 0, 0)
}
