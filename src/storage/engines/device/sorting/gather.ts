/** Gather: columns permuted or selected by `order`. */

import type { Frame } from '../../../../columns/column-engine.ts'
import { add, load, variable } from '../../../../ir/expressions/expr.ts'
import { type Column, get, natural, read, store, write } from '../kernels/kernel-builder.ts'
import type { Queue } from '../queue/command-queue.ts'

/** Maximum number of columns per launch: the buffer bindings that every device has. */
const MAX_COLUMNS = 3

/** `to[s] = from[order[s + first]]` for each pair. `orderCopy` receives that range of `order` itself. */
export function gather(
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
        ...(orderOutput ? { x_places: write(orderOutput) } : {}),
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
export function reorder(q: Queue, frame: Frame<Column>, order: Column): void {
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

/** A frame of the `count` entries `order[from …]`. */
export function gatherPart(
  q: Queue,
  frame: Frame<Column>,
  order: Column,
  from: number,
  count: number,
): Frame<Column> {
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
