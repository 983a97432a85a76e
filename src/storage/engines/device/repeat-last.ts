/** Padding of segments with their last elements: binary search for the first empty slot. */
import { add, div, eq, int, load, lt, mul, search, select, variable } from '../../../ir/expr.ts'
import { ENTRY, type Engine, Frame } from '../../column-engine.ts'
import type { Coroutine } from '../../coroutines.ts'
import type { Repeated } from '../../engine-operands.ts'
import type { Column } from './column-types.ts'

const HELD = '@held'

/** Pads each segment of `width` slots; elements come first and are less than `none`. */
export function* repeatLast(
  engine: Engine<Column>,
  held: Column,
  width: number,
  none: number,
  label: string,
): Coroutine<Repeated<Column>> {
  const slots = new Frame(engine, held.length, new Map())
  slots.tables.set(HELD, held)
  const own = load(HELD, [variable(ENTRY)], 'i32')
  const [absent, wide] = [slots.sized(none), slots.sized(width)]
  const first = mul(div(variable(ENTRY), wide), wide)
  const [empty = -1] = yield* engine.first(slots, [eq(load(HELD, [first], 'i32'), absent)])
  if (empty >= 0) return { indices: held, empty: Math.floor(empty / width) }
  const last = add(search('lower', HELD, first, add(first, wide), absent), int(-1))
  const indices = engine.empty(held.length, label)
  const from = select(lt(own, absent), variable(ENTRY), last)
  engine.scatter(slots, indices, variable(ENTRY), load(HELD, [from], 'i32'))
  engine.release(held)
  return { indices, empty: -1 }
}
