/**
 * Masks of formats: one bit per position of a part's values, set if the tensor stores an element there. Construction
 * from the entries' positions, and tests of a position.
 */

import type { Column, Frame } from '../../columns/column-engine.ts'
import type { Level } from '../../columns/stored-level.ts'
import { add, type Expr, eq, int, load, mul } from '../../ir/expressions/expr.ts'
import { fieldAt, MASK_BITS } from '../../ir/values/packed-fields.ts'
import { packColumn } from './packed-indices.ts'

/** The mask of a part of `size` values whose entries are at positions `position`. */
export function maskOf<C extends Column>(frame: Frame<C>, position: Expr, size: number, name: string): C {
  const { engine } = frame
  const bits = engine.filled(size, 0, 'held')
  engine.scatter(frame, bits, position, int(1))
  const words = packColumn(engine, bits, size, MASK_BITS, name)
  engine.release(bits)
  return words
}

/** A mask and the axes it is over: those of the values, or a subset. */
export interface ElementMask<C> {
  readonly words: C
  readonly axes: readonly string[]
}

const WORDS = '@mask'

/** True if a position holds an element. `positions`: its position on each level, by axis. */
export function isElement<C extends Column>(
  frame: Frame<C>,
  { words, axes }: ElementMask<C>,
  trees: readonly (readonly Level<C>[])[],
  positions: ReadonlyMap<string, Expr>,
): Expr {
  frame.tables.set(WORDS, words)
  frame.signed.add(WORDS)
  const innermost = trees.flatMap((tree) => tree.findLast((l) => axes.includes(l.axis.name)) ?? [])
  const position = innermost.reduce<Expr>(
    (sum, l) => add(mul(sum, frame.bindSize(l.positions)), positions.get(l.axis.name)!),
    int(0),
  )
  return eq(
    fieldAt(position, MASK_BITS, (word) => load(WORDS, [word])),
    int(1),
  )
}
