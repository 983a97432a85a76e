/** Block boxes of a stored part, and the cuts of its tensor between parts, derived from axes, index maps and conditions. */

import { allocate, gather } from '../../columns/allocate.ts'
import { Frame } from '../../columns/column-engine.ts'
import type { Level } from '../../columns/stored-level.ts'
import { hasIndices, isRagged, parentOf, storesGaps } from '../../ir/coordinates/axis.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import type { Instance } from '../../ir/formats/format.ts'
import type { PartTree } from '../../ir/formats/part-tree.ts'
import type { TypedArray } from '../../ir/values/arrays.ts'
import { HOST } from '../../storage/engines/host/engine.ts'
import { expandTree, toCoords } from '../../storage/entries/stored-coords.ts'
import { originalCoords, type StoredPart, type StoredParts } from '../../storage/entries/stored-parts.ts'
import type { FormatOperands } from '../../storage/format-operands.ts'
import { withSegments } from '../../storage/format-operands.ts'
import type { Storage } from '../../storage/storage.ts'

/** Blocks as half-open boxes over two dimensions of the tensor; boxes may extend beyond the tensor. */
export interface Boxes {
  readonly top: Int32Array
  readonly left: Int32Array
  readonly bottom: Int32Array
  readonly right: Int32Array
}

/** A part projected on two dimensions of the tensor. */
export interface MatrixPart {
  /** Rows and columns of its entries. */
  readonly entries: readonly [Int32Array, Int32Array]
  /** Stored boxes, or coordinates of all stored slots including padding; `null` if only entries are stored. */
  readonly storedCells: Boxes | readonly [Int32Array, Int32Array] | null
}

/**
 * The blocks of a part: for each position of the last level with an index array, the elements at inner levels and at other trees,
 * if these fill a box of several elements. `null` if there are none, or more than `maxPositions`.
 *
 * A box is computed from its corners by the inverse map. Its area must equal the number of elements, which excludes elements
 * that are only spread over a box, such as diagonals.
 */
export function blocksOf(
  p: StoredPart,
  stored: StoredParts,
  dims: readonly [number, number],
  maxPositions: number,
): Boxes | null {
  const { storage } = p
  const anchor = anchorOf(storage)
  if (!anchor) return null
  const { tree, depth } = anchor
  const above = tree.slice(0, depth + 1)
  if (above[depth]!.positions > maxPositions) return null
  const { positions, coords } = expandTree(above)
  const outerCoords = new Map(above.map((l, d) => [l.axis.name, coords[d]!]))
  const innerLevels = [...tree.slice(depth + 1), ...storage.trees.filter((t) => t !== tree).flat()]
  const count = positions.length
  const last = lastCoordinates(innerLevels, above[depth]!.axis.name, positions)
  if (!last || count === 0) return null
  const elements = new Float64Array(count).fill(1)
  for (const c of last.values()) for (let b = 0; b < count; b++) elements[b]! *= c[b]! + 1
  const zeros = new Int32Array(count)
  const box: Boxes = {
    top: allocate(count, 'blocks').fill(2 ** 31 - 1),
    left: allocate(count, 'blocks').fill(2 ** 31 - 1),
    bottom: allocate(count, 'blocks').fill(-(2 ** 31)),
    right: allocate(count, 'blocks').fill(-(2 ** 31)),
  }
  const names = innerLevels.map((l) => l.axis.name)
  for (let corner = 0; corner < 2 ** names.length; corner++) {
    const innerCoords = new Map(names.map((n, k) => [n, (corner >> k) & 1 ? last.get(n)! : zeros]))
    const cornerCoords = originalCoords(
      p,
      stored,
      storage.axes.map((a) => outerCoords.get(a.name) ?? innerCoords.get(a.name)!),
    )
    extendRange(box.top, box.bottom, cornerCoords[dims[0]]!)
    extendRange(box.left, box.right, cornerCoords[dims[1]]!)
  }
  for (let b = 0; b < count; b++) {
    const area = (++box.bottom[b]! - box.top[b]!) * (++box.right[b]! - box.left[b]!)
    if (area !== elements[b]) return null
  }
  return elements.some((n) => n > 1) ? box : null
}

function extendRange(low: Int32Array, high: Int32Array, values: Int32Array): void {
  for (let b = 0; b < values.length; b++) {
    if (values[b]! < low[b]!) low[b] = values[b]!
    if (values[b]! > high[b]!) high[b] = values[b]!
  }
}

