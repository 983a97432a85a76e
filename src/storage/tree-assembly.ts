/**
 * Assembly of axis trees: from coordinates to the arrays of levels (Chou, Kjolstad and Amarasinghe, PLDI 2020). A scan
 * numbers runs of equal coordinates, segments end where the parent changes, dense levels are computed arithmetically.
 */
import { fail, invariant } from '../ast/diagnostic.ts'
import { MAX_POSITIONS } from '../columns/allocate.ts'
import { hasIndices, hasMask, hasWidth, isDense, paddingOf, type StoredAxis } from '../ir/axis.ts'
import { add, type Expr, int, mul } from '../ir/expr.ts'
import { freeVars } from '../ir/expr-tree.ts'
import { checkFields } from '../ir/packed-fields.ts'
import type { Column, Frame } from './column-engine.ts'
import type { Coroutine } from './coroutines.ts'
import type { Starts } from './engine-operands.ts'
import { assembleLevel, isDirect, levelOfRanks, rankedLevel } from './level-assembly.ts'
import type { Dimension, Made, Place } from './levels.ts'
import { missingValue } from './missing-size.ts'
import { isRepeating, nonuniqueStarts } from './nonunique-positions.ts'
import { packChain } from './packed-indices.ts'
import { type Level, treesOf } from './storage.ts'

export interface Built<C> {
  readonly levels: ReadonlyMap<string, Level<C>>
  /** Position of an entry in a buffer over all axes. */
  readonly at: Expr
  /** Number of elements of such a buffer. */
  readonly size: number
}

/** The first levels of a tree, none of them nonunique, and the position of entries on the last of them. */
export interface Begun<C> {
  readonly levels: readonly Level<C>[]
  readonly at: Expr
}

export interface BuildOptions<C> {
  /** Entries with equal coordinates have separate positions under nonunique axes. */
  readonly apart?: boolean
  /** Existing levels by axis, in which entries are located; none may be nonunique. */
  readonly known?: ReadonlyMap<string, Level<C>>
  /** Already assembled prefixes of trees, by their last axis. */
  readonly begun?: ReadonlyMap<string, Begun<C>>
  /** By axis: the rank of each entry's coordinate in its segment, if known. */
  readonly ranks?: ReadonlyMap<string, Expr>
}

/**
 * Assembles all trees. Extents, widths and paddings are expressions over the frame's sizes. An `open` width becomes the
 * longest segment of all axes that share it, and is recorded in the frame. @throws SptError as `assemblePart`
 */
export function* assembleTrees<C extends Column>(
  frame: Frame<C>,
  axes: readonly StoredAxis[],
  coordinates: ReadonlyMap<string, Expr>,
  open: readonly { readonly name: string }[],
  options: BuildOptions<C> = {},
): Coroutine<Built<C>> {
  const dimensions = (): Map<string, Dimension> =>
    new Map(axes.map((a) => [a.name, dimensionOf(frame, a, coordinates.get(a.name), open)]))
  const built = yield* assembleTreesOfDimensions(frame, axes, dimensions(), options)
  if (!measureWidths(built.levels.values(), frame.sizes)) return built
  // A width that several axes share is that of the widest level.
  const begun = [...(options.begun?.values() ?? [])].flatMap((b) => b.levels)
  for (const l of built.levels.values())
    if (!begun.includes(l)) frame.engine.release(l.indptr, l.indices, l.mask)
  for (const a of axes) frame.drop(`@rank ${a.name}`)
  return yield* assembleTreesOfDimensions(frame, axes, dimensions(), options)
}

/**
 * Sets measured widths to those of the widest level that uses them. @returns true if another level is narrower, so that
 * levels must be rebuilt
 */
export function measureWidths(levels: Iterable<Level<unknown>>, sizes: Map<string, number>): boolean {
  const widths = new Map<string, number>()
  let uneven = false
  for (const { axis, width } of levels) {
    if (!hasWidth(axis) || axis.width.kind !== 'var' || width === null) continue
    const { name } = axis.width
    if (sizes.has(name)) continue
    const other = widths.get(name) ?? width
    uneven ||= other !== width
    widths.set(name, Math.max(width, other))
  }
  for (const [name, width] of widths) sizes.set(name, width)
  return uneven
}

export function* assembleTreesOfDimensions<C extends Column>(
  frame: Frame<C>,
  axes: readonly StoredAxis[],
  dimensions: ReadonlyMap<string, Dimension>,
  options: BuildOptions<C>,
): Coroutine<Built<C>> {
  const levels = new Map<string, Level<C>>()
  const trees = treesOf(axes)
  let at: Expr | null = null
  let size = 1
  for (const tree of trees) {
    const chain = tree.map((a) => dimensions.get(a.name)!)
    const built = yield* buildTree(frame, chain, {
      ...options,
      apart: options.apart === true && trees.length === 1,
    })
    for (const level of yield* packChain(frame.engine, built.levels)) levels.set(level.axis.name, level)
    size *= built.positions
    if (size > MAX_POSITIONS)
      frame.engine.tooLarge(size, `elements of a buffer over ${trees.map((t) => t.at(-1)!.name).join(' × ')}`)
    const positions = frame.sized(built.positions, `@positions ${tree[0]!.name}`)
    at = at ? add(mul(at, positions), built.at) : built.at
  }
  return { levels, at: at ?? int(0), size }
}

