/** Levels with segments of fixed width: padding follows the elements of a segment. */
import { boundsOf } from '../analysis/integers/ranges.ts'
import { failWith, invariant } from '../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../ast/work.ts'
import type { Column, Frame } from '../columns/column-engine.ts'
import {
  hasHoles,
  hasWidth,
  indicesOf,
  type PaddedAxis,
  paddingOf,
  padsWithLast,
  parentOf,
  repeatsCoordinates,
} from '../ir/coordinates/axis.ts'
import { add, binary, type Expr, eq, int, load, mul, select, variable } from '../ir/expressions/expr.ts'
import { type BoundLevel, checkWords, required } from './bind.ts'
import { checkIndices, coordinateAt, indexedEntry, indicesArray, searchIndices } from './indices.ts'
import { uniformParent, uniformSegment } from './segments.ts'
import type { AssembledLevel, AssemblyInput, Dimension, LevelFormat, ParentPosition } from './types.ts'
import { checkPositions, makeLevel, runStarts } from './types.ts'

export const FIXED_WIDTH: LevelFormat<PaddedAxis> = {
  searchable: true,
  order: 'entries',
  indexArrays(axis, levels) {
    const isAscending =
      !hasHoles(axis) && !repeatsCoordinates(axis) && axis.ordered && axis.width.kind === 'const'
    const ascending = isAscending && axis.width.kind === 'const' ? { ascending: axis.width.value } : {}
    return [indicesArray(axis, levels, ascending)]
  },
  slots: () => null,
  segment: ({ width }, parent, end) => uniformSegment(width, parent, end),
  entry: indexedEntry,
  locate: (axis, lookup) =>
    searchIndices(axis, lookup, (parent, end) => uniformSegment(axis.width, parent, end)),
  assemble: (input) => (input.inAnyOrder ? assembleWidthOne(input) : assembleFixedWidth(input)),
  assembleRanked: ({ frame, d, parent }, rank) => assembleFixedWidthFromRanks(frame, d, parent, rank),
  ancestor: (frame, level, position) => ({
    parent: uniformParent(frame, level, position).parent,
    coordinate: coordinateAt(frame, level, position),
  }),
  bind(axis, input) {
    const { parents, fixed } = input
    const indices = required(axis, 'indices', input.arrays.indices)
    const level = input.bits < 32 ? bindPacked(axis, input, indices) : bindUnpacked(axis, input, indices)
    checkIndices(axis, level, parents, fixed.padding)
    return level
  },
}

/** Assembles a level of fixed width from entries in order. */
function* assembleFixedWidth<C extends Column>({
  frame,
  d,
  parent,
  starts,
}: AssemblyInput<C>): Coroutine<AssembledLevel<C>> {
  invariant(parent.position, `${d.axis.name} has a parent`)
  const name = `@rank ${d.axis.name}`
  // If the parent level starts a new position whenever the width is reached, ranks have been computed already
  // (`nonunique-positions.ts`).
  const rank = variable(name)
  if (d.width !== null && d.width > 0 && frame.names().includes(name))
    return yield* assembleWithWidth(frame, d, parent, rank, d.width)
  frame.engine.ranks(frame, name, runStarts(d, parent, starts), 1)
  return yield* assembleFixedWidthFromRanks(frame, d, parent, rank)
}

/** As `assembleFixedWidth`, from the rank of each entry in its segment. */
function* assembleFixedWidthFromRanks<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  parent: ParentPosition,
  rank: Expr,
): Coroutine<AssembledLevel<C>> {
  const length = add(rank, int(1))
  const bounds = boundsOf(length, (name) => frame.range(name))
  if (d.width && bounds && bounds.hi <= d.width)
    return yield* assembleWithWidth(frame, d, parent, rank, d.width)
  const [, requiredWidth] = yield* frame.engine.bounds(frame, length)
  const width = d.width ?? requiredWidth
  if (width < requiredWidth)
    yield* rejectNarrowWidth(frame, d, parent, eq(length, int(requiredWidth)), `${requiredWidth}`)
  return yield* assembleWithWidth(frame, d, parent, rank, width)
}

function* assembleWithWidth<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  parent: ParentPosition,
  rank: Expr,
  width: number,
): Coroutine<AssembledLevel<C>> {
  const { axis } = d
  // The only possible rank is 0.
  if (width === 1) return yield* writeSegments(frame, d, width, parent.position!, parent.positions)
  // Checked before positions are computed that would exceed the width.
  checkPositions(frame, axis, parent.positions * width)
  const position = add(mul(parent.position!, frame.bindSize(width, `@width ${axis.name}`)), rank)
  return yield* writeSegments(
    frame,
    d,
    width,
    frame.engine.materialize(frame, `@at ${axis.name}`, position),
    parent.positions * width,
  )
}

