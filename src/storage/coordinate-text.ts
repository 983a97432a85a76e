/** Coordinates as text: what a message calls an entry. */
import { variable } from '../ir/expr.ts'
import type { Column, Frame } from './column-engine.ts'
import type { Coroutine } from './coroutines.ts'

/** `(i, j) = (3, 5)` */
export const pointOf = (names: readonly string[], values: readonly number[]): string =>
  `(${names.join(', ')}) = (${values.join(', ')})`

/** The same of an entry of a frame. */
export function* pointAt<C extends Column>(
  frame: Frame<C>,
  dims: readonly { readonly name: string }[],
  entry: number,
): Coroutine<string> {
  const names = dims.map((d) => d.name)
  const exprs = names.map((n) => variable(n))
  return pointOf(names, yield* frame.engine.valuesAt(frame, exprs, entry))
}
