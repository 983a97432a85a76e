/** Coordinates of entries as text, for messages. */

import type { Column, Frame } from '../columns/column-engine.ts'
import type { Coroutine } from '../columns/coroutines.ts'
import { type StoredAxis, sourceName } from '../ir/coordinates/axis.ts'
import { variable } from '../ir/expressions/expr.ts'

/** `(i, j) = (3, 5)` */
export const pointOf = (names: readonly string[], values: readonly number[]): string =>
  `(${names.join(', ')}) = (${values.join(', ')})`

/** `pointOf` for an entry of a frame. */
export function* pointAt<C extends Column>(
  frame: Frame<C>,
  dims: readonly Pick<StoredAxis, 'name' | 'copyOf'>[],
  entry: number,
): Coroutine<string> {
  const exprs = dims.map((d) => variable(d.name))
  return pointOf(dims.map(sourceName), yield* frame.engine.valuesAt(frame, exprs, entry))
}