/** The last level with an index array, if exactly one tree has index arrays. */
function anchorOf(storage: Storage): { readonly tree: readonly Level[]; readonly depth: number } | null {
  const candidates = storage.trees.flatMap((tree) => {
    const depth = tree.findLastIndex((l) => hasIndices(l.axis))
    return depth < 0 ? [] : [{ tree, depth }]
  })
  return candidates.length === 1 && candidates[0]!.depth >= 0 ? candidates[0]! : null
}

/** Last coordinate on each inner level, by anchor position; `null` if segments are empty or have unequal lengths. */
function lastCoordinates(
  innerLevels: readonly Level[],
  anchor: string,
  positions: Int32Array,
): ReadonlyMap<string, Int32Array> | null {
  if (innerLevels.length === 0 || innerLevels.length > 4) return null
  const n = positions.length
  const out = new Map<string, Int32Array>()
  // Range of positions of a level under each anchor position.
  const ranges = new Map<string, { readonly from: Int32Array; readonly to: Int32Array }>([
    [anchor, { from: positions, to: positions.map((p) => p + 1) }],
  ])
  for (const level of innerLevels) {
    const { axis, indptr, extent } = level
    const parent = parentOf(axis)
    const above = parent === null ? undefined : ranges.get(parent)
    const last = allocate(n, 'blocks')
    const from = allocate(n, 'blocks')
    const to = allocate(n, 'blocks')
    // Runs begin at any coordinate.
    if (storesGaps(axis) && !isRagged(axis)) return null
    const ragged = isRagged(axis) ? indptr : null
    const start = (p: number): number => (indptr ? indptr[p]! : p * extent)
    for (let b = 0; b < n; b++) {
      const lo = above ? above.from[b]! : 0
      const hi = above ? above.to[b]! : 1
      const length = ragged ? ragged[lo + 1]! - ragged[lo]! : extent
      if (length === 0) return null
      if (ragged) for (let p = lo + 1; p < hi; p++) if (ragged[p + 1]! - ragged[p]! !== length) return null
      last[b] = length - 1
      from[b] = start(lo)
      to[b] = start(hi)
    }
    out.set(axis.name, last)
    ranges.set(axis.name, { from, to })
  }
  return out
}

/**
 * Boundaries along one dimension between the ranges of different parts: the first coordinate of each range except the first.
 */
export interface Cut {
  readonly dim: number
  readonly boundaries: readonly number[]
}

/** Cuts that depend on a single coordinate, and not on stored data. */
export function cutsOf(
  instance: Instance,
  shape: readonly number[],
  operands: FormatOperands,
): readonly Cut[] {
  const out: Cut[] = []
  const { sizes } = withSegments(operands)
  const names = instance.over.map((a) => a.name)
  const visit = (tree: PartTree): void => {
    if (tree.kind === 'leaf') return
    if (tree.kind === 'cases') {
      for (const c of tree.cases) visit(c.child)
      return
    }
    const dim = onlyDimension(tree.index, names)
    if (tree.queries.length === 0 && dim >= 0) {
      const coordinates = Int32Array.from({ length: shape[dim]! }, (_, x) => x)
      const frame = new Frame<TypedArray>(HOST, coordinates.length, sizes)
      frame.set(names[dim]!, coordinates, false)
      HOST.compute(frame, 'number', tree.index)
      const number = frame.column('number')!
      const boundaries: number[] = []
      for (let x = 1; x < coordinates.length; x++) if (number[x] !== number[x - 1]) boundaries.push(x)
      if (boundaries.length > 0) out.push({ dim, boundaries })
    }
    for (const child of tree.children) visit(child)
  }
  visit(instance.tree)
  return out
}

function onlyDimension(e: Expr, names: readonly string[]): number {
  const used = [...freeVars(e)].flatMap((v) => (names.includes(v) ? [names.indexOf(v)] : []))
  return used.length === 1 ? used[0]! : -1
}

/** Coordinates of all stored elements inside the tensor; `null` if there are more than `maxElements`. */
export function elementsOf(
  p: StoredPart,
  stored: StoredParts,
  maxElements: number,
): readonly Int32Array[] | null {
  if (p.storage.size > maxElements) return null
  const elements = toCoords(p.storage, p.values, stored.dtype)
  const coords = originalCoords(p, stored, elements.coords)
  const n = coords[0]!.length
  const inTensor = allocate(n, 'elements')
  let k = 0
  for (let e = 0; e < n; e++)
    if (coords.every((c, d) => c[e]! >= 0 && c[e]! < stored.shape[d]!)) inTensor[k++] = e
  return coords.map((c) => gather(c, inTensor.subarray(0, k)))
}
