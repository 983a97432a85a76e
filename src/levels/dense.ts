/** Dense levels: all coordinates under every parent position, at positions computed arithmetically. */
import type { DenseAxis } from '../ir/coordinates/axis.ts'
import { add, mul, sub } from '../ir/expressions/expr.ts'
import { uniformParent, uniformSegment } from './segments.ts'
import { checkPositions, type LevelFormat, makeLevel, rangeChecks } from './types.ts'

export const DENSE: LevelFormat<DenseAxis> = {
  searchable: false,
  order: 'none',
  indexArrays: () => [],
  slots: () => null,
  segment: ({ extent }, parent, end) => uniformSegment(extent, parent, end),
  entry: (_, { base }, relative) => ({ offset: add(base, relative), coordinate: relative, guards: [] }),
  locate: ({ extent }, { coordinate, above, facts }) => {
    const { base } = uniformSegment(extent, above?.at ?? null, null)
    return {
      position: { at: add(base, coordinate), end: null },
      present: rangeChecks(facts, coordinate, extent),
    }
  },
  // biome-ignore lint/correctness/useYield: it waits for nothing
  *assemble({ frame, d: { axis, coordinate, extent, capacity = Infinity }, parent }) {
    const positions = checkPositions(frame, axis, Math.min(parent.positions * extent, capacity))
    const position = parent.position
      ? add(mul(parent.position, frame.bindSize(extent, `@extent ${axis.name}`)), coordinate)
      : coordinate
    return { level: makeLevel({ axis, extent }, positions), position }
  },
  assembleRanked: null,
  ancestor(frame, level, position) {
    const { parent, size } = uniformParent(frame, level, position)
    return { parent, coordinate: sub(position, mul(parent, size)) }
  },
  bind: (_, { parents, extent, fixed, make }) => make(Math.min(parents * extent, fixed.capacity ?? Infinity)),
}
