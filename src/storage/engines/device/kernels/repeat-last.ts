/** Padding of segments with their last elements: binary search for the first empty slot. */

import { ENTRY, type Engine, Frame } from '../../../../columns/column-engine.ts'
import type { Coroutine } from '../../../../columns/coroutines.ts'
import type { PaddedSegments } from '../../../../columns/engine-operands.ts'
import {
  add,
  div,
  eq,
  int,
  load,
  lt,
  mul,
  search,
  select,
  variable,
} from '../../../../ir/expressions/expr.ts'
import type { Column } from './kernel-builder.ts'

const HELD = '@held'

/** Pads each segment of `width` slots; elements come first and are less than `none`. */
export function* padWithLast(
  engine: Engine<Column>,
  elements: Column,
  width: number,
  none: number,
  label: string,
): Coroutine<PaddedSegments<Column>> {
  const slots = new Frame(engine, elements.length, new Map())
  slots.tables.set(HELD, elements)
  const element = load(HELD, [variable(ENTRY)])
  const [noneExpr, widthExpr] = [slots.bindSize(none), slots.bindSize(width)]
  const first = mul(div(variable(ENTRY), widthExpr), widthExpr)
  const [empty = -1] = yield* engine.findFirst(slots, [eq(load(HELD, [first]), noneExpr)])
  if (empty >= 0) return { indices: elements, empty: Math.floor(empty / width) }
  const last = add(search('lower', HELD, first, add(first, widthExpr), noneExpr), int(-1))
  const indices = engine.empty(elements.length, label)
  const source = select(lt(element, noneExpr), variable(ENTRY), last)
  engine.scatter(slots, indices, variable(ENTRY), load(HELD, [source]))
  engine.release(elements)
  return { indices, empty: -1 }
}
