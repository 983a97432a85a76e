/**
 * Masks of formats: a bit for each position of a part's values, 1 where the tensor holds an element. What is made of positions
 * (the bits of entries that have theirs) and what is asked of them (whether a position is an entry) meet here.
 */
import { add, type Expr, eq, int, load, mul } from '../ir/expr.ts'
import { fieldAt, MASK_BITS } from '../ir/packed-fields.ts'
import type { Column, Frame } from './column-engine.ts'
import { packColumn } from './packed-indices.ts'
import type { Level } from './storage.ts'

/** The mask of a part whose entries stand at `at` among `size` positions. */
export function maskOf<C extends Column>(frame: Frame<C>, at: Expr, size: number, name: string): C {
  const { engine } = frame
  const held = engine.filled(size, 0, 'held')
  engine.scatter(frame, held, at, int(1))
  const words = packColumn(engine, held, size, MASK_BITS, name)
  engine.release(held)
  return words
}

/** A mask with the axes it is over: those of the values, or some of them. */
export interface ElementMask<C> {
  readonly words: C
  readonly axes: readonly string[]
}

const WORDS = '@mask'

/** Whether a position holds an element, where `places` has the position on each level by its axis. */
export function isHeld<C extends Column>(
  frame: Frame<C>,
  { words, axes }: ElementMask<C>,
  trees: readonly (readonly Level<C>[])[],
  places: ReadonlyMap<string, Expr>,
): Expr {
  frame.tables.set(WORDS, words)
  frame.signed.add(WORDS)
  const last = trees.flatMap((tree) => tree.findLast((l) => axes.includes(l.axis.name)) ?? [])
  const at = last.reduce<Expr>(
    (sum, l) => add(mul(sum, frame.sized(l.positions)), places.get(l.axis.name)!),
    int(0),
  )
  return eq(
    fieldAt(at, MASK_BITS, (word) => load(WORDS, [word], 'i32')),
    int(1),
  )
}
