/** Construction of a buffer's storage from coordinates, on the host. */
import { failWith, invariant } from '../ast/diagnostics/diagnostic.ts'
import { runSync } from '../ast/work.ts'
import { withScratchPool } from '../columns/allocate.ts'
import { Frame } from '../columns/column-engine.ts'
import type { Level, PlacedEntries } from '../columns/stored-level.ts'
import type { StoredAxis } from '../ir/coordinates/axis.ts'
import {
  compressedAxis,
  denseAxis,
  hasWidth,
  isDense,
  isNonunique,
  paddingOf,
} from '../ir/coordinates/axis.ts'
import { type Expr, int, variable } from '../ir/expressions/expr.ts'
import { freeVars } from '../ir/expressions/expr-tree.ts'
import type { Instance } from '../ir/formats/format.ts'
import type { TypedArray } from '../ir/values/arrays.ts'
import { evaluate } from '../ir/values/evaluate.ts'
import { checkFields } from '../ir/values/packed-fields.ts'
import type { Dimension } from '../levels/types.ts'
import { assembleTreesOfDimensions, type TreePrefix } from './assembly/tree-assembly.ts'
import type { SetTrees } from './convert.ts'
import { HOST } from './engines/host/engine.ts'
import { placedEntries } from './engines/host/scatter.ts'
import { locateInLevels } from './entries/locate.ts'
import { type FormatOperands, sizeIn } from './format-operands.ts'
import { checkCoords, extentOf, makeStorage, type Storage, treesOf } from './storage.ts'

/** Sizes by axis. */
export interface AxisSizes {
  readonly extents: ReadonlyMap<string, number>
  /** Given widths of levels of fixed width; others are measured. */
  readonly widths?: ReadonlyMap<string, number> | undefined
  /** Padding coordinates of the axes that declare one. */
  readonly paddings?: ReadonlyMap<string, number> | undefined
  /** Capacities in positions of axes whose positions are contiguous at run time. */
  readonly capacities?: ReadonlyMap<string, number> | undefined
}

export interface BuildInput extends AxisSizes {
  /** Axes of one buffer in its order; children after their parents. */
  readonly axes: readonly StoredAxis[]
  /** One array per axis, in the order of `axes`: entry e is at `(coords[0][e], coords[1][e], …)`. */
  readonly coords: readonly Int32Array[]
  /** Levels by axis; unique ones are kept, and parents come with their children. */
  readonly existing?: ReadonlyMap<string, Level> | undefined
  /** `share`: equal coordinates share a position under `nonunique` axes too. By default each entry has its own. */
  readonly duplicates?: 'share' | undefined
  /** No two entries have equal coordinates (known in advance). */
  readonly distinct?: boolean | undefined
  /** Coordinates are within the extents (known in advance). */
  readonly inRange?: boolean | undefined
}

export interface BuiltStorage extends Storage {
  readonly entries: PlacedEntries
}

/**
 * Builds the structure that stores the given coordinates. Entries come in any order; equal coordinates share a
 * position, except under a `nonunique` axis of a buffer with one tree, where each entry has its own unless
 * `duplicates` says otherwise. Each tree stores the union of what the entries need of it. O(entries × axes + positions) time.
 *
 * @throws SptError `bind/coordinates`, `bind/coordinate-range`, `bind/extent`, `bind/width`,
 * `bind/axis-order`, `bind/branching`, `bind/absent-coordinate`, `bind/too-large`, `bind/out-of-memory`
 */
export function buildStorage({ axes, extents, coords, ...input }: BuildInput): BuiltStorage {
  // Rejects axes out of order before coordinates are read.
  treesOf(axes)
  if (!input.inRange) checkCoords(axes, extents, coords)
  return withScratchPool(() => {
    const frame = new Frame<TypedArray>(HOST, coords[0]?.length ?? 0, new Map())
    for (const [k, a] of axes.entries()) frame.set(a.name, coords[k]!, false)
    const dimensions = new Map(axes.map((a) => [a.name, dimensionOf(a, extentOf(extents, a.name), input)]))
    const prefixes = input.existing?.size ? existingPrefixes(frame, axes, input.existing) : new Map()
    const options = { separateDuplicates: input.duplicates !== 'share', prefixes }
    const { levels, position } = runSync(assembleTreesOfDimensions(frame, axes, dimensions, options))
    const entries = placedEntries(frame, position, input.distinct ?? false)
    frame.release()
    return { entries, ...makeStorage(axes, levels as ReadonlyMap<string, Level>) }
  })
}

