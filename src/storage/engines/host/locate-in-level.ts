/** The level function `locate`: positions of coordinates in an existing level. */
import { fail } from '../../../ast/diagnostics/diagnostic.ts'
import { allocate } from '../../../columns/allocate.ts'
import { coordinatesOf, type Level } from '../../../columns/stored-level.ts'
import { formatOf } from '../../../levels/index.ts'

/**
 * The position of coordinate `column[s]` under parent position `parents[s]` (`null`: the root's only segment), by
 * binary search, or linearly if the level is not ordered. @throws SptError `bind/absent-coordinate`
 */
export function locateInLevel(level: Level, parents: Int32Array | null, column: Int32Array): Int32Array {
  const n = column.length
  const out = allocate(n, 'entries')
  const coordinates = coordinatesOf(level)
  const format = formatOf(level.axis)
  for (let s = 0; s < n; s++) {
    const p = parents ? parents[s]! : 0
    const c = column[s]!
    const q = format.find(level, coordinates, p, c)
    if (q < 0)
      fail({
        code: 'bind/absent-coordinate',
        message: `axis ${level.axis.name} does not store the coordinate ${c} at position ${p} of its parent, which another tensor has there`,
        expected: 'a single structure for each axis',
        hint: 'declare a separate axis for the second tensor, or build the structure from the union of both',
      })
    out[s] = q
  }
  return out
}
