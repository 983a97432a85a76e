/**
 * Coordinates of the positions of a chain of levels, from its last level up: parents by arithmetic where levels are
 * fixed, by a column where they are ragged, compressed or bits.
 */
import { invariant } from '../../../ast/diagnostic.ts'
import { when } from '../../../ir/build.ts'
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
  select,
  sub,
  variable,
} from '../../../ir/expr.ts'
import { type Column, natural, read, update, write } from './column-types.ts'
import type { Frame } from './frame.ts'
import { get, loop, next, scalar, store } from './kernel.ts'
import type { DeviceLevel } from './level.ts'
import type { Queue } from './queue.ts'
import { scan } from './scan.ts'

/** Coordinates of each level above position `at` of a chain's last. */
export function walkUp(
  frame: Frame,
  tree: readonly DeviceLevel[],
  at: Expr,
  coordinates: Map<string, Expr>,
  made: Column[],
): void {
  let position = at
  for (let k = tree.length - 1; k >= 0; k--) {
    const level = tree[k]!
    const above = tree[k - 1]
    const { axis, indptr, indices } = level
    const table = (what: string, column: Column): string => {
      const name = `@${what} ${axis.name}`
      frame.tables.set(name, column)
      return name
    }
    const own = position
    if (!above) {
      const stored = indices ? load(table('indices', indices), [own], 'i32') : own
      coordinates.set(axis.name, stored)
      return
    }
    if (axis.kind === 'dense_fixed' || axis.kind === 'sparse_fixed') {
      const width = frame.sized(level.width ?? level.extent)
      position = div(own, width)
      coordinates.set(
        axis.name,
        indices ? load(table('indices', indices), [own], 'i32') : sub(own, mul(position, width)),
      )
      continue
    }
    invariant(indptr, `${axis.name} has segments`)
    const parents = level.mask ? null : parentsOf(frame.queue, indptr, above.positions, level.positions)
    const bits = level.mask ? bitsOf(frame.queue, level, above.positions) : null
    const parent = parents ?? bits!.parents
    made.push(parent, ...(bits ? [bits.coordinates] : []))
    position = load(table('parents', parent), [own], 'i32')
    const stored = indices ?? bits?.coordinates
    coordinates.set(
      axis.name,
      stored
        ? load(table('indices', stored), [own], 'i32')
        : sub(own, load(table('indptr', indptr), [position], 'i32')),
    )
  }
}

/** The parent position of each position: its number where a segment begins, then the largest so far. */
function parentsOf(q: Queue, indptr: Column, parents: number, positions: number): Column {
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

/** Parents and coordinates of the bits that are set. */
function bitsOf(q: Queue, level: DeviceLevel, parents: number): { parents: Column; coordinates: Column } {
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
