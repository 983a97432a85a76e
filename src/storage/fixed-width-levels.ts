/** Levels with segments of fixed width: padding follows the elements of a segment. */
import { boundsOf } from '../analysis/integers/ranges.ts'
import { fail, invariant } from '../ast/diagnostic.ts'
import { hasWidth, type PaddedAxis, paddingOf, padsWithLast, parentOf } from '../ir/axis.ts'
import { add, binary, type Expr, eq, int, load, mul, select, variable } from '../ir/expr.ts'
import type { Column, Frame } from './column-engine.ts'
import type { Coroutine } from './coroutines.ts'
import type { Starts } from './engine-operands.ts'
import { checked, type Dimension, type Made, none, type Place } from './levels.ts'

/** Assembles a level of fixed width; padding follows the elements of a segment. */
export function* sparseFixed<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  parent: Place,
  starts: Starts,
): Coroutine<Made<C>> {
  invariant(parent.at, `${d.axis.name} has a parent`)
  const name = `@rank ${d.axis.name}`
  // If the parent started a new position whenever the width was reached, ranks are known (`nonunique-positions.ts`).
  const rank = variable(name)
  if (d.width !== null && d.width > 0 && frame.names().includes(name))
    return yield* padded(frame, d, parent, rank, d.width)
  frame.engine.ranks(frame, name, starts, 1)
  return yield* rankedFixed(frame, d, parent, rank)
}

/** As `sparseFixed`, from the rank of each entry in its segment. */
export function* rankedFixed<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  parent: Place,
  rank: Expr,
): Coroutine<Made<C>> {
  const next = add(rank, int(1))
  const most = boundsOf(next, (name) => frame.range(name))
  if (d.width && most && most.hi <= d.width) return yield* padded(frame, d, parent, rank, d.width)
  const needed = yield* frame.engine.largest(frame, next)
  const width = d.width ?? needed
  if (width < needed) yield* tooNarrow(frame, d, parent, eq(next, int(needed)), `${needed}`)
  return yield* padded(frame, d, parent, rank, width)
}

function* padded<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  parent: Place,
  rank: Expr,
  width: number,
): Coroutine<Made<C>> {
  const { axis } = d
  // The only possible rank is 0.
  if (width === 1) return yield* fixed(frame, d, width, parent.at!, parent.positions)
  // Checked before positions are computed that would exceed the width.
  checked(frame, axis, parent.positions * width)
  const at = add(mul(parent.at!, frame.sized(width, `@width ${axis.name}`)), rank)
  return yield* fixed(
    frame,
    d,
    width,
    frame.engine.materialize(frame, `@at ${axis.name}`, at),
    parent.positions * width,
  )
}

/** Width 1, for positions with one coordinate each: verified by reading the written coordinates back. */
export function* onlyOnes<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  parent: Place,
): Coroutine<Made<C>> {
  invariant(parent.at, `${d.axis.name} has a parent`)
  const made = yield* fixed(frame, d, 1, parent.at, parent.positions)
  const name = `@indices ${d.axis.name}`
  frame.tables.set(name, made.level.indices!)
  const clash = binary('ne', load(name, [parent.at], 'i32'), d.coordinate)
  const found = yield* frame.engine.largest(frame, select(clash, int(1), int(0)))
  if (found > 0) yield* tooNarrow(frame, d, parent, clash, '2 or more')
  return made
}

/** Writes the indices, and padding elsewhere. */
function* fixed<C extends Column>(
  frame: Frame<C>,
  d: Dimension,
  width: number,
  at: Expr,
  size: number,
): Coroutine<Made<C>> {
  const { axis, coordinate, extent, padding } = d
  const positions = checked(frame, axis, size)
  if (hasWidth(axis)) checkPadding(axis, padding, extent, positions)
  const held = frame.engine.filled(positions, padding, `${axis.name}_indices`)
  frame.engine.scatter(frame, held, at, coordinate)
  const level = { ...none, axis, extent, width, positions }
  if (!padsWithLast(axis) || positions === 0) return { level: { ...level, indices: held }, at }
  const { indices, empty } = yield* frame.engine.repeatLast(held, width, extent, `${axis.name}_indices`)
  if (empty >= 0) noneToRepeat(d, empty)
  return { level: { ...level, indices }, at }
}

/** Reports an empty segment whose padding would repeat its last element. @throws SptError `format/padding` */
function noneToRepeat({ axis }: Dimension, position: number): never {
  fail({
    code: 'format/padding',
    message: `axis ${axis.name} is padded with the last coordinate of each segment, and position ${position} of ${parentOf(axis)} stores none`,
    ...(axis.span && { span: axis.span }),
    expected: 'an element under each position',
    hint: `without \`padded with\`, padding is passed over; or put ${axis.name} under an axis that has positions for elements alone`,
  })
}

/** Checks that padding is a coordinate of the tensor, because kernels visit it. @throws SptError `format/padding` */
function checkPadding(axis: PaddedAxis, padding: number, extent: number, positions: number): void {
  const own = paddingOf(axis)
  if (!own || positions === 0 || (padding >= 0 && padding < extent)) return
  const span = own.span ?? axis.span
  fail({
    code: 'format/padding',
    message: `axis ${axis.name} is padded with the coordinate ${padding}, and its extent is ${extent}`,
    ...(span && { span }),
    expected: extent === 0 ? 'a dimension that has coordinates' : `0 to ${extent - 1}`,
    hint: 'without `padded with`, padding has no coordinate and is passed over',
  })
}

/**
 * Reports a segment that exceeds its width. `where`: holds for an entry of that segment. @throws SptError `bind/width`
 */
function* tooNarrow<C extends Column>(
  frame: Frame<C>,
  { axis, width }: Dimension,
  parent: Place,
  where: Expr,
  needed: string,
): Coroutine<never> {
  const [entry = 0] = yield* frame.engine.first(frame, [where])
  const [position] = yield* frame.engine.valuesAt(frame, [parent.at!], entry)
  return fail({
    code: 'bind/width',
    message: `axis ${axis.name} has the width ${width}, but position ${position} of ${parentOf(axis)} stores ${needed} coordinates`,
    ...(axis.span ? { span: axis.span } : {}),
    expected: `an integer width of at least ${needed.split(' ')[0]}`,
    hint: 'give a greater width, leave it to be measured (`w: size`), or choose a format for what does not fit; zeros of a dense tensor are no elements: where positions count them, bind coordinates (of what spt prune wrote, report.json#layer)',
  })
}
