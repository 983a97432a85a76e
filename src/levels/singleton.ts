/** Singleton levels: one coordinate under each parent position, at the same position. */
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import { coordinatesOf, type Level } from '../columns/stored-level.ts'
import { type AxisOfKind, hasHoles } from '../ir/coordinates/axis.ts'
import { FIXED_WIDTH } from './fixed-width.ts'
import type { LevelFormat } from './types.ts'

type SingletonAxis = AxisOfKind<'singleton'>

export const SINGLETON: LevelFormat<SingletonAxis> = {
  ...FIXED_WIDTH,
  bind(axis, input) {
    const level = FIXED_WIDTH.bind(axis, input)
    if (!hasHoles(axis)) checkComplete(axis, level)
    return level
  },
}

/** Checks that each position of a parent with elements only has a coordinate. @throws SptError `bind/padding` */
function checkComplete(axis: SingletonAxis, level: Level): void {
  const q = coordinatesOf(level)!.indexOf(level.extent)
  if (q >= 0)
    failWith(
      'bind/padding',
      `indices of axis ${axis.name} hold the extent ${level.extent} at position ${q}, which marks padding`,
      {
        expected: `a coordinate for each position of ${axis.parent}`,
        hint: `leave position ${q} out of ${axis.parent}, too`,
      },
    )
}
