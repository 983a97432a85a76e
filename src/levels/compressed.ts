/** Compressed levels: segments of the coordinates that occur, between stored offsets. */

import type { Coroutine } from '../ast/work.ts'
import { type Column, ENTRY } from '../columns/column-engine.ts'
import { type AxisOfKind, indicesOf, indptrOf } from '../ir/coordinates/axis.ts'
import { add, type Expr, int, mul, variable } from '../ir/expressions/expr.ts'
import { checkIndptr, checkWords, required } from './bind.ts'
import { checkIndices, coordinateAt, indexedEntry, indicesArray, searchIndices } from './indices.ts'
import { offsetParent, offsetSegment, offsetsArray, segmentStart, tabulate } from './segments.ts'
import { type AssembledLevel, type LevelFormat, makeLevel, type RankedInput, runStarts } from './types.ts'

export const COMPRESSED: LevelFormat<AxisOfKind<'sparse_variable'>> = {
  searchable: true,
  order: 'entries',
  indexArrays: (axis, levels) => [offsetsArray(axis, levels), indicesArray(axis, levels)],
  slots: () => null,
  segment: offsetSegment,
  entry: indexedEntry,
  locate: (axis, lookup) =>
    searchIndices(axis, lookup, (p, end) => offsetSegment(axis, p, end, lookup.levels)),
  *assemble({ frame, d, parent, starts }) {
    const { axis, coordinate } = d
    const { engine } = frame
    const name = `@at ${axis.name}`
    const positions = yield* engine.runs(frame, name, runStarts(d, parent, starts))
    const position = variable(name)
    const label = indptrOf(axis.name)
    const indptr = parent.position
      ? engine.segmentEnds(frame, position, parent.position, parent.positions, label)
      : tabulate(engine, 2, label, (f) => mul(variable(ENTRY), f.bindSize(positions)))
    const indices = engine.empty(positions, indicesOf(axis.name))
    engine.scatter(frame, indices, position, coordinate, true)
    return { level: makeLevel(d, positions, { indptr, indices }), position }
  },
  assembleRanked: function* <C extends Column>(
    { frame, d, parent }: RankedInput<C>,
    rank: Expr,
    known: C | null,
  ): Coroutine<AssembledLevel<C>> {
    const { axis, coordinate } = d
    const { engine } = frame
    const segments = parent.position ?? int(0)
    const lengths =
      known ?? engine.lengths(frame, segments, rank, parent.positions, `lengths of ${axis.name}`)
    const { indptr, total } = yield* engine.offsets(lengths, frame.n, indptrOf(axis.name))
    const start = segmentStart(frame, axis, indptr, segments)
    const position = engine.materialize(frame, `@at ${axis.name}`, add(start, rank))
    const indices = engine.empty(total, indicesOf(axis.name))
    engine.scatter(frame, indices, position, coordinate)
    if (!known) engine.release(lengths)
    return { level: makeLevel(d, total, { indptr, indices }), position }
  },
  ancestor: (frame, level, position, parents, allocated) => ({
    parent: offsetParent(frame, level, position, parents, allocated),
    coordinate: coordinateAt(frame, level, position),
  }),
  bind(axis, { parents, arrays, bits, fixed, make }) {
    const indices = required(axis, 'indices', arrays.indices)
    const isList = bits === 32 && axis.parent === null && arrays.indptr === undefined
    const indptr = isList ? Int32Array.of(0, indices.length) : required(axis, 'indptr', arrays.indptr)
    checkIndptr(axis, indptr, parents, bits < 32 ? null : indices.length)
    if (bits < 32) checkWords(axis, indices, indptr[parents]!)
    const level = make(indptr[parents]!, { indptr })
    checkIndices(axis, level, parents, fixed.padding)
    return level
  },
}
