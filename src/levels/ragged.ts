/** Ragged levels: coordinates 0 up to a stored length under each parent position. */
import { failWith, invariant } from '../ast/diagnostics/diagnostic.ts'
import { type AxisOfKind, indptrOf } from '../ir/coordinates/axis.ts'
import { add } from '../ir/expressions/expr.ts'
import { checkIndptr, required } from './bind.ts'
import { distance, offsetParent, offsetSegment, offsetsArray, segmentOf, segmentStart } from './segments.ts'
import { checkPositions, type LevelFormat, makeLevel, rangeChecks } from './types.ts'

export const RAGGED: LevelFormat<AxisOfKind<'dense_variable'>> = {
  searchable: false,
  order: 'none',
  indexArrays: (axis, levels) => [offsetsArray(axis, levels)],
  slots: () => null,
  segment: offsetSegment,
  entry: (_, { base }, relative) => ({ offset: add(base, relative), coordinate: relative, guards: [] }),
  locate: (axis, lookup) => {
    const { coordinate, facts, levels } = lookup
    const { base, length } = segmentOf((p, end) => offsetSegment(axis, p, end, levels), lookup)
    return {
      position: { at: add(base, coordinate), end: null },
      present: rangeChecks(facts, coordinate, length),
    }
  },
  // The length of a segment is determined by its largest coordinate.
  *assemble({ frame, d: { axis, coordinate, extent }, parent }) {
    const { engine } = frame
    invariant(parent.position, `${axis.name} has a parent`)
    const { position: p, positions: parents } = parent
    const lengths = engine.lengths(frame, p, coordinate, parents, `lengths of ${axis.name}`)
    const { indptr, total } = yield* engine.offsets(lengths, parents * extent, indptrOf(axis.name))
    engine.release(lengths)
    const positions = checkPositions(frame, axis, total)
    const position = add(segmentStart(frame, axis, indptr, p), coordinate)
    return { level: makeLevel({ axis, extent }, positions, { indptr }), position }
  },
  assembleRanked: null,
  ancestor(frame, level, position, parents, allocated) {
    const parent = offsetParent(frame, level, position, parents, allocated)
    return { parent, coordinate: distance(frame, level, position, parent) }
  },
  bind(axis, { extent, parents, arrays, make }) {
    const indptr = required(axis, 'indptr', arrays.indptr)
    checkIndptr(axis, indptr, parents, null)
    checkLengths(axis, indptr, extent)
    return make(indptr[parents]!, { indptr })
  },
}

function checkLengths(
  { name, parent }: AxisOfKind<'dense_variable'>,
  indptr: Int32Array,
  extent: number,
): void {
  for (let p = 0; p + 1 < indptr.length; p++)
    if (indptr[p + 1]! - indptr[p]! > extent)
      failWith(
        'bind/lengths',
        `axis ${name} has the length ${indptr[p + 1]! - indptr[p]!} at position ${p} of ${parent}`,
        { expected: `at most ${extent}`, hint: 'bind a larger size' },
      )
}
