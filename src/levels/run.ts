/**
 * Run levels: consecutive coordinates from a stored start under each parent position, as in banded and skyline
 * matrices (the `banded` level of Chou, Kjolstad and Amarasinghe, PLDI 2020).
 */
import { failWith, invariant } from '../ast/diagnostics/diagnostic.ts'
import { ENTRY } from '../columns/column-engine.ts'
import { type AxisOfKind, arrayName, indptrOf } from '../ir/coordinates/axis.ts'
import { add, type Expr, eq, int, load, select, sub, variable } from '../ir/expressions/expr.ts'
import { checkIndptr, required } from './bind.ts'
import {
  bindTable,
  distance,
  offsetParent,
  offsetSegment,
  offsetsArray,
  segmentOf,
  segmentStart,
  tabulate,
} from './segments.ts'
import type { KernelLevels, LevelFormat, Segment } from './types.ts'
import { checkPositions, makeLevel, rangeChecks } from './types.ts'

type RunAxis = AxisOfKind<'run'>

function runSegment(
  axis: RunAxis,
  parent: Segment['parent'],
  end: Segment['parent'],
  levels: KernelLevels,
): Segment {
  invariant(parent && !end, `axis ${axis.name} is entered under one position of its parent`)
  const start = load(arrayName(axis.name, 'starts'), [parent])
  return { ...offsetSegment(axis, parent, end, levels), start }
}

export const RUN: LevelFormat<RunAxis> = {
  searchable: false,
  order: 'none',
  indexArrays: (axis, levels) => [
    offsetsArray(axis, levels),
    { array: 'starts', length: levels.positions(axis.parent), values: { below: add(axis.extent, int(1)) } },
  ],
  slots: () => null,
  segment: runSegment,
  entry: (_, { base, start }, relative) => ({
    offset: add(base, relative),
    coordinate: add(start, relative),
    guards: [],
  }),
  locate: (axis, lookup) => {
    const segment = segmentOf((p, end) => runSegment(axis, p, end, lookup.levels), lookup)
    const relative = sub(lookup.coordinate, segment.start)
    return {
      position: { at: add(segment.base, relative), end: null },
      present: rangeChecks(lookup.facts, relative, segment.length),
    }
  },
  // Two maxima by segment, of coordinates and of distances from the extent, determine the start and the length.
  *assemble({ frame, d: { axis, coordinate, extent }, parent }) {
    const { engine } = frame
    invariant(parent.position, `${axis.name} has a parent`)
    const { position: p, positions: parents } = parent
    const fromEnd = sub(frame.bindSize(extent - 1, `@last ${axis.name}`), coordinate)
    const ends = engine.lengths(frame, p, coordinate, parents, `ends of ${axis.name}`)
    const reversed = engine.lengths(frame, p, fromEnd, parents, `starts of ${axis.name}`)
    const each = (label: string, value: (first: Expr, end: Expr) => Expr) =>
      tabulate(engine, parents, label, (f) => {
        const end = load(bindTable(f, '@end', ends), [variable(ENTRY)])
        const first = sub(f.bindSize(extent), load(bindTable(f, '@reversed', reversed), [variable(ENTRY)]))
        return select(eq(end, int(0)), int(0), value(first, end))
      })
    const starts = each(arrayName(axis.name, 'starts'), (first) => first)
    const lengths = each(`lengths of ${axis.name}`, (first, end) => sub(end, first))
    const { indptr, total } = yield* engine.offsets(lengths, parents * extent, indptrOf(axis.name))
    engine.release(ends, reversed, lengths)
    const positions = checkPositions(frame, axis, total)
    const start = load(bindTable(frame, `@starts ${axis.name}`, starts), [p])
    const position = add(segmentStart(frame, axis, indptr, p), sub(coordinate, start))
    return { level: makeLevel({ axis, extent }, positions, { indptr, starts }), position }
  },
  assembleRanked: null,
  ancestor(frame, level, position, parents, allocated) {
    const parent = offsetParent(frame, level, position, parents, allocated)
    const start = load(bindTable(frame, `@starts ${level.axis.name}`, level.starts!), [parent])
    return { parent, coordinate: add(start, distance(frame, level, position, parent)) }
  },
  bind(axis, { extent, parents, arrays, make }) {
    const indptr = required(axis, 'indptr', arrays.indptr)
    checkIndptr(axis, indptr, parents, null)
    const starts = required(axis, 'starts', arrays.starts)
    checkRuns(axis, indptr, starts, extent, parents)
    return make(indptr[parents]!, { indptr })
  },
}

/** Checks that each run is within the extent. @throws SptError `bind/starts-length`, `bind/runs` */
function checkRuns(
  axis: RunAxis,
  indptr: Int32Array,
  starts: Int32Array,
  extent: number,
  parents: number,
): void {
  if (starts.length !== parents)
    failWith('bind/starts-length', `starts of axis ${axis.name} has ${starts.length} elements`, {
      expected: `${parents}: one for each position of ${axis.parent}`,
      hint: 'give the first coordinate of each run; that of an empty run is 0',
    })
  for (let p = 0; p < parents; p++) {
    const [start, length] = [starts[p]!, indptr[p + 1]! - indptr[p]!]
    if (start < 0 || start + length > extent)
      failWith(
        'bind/runs',
        `axis ${axis.name} has the coordinates ${start} to ${start + length - 1} at position ${p} of ${axis.parent}, and the extent is ${extent}`,
        {
          expected: extent === 0 ? 'empty runs' : `runs within 0 to ${extent - 1}`,
          hint: 'bind a larger size, or correct the start or the length of the run',
        },
      )
  }
}
