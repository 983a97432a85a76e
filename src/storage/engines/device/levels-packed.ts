/** Levels whose positions are those that exist, packed: compressed ones and bitmaps. */
import { invariant } from '../../../ast/diagnostic.ts'
import type { StoredAxis } from '../../../ir/axis.ts'
import { when } from '../../../ir/build.ts'
import { add, binary, call, div, type Expr, eq, int, lt, mod, mul, variable } from '../../../ir/expr.ts'
import { type Column, natural, update, write } from './column-types.ts'
import { conditionOf, type Starts } from './duplicate-entries.ts'
import type { Frame } from './frame.ts'
import { atomic, flag, get, next, store } from './kernel.ts'
import { type Dimension, type Made, none, type Place } from './level.ts'
import { differs } from './order.ts'
import { scan } from './scan.ts'

/** Positions that exist, packed: compressed levels and bitmaps. */
export async function packed(
  frame: Frame,
  d: Dimension,
  parent: Place,
  starts: Starts | null,
): Promise<Made> {
  const { axis, coordinate, extent } = d
  const { queue: q, n } = frame
  const begins = conditionOf(frame, parent.at ? [parent.at, coordinate] : [coordinate], starts)
  const name = `@at ${axis.name}`
  const column = q.column(n, 'i32', `positions of ${axis.name}`)
  const total = q.cells()
  scan(q, {
    ...begins,
    key: `positions ${begins.key}`,
    n,
    op: '+',
    columns: { ...begins.columns, x_at: write(column) },
    value: (e) => flag(begins.cond(e)),
    body: (e, sum, own) => [store('x_at', e, add(sum, add(own, int(-1))))],
    total,
  })
  const [positions = 0] = await q.numbers([total])
  frame.set(name, column)
  const at = variable(name)
  const indptr = parent.at ? indptrOf(frame, axis, parent, at) : onlySegment(frame, axis, positions)
  if (axis.kind === 'bitmap') {
    const mask = bitsOf(frame, d, parent, at)
    return { level: { ...none, axis, extent, positions, indptr, mask }, at, positions }
  }
  const indices = q.column(positions, 'i32', `${axis.name}_indices`)
  const t = frame.terms([at, coordinate])
  q.launch({
    ...t,
    key: `indices ${t.key}`,
    threads: n,
    columns: { ...t.columns, x_indices: write(indices) },
    body: (e) => {
      const [to, c] = t.at(e) as [Expr, Expr]
      return [
        when(
          differs((x) => [t.at(x)[0]!], e),
          [store('x_indices', to, c)],
        ),
      ]
    },
  })
  return { level: { ...none, axis, extent, positions, indptr, indices }, at, positions }
}

/** That of a root. */
function onlySegment({ queue: q }: Frame, axis: StoredAxis, positions: number): Column {
  const indptr = q.column(2, 'i32', `${axis.name}_indptr`)
  q.launch({
    key: 'only segment',
    threads: 2,
    columns: { x_indptr: write(indptr) },
    sizes: { x_positions: positions },
    body: (p) => [store('x_indptr', p, mul(p, variable('x_positions')))],
  })
  return indptr
}

/** `indptr[p + 1]` is where the last segment ends that is not after p's; entries are in order of `at`. */
function indptrOf(frame: Frame, axis: StoredAxis, parent: Place, at: Expr): Column {
  const { queue: q, n } = frame
  const ends = q.column(parent.positions, 'i32', `ends of ${axis.name}`)
  q.clear(ends)
  const t = frame.terms([at, parent.at ?? int(0)])
  q.launch({
    ...t,
    key: `ends ${t.key}`,
    threads: n,
    columns: { ...t.columns, x_ends: write(ends) },
    sizes: { ...t.sizes, x_n: n },
    body: (e) => {
      const [q0, p0] = t.at(e) as [Expr, Expr]
      const last = store('x_ends', p0, next(q0))
      const p1 = t.at(next(e))[1]!
      return [when(lt(next(e), variable('x_n')), [when(binary('ne', p0, p1), [last])], [last])]
    },
  })
  const indptr = q.column(parent.positions + 1, 'i32', `${axis.name}_indptr`)
  scan(q, {
    key: 'ends',
    n: parent.positions,
    op: 'max',
    columns: { x_ends: natural(ends), x_indptr: write(indptr) },
    value: (p) => get('x_ends', p),
    body: (p, most, own) => [
      store('x_indptr', p, most),
      when(eq(next(p), variable('x_n')), [store('x_indptr', next(p), binary('max', most, own))]),
    ],
  })
  if (parent.positions === 0) q.clear(indptr)
  q.release(ends)
  return indptr
}

/** The mask of each parent position. */
function bitsOf(frame: Frame, { axis, coordinate, extent }: Dimension, parent: Place, at: Expr): Column {
  const { queue: q, n } = frame
  invariant(parent.at, `${axis.name} has a parent`)
  const words = Math.ceil(extent / 32)
  const mask = q.column(parent.positions * words, 'i32', `${axis.name}_mask`)
  q.clear(mask)
  const t = frame.terms([at, parent.at, coordinate])
  q.launch({
    ...t,
    key: `mask ${t.key}`,
    threads: n,
    columns: { ...t.columns, x_mask: update(mask) },
    sizes: { ...t.sizes, x_words: words },
    body: (e) => {
      const [, p, c] = t.at(e) as [Expr, Expr, Expr]
      const word = add(mul(p, variable('x_words')), div(c, int(32)))
      const bit = call('shift_left', [int(1), mod(c, int(32))])
      // Each bit is added once: entries of one coordinate are neighbours.
      return [
        when(
          differs((x) => [t.at(x)[0]!], e),
          [atomic('+', 'x_mask', word, bit)],
        ),
      ]
    },
  })
  return mask
}
