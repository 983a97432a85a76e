/**
 * Assembly of axis trees: from coordinates to the arrays of levels (Chou, Kjolstad and Amarasinghe, PLDI 2020). A scan
 * numbers runs of equal coordinates, segments end where the parent changes, dense levels are computed arithmetically.
 */

import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../../ast/work.ts'
import { MAX_POSITIONS } from '../../columns/allocate.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import type { SortKey, Starts } from '../../columns/engine-operands.ts'
import type { Level } from '../../columns/stored-level.ts'
import { arraysOfLevel } from '../../columns/stored-level.ts'
import type { StoredAxis } from '../../ir/coordinates/axis.ts'
import { hasIndices, hasWidth, isDense, isNonunique, isSparse, paddingOf } from '../../ir/coordinates/axis.ts'
import { add, type Expr, int, mul, variable } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { checkFields } from '../../ir/values/packed-fields.ts'
import { formatOf } from '../../levels/index.ts'
import type { AssembledLevel, Dimension, ParentPosition } from '../../levels/types.ts'
import { sizeIn } from '../format-operands.ts'
import { treesOf } from '../storage.ts'
import { nonuniqueStarts } from './nonunique-positions.ts'
import { packChain } from './packed-indices.ts'

export interface AssembledTrees<C> {
  readonly levels: ReadonlyMap<string, Level<C>>
  /** Position of an entry in a buffer over all axes. */
  readonly position: Expr
  /** Elements of such a buffer. */
  readonly size: number
}

/** The first levels of a tree, all of them unique, and the position of entries on the last of them. */
export interface TreePrefix<C> {
  readonly levels: readonly Level<C>[]
  readonly position: Expr
}

export interface BuildOptions<C> {
  /** Entries with equal coordinates have separate positions under nonunique axes. */
  readonly separateDuplicates?: boolean
  /** Prefixes of trees that exist already, by their last axis. */
  readonly prefixes?: ReadonlyMap<string, TreePrefix<C>> | undefined
  /** By axis: the rank of each entry's coordinate in its segment, if known. */
  readonly ranks?: ReadonlyMap<string, Expr> | undefined
}

/**
 * Assembles all trees. An `open` width becomes the longest segment of all axes that share it, and is recorded in the frame.
 * @throws SptError as `assemblePart`
 */
export function* assembleTrees<C extends Column>(
  frame: Frame<C>,
  axes: readonly StoredAxis[],
  coordinates: ReadonlyMap<string, Expr>,
  open: readonly { readonly name: string }[],
  options: BuildOptions<C> = {},
): Coroutine<AssembledTrees<C>> {
  const dimensions = (): Map<string, Dimension> =>
    new Map(axes.map((a) => [a.name, dimensionOf(frame, a, coordinates.get(a.name), open)]))
  const built = yield* assembleTreesOfDimensions(frame, axes, dimensions(), options)
  if (!measureWidths(built.levels.values(), frame.sizes)) return built
  // A width that several axes share is that of the widest level.
  const prefixLevels = [...(options.prefixes?.values() ?? [])].flatMap((b) => b.levels)
  for (const l of built.levels.values())
    if (!prefixLevels.includes(l)) frame.engine.release(...arraysOfLevel(l).map(([, column]) => column))
  for (const a of axes) frame.drop(`@rank ${a.name}`)
  return yield* assembleTreesOfDimensions(frame, axes, dimensions(), options)
}

/** Sets measured widths to those of the widest level; true if another level is narrower and must be rebuilt. */
export function measureWidths(levels: Iterable<Level<unknown>>, sizes: Map<string, number>): boolean {
  const widths = new Map<string, number>()
  let uneven = false
  for (const { axis, width } of levels) {
    if (!hasWidth(axis) || axis.width.kind !== 'var' || width === null) continue
    const { name } = axis.width
    if (sizes.has(name)) continue
    const widest = widths.get(name) ?? width
    uneven ||= widest !== width
    widths.set(name, Math.max(width, widest))
  }
  for (const [name, width] of widths) sizes.set(name, width)
  return uneven
}

export function* assembleTreesOfDimensions<C extends Column>(
  frame: Frame<C>,
  axes: readonly StoredAxis[],
  dimensions: ReadonlyMap<string, Dimension>,
  options: BuildOptions<C>,
): Coroutine<AssembledTrees<C>> {
  const levels = new Map<string, Level<C>>()
  const trees = treesOf(axes)
  let position: Expr | null = null
  let size = 1
  for (const tree of trees) {
    const chain = tree.map((a) => dimensions.get(a.name)!)
    const { prefixes, ranks } = options
    const separateDuplicates = options.separateDuplicates === true && trees.length === 1
    const built = yield* buildTree(frame, chain, { prefixes, ranks, separateDuplicates })
    for (const level of yield* packChain(frame.engine, built.levels)) levels.set(level.axis.name, level)
    size *= built.positions
    if (size > MAX_POSITIONS)
      frame.engine.rejectCount(
        size,
        `elements of a buffer over ${trees.map((t) => t.at(-1)!.name).join(' × ')}`,
      )
    const positions = frame.bindSize(built.positions, `@positions ${tree[0]!.name}`)
    position = position ? add(mul(position, positions), built.position) : built.position
  }
  return { levels, position: position ?? int(0), size }
}

