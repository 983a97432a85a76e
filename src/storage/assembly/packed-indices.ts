/** Packed arrays: indices of levels are packed after assembly, other columns on request; masks have one bit per position. */

import type { Coroutine } from '../../ast/work.ts'
import { type Column, ENTRY, type Engine, type Frame } from '../../columns/column-engine.ts'
import type { Level } from '../../columns/stored-level.ts'
import { hasIndices, hasWidth, indexBits } from '../../ir/coordinates/axis.ts'
import { add, call, type Expr, eq, int, load, lt, mul, select, variable } from '../../ir/expressions/expr.ts'
import { fieldAt, MASK_BITS, wordsFor } from '../../ir/values/packed-fields.ts'
import { tabulate } from '../../levels/segments.ts'
import { checkLevelProperty } from './level-property-checks.ts'

/** A chain of levels with indices packed as their axes declare. @throws `format/claim` if padding has no code */
export function* packChain<C extends Column>(
  engine: Engine<C>,
  chain: readonly Level<C>[],
): Coroutine<readonly Level<C>[]> {
  const isUnpacked = (l: Level<C>): boolean => l.bits === undefined && indexBits(l.axis) < 32
  for (const [k, l] of chain.entries())
    if (isUnpacked(l) && hasWidth(l.axis) && l.axis.compact === true)
      yield* checkLevelProperty(engine, chain.slice(0, k + 1), 'compact')
  return chain.map((l) => (isUnpacked(l) ? packLevel(engine, l) : l))
}

function packLevel<C extends Column>(engine: Engine<C>, level: Level<C>): Level<C> {
  const { axis, indices, positions } = level
  if (!hasIndices(axis) || !indices) return level
  const bits = indexBits(axis)
  const words = packColumn(engine, indices, positions, bits, `${axis.name}_indices`)
  engine.release(indices)
  return { ...level, indices: words, bits }
}

const WIDE = '@wide'

function packColumn<C extends Column>(
  engine: Engine<C>,
  column: C,
  count: number,
  bits: number,
  label: string,
): C {
  return tabulate(engine, wordsFor(count, bits), label, (frame) => {
    frame.tables.set(WIDE, column)
    const end = frame.bindSize(count)
    const field = (k: number): Expr => {
      const index = add(mul(variable(ENTRY), int(32 / bits)), int(k))
      return call('shift_left', [select(lt(index, end), load(WIDE, [index]), int(0)), int(k * bits)])
    }
    // The fields have no bit in common.
    const fields = Array.from({ length: 32 / bits }, (_, k) => field(k))
    return fields.reduce((a, b) => call('bit_xor', [a, b]))
  })
}

// Masks of formats: one bit per position of a part's values, set if the tensor stores an element there.
// Construction from the entries' positions, and tests of a position.

/** The mask of a part of `size` values whose entries are at `position`. */
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