function dimensionOf<C extends Column>(
  frame: Frame<C>,
  axis: StoredAxis,
  coordinate: Expr | undefined,
  open: readonly { readonly name: string }[],
): Dimension {
  invariant(coordinate, `no coordinate on ${axis.name}`)
  const value = (what: string, e: Expr): number | null => {
    if (frame.isKnown(e)) return frame.size(e)
    if (what === 'width' && e.kind === 'var' && open.some((m) => m.name === e.name)) return null
    const missing = [...freeVars(e)].filter((v) => !frame.sizes.has(v))
    return fail(
      missingValue({
        name: missing[0]!,
        of: `(the ${what} of axis ${axis.name} depends on it)`,
      }),
    )
  }
  const extent = Math.max(0, value('extent', axis.extent) ?? 0)
  checkFields(axis, extent)
  const own = paddingOf(axis)
  const padding = own && value('padding', own)
  const width = hasWidth(axis) ? value('width', axis.width) : null
  return { axis, coordinate, extent, padding: padding ?? extent, width }
}

/** Assembles the levels of a tree, parents first. */
function* buildTree<C extends Column>(
  frame: Frame<C>,
  tree: readonly Dimension[],
  { apart = false, known, begun, ranks: given = new Map() }: BuildOptions<C>,
): Coroutine<{ readonly levels: readonly Level<C>[]; readonly at: Expr; readonly positions: number }> {
  const { engine } = frame
  const repeating = tree.some(({ axis }) => isRepeating(axis))
  const ranks: ReadonlyMap<string, Expr> = repeating ? new Map() : given
  const isOrdered = ({ axis }: Dimension): boolean =>
    (hasIndices(axis) && !ranks.has(axis.name)) || (hasMask(axis) && !engine.ranked)
  // Below the last level that needs an order, positions are computed arithmetically.
  const direct = isDirect(tree)
  const last = direct ? -1 : tree.findLastIndex(isOrdered)
  const depth = repeating ? tree.length : last + 1
  let ordered: Frame<C> | null = null
  let starts: readonly (Starts | null)[] = []
  const done = tree.findLastIndex(({ axis }) => begun?.has(axis.name))
  const first = begun?.get(tree[done]?.axis.name ?? '')
  const levels: Level<C>[] = [...(first?.levels ?? [])]
  let place: Place = { at: first?.at ?? null, positions: levels.at(-1)?.positions ?? 1 }
  for (const [k, d] of tree.entries()) {
    if (k <= done) continue
    const { axis } = d
    let made: Made<C> | null = null
    if (place.at && !isDense(axis))
      place = {
        ...place,
        at: engine.materialize(ordered ?? frame, `@at ${tree[k - 1]!.axis.name}`, place.at),
      }
    if (!ordered && k <= last && (!engine.ranked || (isOrdered(d) && !known?.has(axis.name)))) {
      const above = place.at ? [{ expr: place.at, extent: place.positions }] : []
      const keys = [...above, ...tree.slice(k, depth).map((x) => ({ expr: x.coordinate, extent: x.extent }))]
      made = yield* rankedLevel(frame, d, place, keys)
      if (!made) {
        ordered = yield* engine.order(frame, keys)
        starts = [
          ...tree.slice(0, k).map(() => null),
          ...nonuniqueStarts(ordered, tree.slice(k), place.at, apart),
        ]
      }
    } else if (ordered && place.at && k === last + 1 && depth <= k) {
      place = { ...place, at: engine.restore(frame, ordered, `@at ${tree[k - 1]!.axis.name}`, place.at) }
      ordered = null
    }
    const there = known?.get(axis.name)
    if (there && engine.find)
      made = {
        level: there,
        at: engine.find(ordered ?? frame, `@at ${axis.name}`, there, place.at, d.coordinate),
      }
    const rank = ordered ? undefined : ranks.get(axis.name)
    if (rank) made ??= yield* levelOfRanks(frame, d, place, rank)
    made ??= yield* assembleLevel(ordered ?? frame, d, place, starts[k] ?? null, direct)
    levels.push(made.level)
    // Columns that only the parent's position used.
    const later = starts.slice(k + 1).flatMap((s) => s?.keys ?? [])
    const used = new Set([made.at, ...later].flatMap((e) => [...freeVars(e)]))
    for (const name of [...(place.at ? freeVars(place.at) : []), `@rank ${axis.name}`])
      if (/^@(at|rank) /.test(name) && !used.has(name)) (ordered ?? frame).drop(name)
    place = { at: made.at, positions: made.level.positions }
  }
  invariant(place.at, 'a tree has an axis')
  for (const s of starts) if (s?.cut?.kind === 'var') (ordered ?? frame).drop(s.cut.name)
  const at = ordered ? engine.restore(frame, ordered, `@at ${tree.at(-1)!.axis.name}`, place.at) : place.at
  return { levels, at, positions: place.positions }
}