/** Prefixes of trees whose levels exist, with the entries' positions. @throws SptError `bind/absent-coordinate` */
function existingPrefixes(
  frame: Frame<TypedArray>,
  axes: readonly StoredAxis[],
  existing: ReadonlyMap<string, Level>,
): ReadonlyMap<string, TreePrefix<TypedArray>> {
  const prefixes = new Map<string, TreePrefix<TypedArray>>()
  for (const tree of treesOf(axes)) {
    const known = tree.flatMap((a) => (isNonunique(a) ? [] : (existing.get(a.name) ?? [])))
    // Positions on dense levels are computed.
    const levels = known.slice(0, known.findLastIndex((l) => !isDense(l.axis)) + 1)
    const last = levels.at(-1)?.axis.name
    if (last === undefined) continue
    const name = `@above ${last}`
    frame.set(
      name,
      locateInLevels(
        levels,
        levels.map((l) => frame.column(l.axis.name) as Int32Array),
      ),
    )
    prefixes.set(last, { levels, position: variable(name) })
  }
  return prefixes
}

function dimensionOf(
  axis: StoredAxis,
  extent: number,
  { widths, paddings, capacities }: Omit<AxisSizes, 'extents'>,
): Dimension {
  checkFields(axis, extent)
  const padding = paddingOf(axis) ? paddings?.get(axis.name) : extent
  invariant(padding !== undefined, `axis ${axis.name} is padded with what is not known`)
  const width = widths?.get(axis.name) ?? null
  if (width !== null && !Number.isInteger(width))
    failWith('bind/width', `axis ${axis.name} has the width ${width}`, {
      expected: 'an integer',
      hint: 'give another width, or let the width be measured',
    })
  return {
    axis,
    coordinate: variable(axis.name),
    extent,
    padding,
    width,
    capacity: capacities?.get(axis.name),
  }
}

/** The sizes of axes, evaluated. @throws SptError `bind/missing-size` for paddings */
export function sizesOfAxes(
  axes: readonly StoredAxis[],
  { sizes, extents }: Pick<FormatOperands, 'sizes' | 'extents'>,
): AxisSizes {
  const widths = new Map<string, number>()
  const paddings = new Map<string, number>()
  const capacities = new Map<string, number>()
  const add = (to: Map<string, number>, { name }: StoredAxis, e: Expr): void => {
    const value = knownValue(e, sizes)
    if (value !== null) to.set(name, value)
  }
  for (const a of axes) {
    const padding = paddingOf(a)
    if (padding) paddings.set(a.name, sizeIn(padding, sizes, `the padding of axis ${a.name}`))
    if (hasWidth(a)) add(widths, a, a.width)
    if (isDense(a) && a.capacity) add(capacities, a, a.capacity)
  }
  return { extents, widths, paddings, capacities }
}

/** The value of an expression over sizes; `null` if one is not known. */
export function knownValue(e: Expr, sizes: ReadonlyMap<string, number>): number | null {
  for (const v of freeVars(e)) if (!sizes.has(v)) return null
  return evaluate(e, sizes)
}

/** Sets as trees: segments under each coordinate of the first dimension, then level by level, within the tensor. */
export function setTrees(
  given: FormatOperands,
  to: Pick<Instance, 'over' | 'given'>,
  shape: readonly number[],
): SetTrees {
  const out = new Map<string, { readonly indptr: Int32Array; readonly indices: Int32Array }[]>()
  const { over } = to
  for (const { name } of to.given) {
    const coords = given.sets.get(name)
    if (!coords) continue
    const axes = over.map((a, k): StoredAxis => {
      const extent = int(shape[k]!)
      return k === 0 && over.length > 1
        ? denseAxis(a.name, extent)
        : compressedAxis(a.name, over[k - 1]?.name ?? null, extent)
    })
    const inside = (e: number): boolean => coords.every((c, k) => c[e]! >= 0 && c[e]! < shape[k]!)
    const { levels } = buildStorage({
      axes,
      extents: new Map(over.map((a, k) => [a.name, shape[k]!])),
      coords: coords.map((c) => c.filter((_, e) => inside(e))),
    })
    out.set(
      name,
      axes.flatMap((a) => {
        const { indptr, indices } = levels.get(a.name)!
        return indptr && indices ? [{ indptr, indices }] : []
      }),
    )
  }
  return out
}
