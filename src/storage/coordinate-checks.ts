/** Checks of coordinate arrays, shared by construction and lookup: lengths, ranges, extents. */
import { fail } from '../ast/diagnostics/diagnostic.ts'
import type { Column, Frame } from '../columns/column-engine.ts'
import type { Coroutine } from '../columns/coroutines.ts'
import { type StoredAxis, sourceName } from '../ir/coordinates/axis.ts'
import { variable } from '../ir/expressions/expr.ts'
import { extentOf } from './storage.ts'

/** The largest coordinate of each axis. @throws SptError `bind/coordinates`, `bind/coordinate-range`, `bind/extent` */
export function checkCoords(
  axes: readonly { readonly name: string }[],
  extents: ReadonlyMap<string, number>,
  coords: readonly Int32Array[],
): number[] {
  if (coords.length !== axes.length)
    fail({
      code: 'bind/coordinates',
      message: `${coords.length} coordinate arrays for ${axes.length} axes`,
      expected: `an Int32Array for each of ${axes.map((a) => a.name).join(', ')}`,
      hint: 'bind a tensor with as many dimensions as the buffer has axes',
    })
  return axes.map((axis, k) => {
    const extent = extentOf(extents, axis.name)
    const column = coords[k]!
    if (!(column instanceof Int32Array) || column.length !== coords[0]!.length)
      fail({
        code: 'bind/coordinates',
        message:
          column instanceof Int32Array
            ? `axis ${axis.name} has ${column.length} coordinates, axis ${axes[0]!.name} has ${coords[0]!.length}`
            : `the coordinates of axis ${axis.name} are not an Int32Array`,
        expected: 'Int32Arrays of equal length',
        hint: 'give a coordinate per axis for every entry',
      })
    let max = 0
    for (let e = 0; e < column.length; e++) {
      const coordinate = column[e]!
      if (coordinate < 0 || coordinate >= extent)
        fail({
          code: 'bind/coordinate-range',
          message: `entry ${e} has the coordinate ${coordinate} on axis ${axis.name}, whose extent is ${extent}`,
          expected: extent === 0 ? 'no entries' : `coordinates from 0 to ${extent - 1}`,
          hint: 'bind a larger size, or subtract 1 where coordinates count from 1',
        })
      if (coordinate > max) max = coordinate
    }
    return max
  })
}

// Coordinates of entries as text, for messages.

/** `(i, j) = (3, 5)` */
export const pointOf = (names: readonly string[], values: readonly number[]): string =>
  `(${names.join(', ')}) = (${values.join(', ')})`

export function* pointAt<C extends Column>(
  frame: Frame<C>,
  dims: readonly Pick<StoredAxis, 'name' | 'copyOf'>[],
  entry: number,
): Coroutine<string> {
  const exprs = dims.map((d) => variable(d.name))
  return pointOf(dims.map(sourceName), yield* frame.engine.valuesAt(frame, exprs, entry))
}