function dimensionOf<C extends Column>(
  frame: Frame<C>,
  axis: StoredAxis,
  coordinate: Expr | undefined,
  open: readonly { readonly name: string }[],
): Dimension {
  invariant(coordinate, `no coordinate on ${axis.name}`)
  const value = (sizeKind: string, e: Expr): number =>
    sizeIn(e, frame.sizes, `the ${sizeKind} of axis ${axis.name}`)
  const isOpen = (e: Expr): boolean =>
    e.kind === 'var' && !frame.isKnown(e) && open.some((m) => m.name === e.name)
  const extent = Math.max(0, value('extent', axis.extent))
  checkFields(axis, extent)
  const paddingExpr = paddingOf(axis)
  const padding = paddingExpr && value('padding', paddingExpr)
  const width = hasWidth(axis) && !isOpen(axis.width) ? value('width', axis.width) : null
  return { axis, coordinate, extent, padding: padding ?? extent, width }
}

function* buildTree<C extends Column>(
  frame: Frame<C>,
  tree: readonly Dimension[],
  { separateDuplicates = false, prefixes, ranks: knownRanks = new Map() }: BuildOptions<C>,
): Coroutine<{ readonly levels: readonly Level<C>[]; readonly position: Expr; readonly positions: number }> {
  const { engine } = frame
  const repeating = tree.some(({ axis }) => isNonunique(axis))
  const ranks: ReadonlyMap<string, Expr> = repeating ? new Map() : knownRanks
  const isOrdered = ({ axis }: Dimension): boolean => {
    const { order } = formatOf(axis)
    return order === 'entries' ? !ranks.has(axis.name) : order === 'unless ranked' && !engine.rankInSegments
  }
  // Below the last level that needs an order, positions are computed arithmetically.
  const inAnyOrder = hasSingleUnitWidth(tree)
  const last = inAnyOrder ? -1 : tree.findLastIndex(isOrdered)
  const depth = repeating ? tree.length : last + 1
  let ordered: Frame<C> | null = null
  let starts: readonly (Starts | null)[] = []
  const prefixEnd = tree.findLastIndex(({ axis }) => prefixes?.has(axis.name))
  const prefix = prefixes?.get(tree[prefixEnd]?.axis.name ?? '')
  const levels: Level<C>[] = [...(prefix?.levels ?? [])]
  let parent: ParentPosition = {
    position: prefix?.position ?? null,
    positions: levels.at(-1)?.positions ?? 1,
  }
  for (const [k, d] of tree.entries()) {
    if (k <= prefixEnd) continue
    const { axis } = d
    let assembled: AssembledLevel<C> | null = null
    if (parent.position && !isDense(axis))
      parent = {
        position: engine.materialize(ordered ?? frame, `@at ${tree[k - 1]!.axis.name}`, parent.position),
        positions: parent.positions,
      }
    if (!ordered && k <= last && (!engine.rankInSegments || isOrdered(d))) {
      const parentKeys = parent.position ? [{ expr: parent.position, extent: parent.positions }] : []
      const keys = [
        ...parentKeys,
        ...tree.slice(k, depth).map((x) => ({ expr: x.coordinate, extent: x.extent })),
      ]
      assembled = yield* assembleByRanking(frame, d, parent, keys)
      if (!assembled) {
        ordered = yield* engine.order(frame, keys)
        starts = [
          ...tree.slice(0, k).map(() => null),
          ...nonuniqueStarts(ordered, tree.slice(k), parent.position, separateDuplicates),
        ]
      }
    } else if (ordered && parent.position && k === last + 1 && depth <= k) {
      parent = {
        position: engine.restore(frame, ordered, `@at ${tree[k - 1]!.axis.name}`, parent.position),
        positions: parent.positions,
      }
      ordered = null
    }
    const rank = ordered ? undefined : ranks.get(axis.name)
    const format = formatOf(axis)
    if (rank && format.assembleRanked)
      assembled ??= yield* format.assembleRanked({ frame, d, parent }, rank, null)
    assembled ??= yield* format.assemble({
      frame: ordered ?? frame,
      d,
      parent,
      starts: starts[k] ?? null,
      inAnyOrder,
    })
    levels.push(assembled.level)
    // Drop the columns that only the parent's position used.
    const laterKeys = starts.slice(k + 1).flatMap((s) => s?.keys ?? [])
    const used = new Set([assembled.position, ...laterKeys].flatMap((e) => [...freeVars(e)]))
    for (const name of [...(parent.position ? freeVars(parent.position) : []), `@rank ${axis.name}`])
      if (/^@(at|rank) /.test(name) && !used.has(name)) (ordered ?? frame).drop(name)
    parent = { position: assembled.position, positions: assembled.level.positions }
  }
  invariant(parent.position, 'a tree has an axis')
  for (const s of starts) if (s?.cut?.kind === 'var') (ordered ?? frame).drop(s.cut.name)
  const position = ordered
    ? engine.restore(frame, ordered, `@at ${tree.at(-1)!.axis.name}`, parent.position)
    : parent.position
  return { levels, position, positions: parent.positions }
}

/** True if the only level that stores single coordinates has width 1: positions need no order of the entries. */
function hasSingleUnitWidth(tree: readonly Dimension[]): boolean {
  const [first, second] = tree.filter(({ axis }) => isSparse(axis))
  return first !== undefined && !second && hasWidth(first.axis) && first.axis.unique && first.width === 1
}

/** Assembles a level from entries in any order, by ranks in their segments; `null` if sorting is cheaper. */
function* assembleByRanking<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  parent: ParentPosition,
  keys: readonly SortKey[],
): Coroutine<AssembledLevel<C> | null> {
  const { axis, coordinate, extent } = d
  const { engine } = frame
  const { assembleRanked } = formatOf(axis)
  if (!engine.rankInSegments || !assembleRanked || !hasIndices(axis) || !axis.unique) return null
  const name = `@rank ${axis.name}`
  const segments = { parent: parent.position, parents: parent.positions, coordinate, extent }
  const lengths = engine.rankInSegments(frame, name, segments, keys)
  return lengths && (yield* assembleRanked({ frame, d, parent }, variable(name), lengths))
}
