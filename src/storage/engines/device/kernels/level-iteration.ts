/** Level iteration: parents of positions, set bits of masks, stream compaction, padding of segments. */
import { invariant } from '../../../../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../../../../ast/work.ts'
import { ENTRY, type Engine, Frame } from '../../../../columns/column-engine.ts'
import type { PaddedSegments } from '../../../../columns/engine-operands.ts'
import type { Level } from '../../../../columns/stored-level.ts'
import {
  add,
  binary,
  call,
  div,
  type Expr,
  eq,
  int,
  load,
  lt,
  mod,
  mul,
  search,
  select,
  variable,
} from '../../../../ir/expressions/expr.ts'
import { when } from '../../../../ir/statements/statement-builders.ts'
import { type DeviceEngine, type Queue, queueIn } from '../queue/command-queue.ts'
import type { Column } from './kernel-builder.ts'
import { flag, get, loop, natural, next, read, scalar, store, update, write } from './kernel-builder.ts'
import { numbers, termsOf } from './map-reduce.ts'
import { reduce, scan } from './scan.ts'

/** The parent position of each position: scattered to the start of each segment, then a running maximum. */
export function parentsOf(q: Queue, indptr: Column, parents: number, positions: number): Column {
  const out = q.column(positions, 'i32', 'parents')
  q.clear(out)
  q.launch({
    key: 'segments',
    threads: parents,
    columns: { x_indptr: natural(indptr), x_out: write(out) },
    body: (p) => [
      when(lt(get('x_indptr', p), get('x_indptr', next(p))), [store('x_out', get('x_indptr', p), p)]),
    ],
  })
  scan(q, {
    key: 'parents',
    n: positions,
    op: 'max',
    columns: { x_out: update(out) },
    value: (e) => get('x_out', e),
    body: (e, most, own) => [store('x_out', e, binary('max', most, own))],
  })
  return out
}

const WORD = 32

export function bitsOf(
  q: Queue,
  level: Level<Column>,
  parents: number,
): { parents: Column; coordinates: Column } {
  const { indptr, mask, positions, extent } = level
  invariant(indptr && mask, 'a bitmap has a mask')
  const out = {
    parents: q.column(positions, 'i32', 'parents'),
    coordinates: q.column(positions, 'i32', 'coordinates'),
  }
  const isSet = (word: Expr, bit: Expr): Expr =>
    select(
      eq(bit, int(WORD - 1)),
      lt(word, int(0)),
      eq(mod(div(word, call('shift_left', [int(1), bit])), int(2)), int(1)),
    )
  q.launch({
    key: 'bits',
    threads: parents,
    columns: {
      x_indptr: natural(indptr),
      x_mask: read(mask),
      x_parents: write(out.parents),
      x_coordinates: write(out.coordinates),
    },
    sizes: { x_words: Math.ceil(extent / WORD) },
    body: (p) => {
      const at = scalar('x_at', get('x_indptr', p))
      const word = scalar('x_word', int(0))
      return [
        ...at.declare,
        ...word.declare,
        loop('x_k', variable('x_words'), (k) => [
          word.set(get('x_mask', add(mul(p, variable('x_words')), k))),
          loop('x_bit', int(WORD), (bit) => [
            when(isSet(word.value, bit), [
              store('x_parents', at.value, p),
              store('x_coordinates', at.value, add(mul(k, int(WORD)), bit)),
              at.set(next(at.value)),
            ]),
          ]),
        ]),
      ]
    },
  })
  return out
}

export const compact: DeviceEngine['compact'] = function* (positions, condition, columns, sizes) {
  const q = queueIn(positions)
  const { n } = positions
  const c = termsOf(positions, [condition])
  const total = q.cells()
  const kept = (e: Expr): Expr => flag(c.at(e)[0]!)
  reduce(q, { ...c, key: `kept ${c.key}`, n, op: '+', values: (e) => [kept(e)], cells: total })
  const [count = 0] = yield* numbers(q, total)
  const out = new Frame(positions.engine, count, sizes)
  const entry = q.column(count, 'i32', 'entry')
  scan(q, {
    ...c,
    key: `keep ${c.key}`,
    n,
    op: '+',
    columns: { ...c.columns, x_entry: write(entry) },
    value: kept,
    body: (e, to, own) => [when(eq(own, int(1)), [store('x_entry', to, e)])],
  })
  for (const [name, value] of columns) {
    const t = termsOf(positions, [value])
    const column = q.column(count, 'i32', name)
    q.launch({
      ...t,
      key: `coordinates ${t.key}`,
      threads: count,
      columns: { ...t.columns, x_entry: natural(entry), x_to: write(column) },
      body: (s) => [store('x_to', s, t.at(get('x_entry', s))[0]!)],
    })
    out.set(name, column)
  }
  out.setEntry(entry)
  return out
}

// Padding of segments with their last elements: binary search for the first empty slot.

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