/** Width 1, for positions with one coordinate each: verified by reading the written coordinates back. */
function* assembleWidthOne<C extends Column>({
  frame,
  d,
  parent,
}: AssemblyInput<C>): Coroutine<AssembledLevel<C>> {
  invariant(parent.position, `${d.axis.name} has a parent`)
  const assembled = yield* writeSegments(frame, d, 1, parent.position, parent.positions)
  const name = `@indices ${d.axis.name}`
  frame.tables.set(name, assembled.level.indices!)
  const clash = binary('ne', load(name, [parent.position]), d.coordinate)
  const [, maxClash] = yield* frame.engine.bounds(frame, select(clash, int(1), int(0)))
  if (maxClash > 0) yield* rejectNarrowWidth(frame, d, parent, clash, '2 or more')
  return assembled
}

function* writeSegments<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  width: number,
  position: Expr,
  size: number,
): Coroutine<AssembledLevel<C>> {
  const { axis, coordinate, extent, padding } = d
  const positions = checkPositions(frame, axis, size)
  if (hasWidth(axis)) checkPadding(axis, padding, extent, positions)
  const indices = frame.engine.filled(positions, padding, indicesOf(axis.name))
  frame.engine.scatter(frame, indices, position, coordinate)
  if (!padsWithLast(axis) || positions === 0)
    return { level: makeLevel(d, positions, { width, indices }), position }
  const { indices: padded, empty } = yield* frame.engine.padWithLast(
    indices,
    width,
    extent,
    indicesOf(axis.name),
  )
  if (empty >= 0) rejectEmptySegment(d, empty)
  return { level: makeLevel(d, positions, { width, indices: padded }), position }
}

/** Reports an empty segment whose padding would repeat its last element. @throws SptError `format/padding` */
function rejectEmptySegment({ axis }: Dimension, position: number): never {
  failWith(
    'format/padding',
    `axis ${axis.name} is padded with the last coordinate of each segment, and position ${position} of ${parentOf(axis)} stores none`,
    {
      ...(axis.span && { span: axis.span }),
      expected: 'an element under each position',
      hint: `without \`padded with\`, padding is passed over; or put ${axis.name} under an axis that has positions for elements alone`,
    },
  )
}

/** Checks that padding is a coordinate of the tensor, because kernels visit it. @throws SptError `format/padding` */
function checkPadding(axis: PaddedAxis, padding: number, extent: number, positions: number): void {
  const declared = paddingOf(axis)
  if (!declared || positions === 0 || (padding >= 0 && padding < extent)) return
  const span = declared.span ?? axis.span
  failWith(
    'format/padding',
    `axis ${axis.name} is padded with the coordinate ${padding}, and its extent is ${extent}`,
    {
      ...(span && { span }),
      expected: extent === 0 ? 'a dimension that has coordinates' : `0 to ${extent - 1}`,
      hint: 'without `padded with`, padding has no coordinate and is passed over',
    },
  )
}

/** Reports a segment, with an entry that satisfies `condition`, that exceeds its width. @throws `bind/width` */
function* rejectNarrowWidth<C extends Column>(
  frame: Frame<C>,
  { axis, width }: Dimension,
  parent: ParentPosition,
  condition: Expr,
  requiredWidth: string,
): Coroutine<never> {
  const [entry = 0] = yield* frame.engine.findFirst(frame, [condition])
  const [position] = yield* frame.engine.valuesAt(frame, [parent.position!], entry)
  return failWith(
    'bind/width',
    `axis ${axis.name} has the width ${width}, but position ${position} of ${parentOf(axis)} stores ${requiredWidth} coordinates`,
    {
      ...(axis.span && { span: axis.span }),
      expected: `an integer width of at least ${requiredWidth.split(' ')[0]}`,
      hint: 'give a greater width, let the width be measured (`w: size`), or choose a format for the remaining elements; zeros of a dense tensor are not stored: if positions count them, bind coordinates (of spt prune: report.json#layer)',
    },
  )
}

function bindUnpacked(axis: PaddedAxis, { parents, fixed, make }: BoundLevel, indices: Int32Array) {
  return make(indices.length, { width: checkWidth(axis, indices.length, parents, fixed.width) })
}

function bindPacked(axis: PaddedAxis, { parents, fixed, make }: BoundLevel, indices: Int32Array) {
  const width = packedWidth(axis, parents, fixed.width)
  checkWords(axis, indices, parents * width)
  return make(parents * width, { width })
}

function checkWidth(axis: PaddedAxis, count: number, parents: number, declared: number | undefined): number {
  const width = declared ?? (parents === 0 ? 0 : count / parents)
  if (Number.isInteger(width) && width >= 0 && width * parents === count) return width
  return failWith(
    declared === undefined ? 'bind/indices-length' : 'bind/width',
    `axis ${axis.name} has ${count} indices for ${parents} positions of ${axis.parent}`,
    {
      expected:
        declared === undefined
          ? `a multiple of ${parents}`
          : `${declared * parents}: the width ${declared} each`,
      hint: 'every segment has the same width; fill short ones with the extent',
    },
  )
}

/** The width of a packed level must be given, because the number of words only bounds it. @throws `bind/width` */
function packedWidth(axis: PaddedAxis, parents: number, declared: number | undefined): number {
  if (declared !== undefined && Number.isInteger(declared) && declared >= 0) return declared
  if (parents === 0) return 0
  return failWith('bind/width', `axis ${axis.name} is packed, and the width is not known`, {
    expected: 'a value for the width',
    hint: 'bind the size that the declaration of the width names',
  })
}
