/** Partition of entries by a small number: sorts by it and splits the result into one frame per value. */

import { type Coroutine, waitFor } from '../../../../ast/work.ts'
import { add, binary, type Expr, load, variable } from '../../../../ir/expressions/expr.ts'
import { when } from '../../../../ir/statements/statement-builders.ts'
import type { Column } from '../kernels/kernel-builder.ts'
import { before, get, isFirst, natural, read, store, update, write } from '../kernels/kernel-builder.ts'
import { termsOf } from '../kernels/map-reduce.ts'
import { type DeviceEngine, type F, type Queue, queueIn } from '../queue/command-queue.ts'
import { radixSort } from './radix-sort.ts'

/** Drops the column and takes ownership of the frame, which is returned itself if all entries have one number. */
export const partition: DeviceEngine['partition'] = function* (frame, name, count) {
  const q = queueIn(frame)
  const { n } = frame
  const children = Array.from({ length: count }, (_, k) => k)
  if (n === 0) {
    const emptyFrames = children.map(() => emptyFrame(frame))
    frame.release()
    return emptyFrames
  }
  const t = termsOf(frame, [variable(name)])
  const bits = Math.ceil(Math.log2(count))
  const key = { key: 'child', bits, columns: t.columns, sizes: t.sizes, value: (e: Expr) => t.at(e)[0]! }
  const order = radixSort(q, n, [key], null)
  const bounds = yield* boundsOf(frame, name, order, count)
  frame.drop(name)
  const onlyChild = children.find((k) => bounds[k] === 0 && bounds[k + 1] === n)
  if (!order || onlyChild !== undefined) {
    q.release(order)
    return children.map((k) => (k === onlyChild ? frame : emptyFrame(frame)))
  }
  const out = children.map((k) => {
    const childFrame = gatherPart(frame, order, bounds[k]!, bounds[k + 1]! - bounds[k]!)
    // Partitioning keeps the order of entries.
    childFrame.sortedBy = frame.sortedBy
    return childFrame
  })
  q.release(order)
  frame.release()
  return out
}

/** The offsets of each child's entries in `order`, followed by the number of entries. */
function* boundsOf(frame: F, name: string, order: Column | null, count: number): Coroutine<number[]> {
  const q = queueIn(frame)
  const { n } = frame
  const starts = filledColumn(q, count, n, 'starts')
  const t = termsOf(frame, [variable(name)])
  const child = (s: Expr): Expr => t.at(order ? get('x_order', s) : s)[0]!
  q.launch({
    ...t,
    key: `starts of children ${order !== null}`,
    threads: n,
    columns: { ...t.columns, ...(order && { x_order: natural(order) }), x_starts: update(starts) },
    body: (s) => [
      when(binary('or', isFirst(s), binary('ne', child(s), child(before(s)))), [
        store('x_starts', child(s), s),
      ]),
    ],
  })
  yield* waitFor(q.patience())
  const offsets = [...(yield* waitFor(q.download(starts))), n]
  q.release(starts)
  for (let k = count - 1; k >= 0; k--) offsets[k] = Math.min(offsets[k]!, offsets[k + 1]!)
  return offsets
}

export function filledColumn(q: Queue, length: number, value: number, label: string): Column {
  const column = q.column(length, 'i32', label)
  if (Object.is(value, 0)) q.clear(column)
  else
    q.launch({
      key: 'fill',
      threads: length,
      columns: { x_to: write(column) },
      sizes: { x_value: value },
      body: (e) => [store('x_to', e, variable('x_value'))],
    })
  return column
}

function emptyFrame(frame: F): F {
  const q = queueIn(frame)
  const out = frame.sibling(0)
  for (const [name, column] of frame.columns) out.set(name, q.column(0, column.dtype, name))
  out.setEntry(q.column(0, 'i32', 'entry'))
  return out
}

/** Maximum number of columns per launch: the buffer bindings that every device has. */
const MAX_COLUMNS = 3

/** `to[s] = from[order[s + first]]` for each pair. `orderCopy` receives that range of `order` itself. */
function gather(
  q: Queue,
  order: Column,
  pairs: readonly (readonly [from: Column, to: Column])[],
  {
    first = 0,
    count = order.length,
    orderCopy,
  }: { readonly first?: number; readonly count?: number; readonly orderCopy?: Column } = {},
): void {
  for (let lo = 0; lo < pairs.length; lo += MAX_COLUMNS) {
    const batch = pairs.slice(lo, lo + MAX_COLUMNS)
    const orderOutput = lo === 0 ? orderCopy : undefined
    q.launch({
      key: 'gather',
      threads: count,
      columns: {
        x_order: natural(order),
        ...Object.fromEntries(
          batch.flatMap(([from, to], k) => [
            [`x_from${k}`, read(from)],
            [`x_to${k}`, write(to)],
          ]),
        ),
        ...(orderOutput && { x_places: write(orderOutput) }),
      },
      sizes: { x_first: first },
      body: (e) => {
        const source = get('x_order', add(e, variable('x_first')))
        return [
          ...batch.map(([from], k) => store(`x_to${k}`, e, load(`x_from${k}`, [source], from.dtype))),
          ...(orderOutput ? [store('x_places', e, source)] : []),
        ]
      },
    })
  }
}

/** Permutes the entries: entry `order[s]` moves to s. Takes ownership of `order`. */
export function reorder(frame: F, order: Column): void {
  const q = queueIn(frame)
  const columns: [from: Column, to: Column, name: string | null][] = []
  for (const [name, from] of frame.columns) columns.push([from, q.column(frame.n, from.dtype, name), name])
  if (frame.entry) columns.push([frame.entry, q.column(frame.n, 'i32', 'entry'), null])
  gather(
    q,
    order,
    columns.map(([from, to]) => [from, to] as const),
  )
  for (const [, to, name] of columns) {
    if (name === null) frame.setEntry(to)
    else frame.set(name, to)
  }
  if (frame.entry) q.release(order)
  else frame.setEntry(order)
}

function gatherPart(frame: F, order: Column, from: number, count: number): F {
  const q = queueIn(frame)
  const out = frame.sibling(count)
  const pairs = [...frame.columns].map(([name, column]) => {
    const to = q.column(count, column.dtype, name)
    out.set(name, to)
    return [column, to] as const
  })
  const entry = q.column(count, 'i32', 'entry')
  out.setEntry(entry)
  if (frame.entry) gather(q, order, [...pairs, [frame.entry, entry]], { first: from, count })
  else gather(q, order, pairs, { first: from, count, orderCopy: entry })
  return out
}
