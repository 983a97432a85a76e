/** Gather: columns permuted or selected by `order`. */
import { add, load, variable } from '../../../ir/expr.ts'
import type { Frame } from '../../column-engine.ts'
import { type Column, natural, read, write } from './column-types.ts'
import type { Queue } from './command-queue.ts'
import { get, store } from './kernel-builder.ts'

/** Most columns per launch, within the buffer bindings of every device. */
const AT_ONCE = 3

/** `to[s] = from[order[s + first]]` for each pair; `places` receives that range of `order` itself. */
export function gather(
  q: Queue,
  order: Column,
  pairs: readonly (readonly [from: Column, to: Column])[],
  {
    first = 0,
    count = order.length,
    places,
  }: { readonly first?: number; readonly count?: number; readonly places?: Column } = {},
): void {
  for (let lo = 0; lo < pairs.length; lo += AT_ONCE) {
    const some = pairs.slice(lo, lo + AT_ONCE)
    const also = lo === 0 ? places : undefined
    q.launch({
      key: 'gather',
      threads: count,
      columns: {
        x_order: natural(order),
        ...Object.fromEntries(
          some.flatMap(([from, to], k) => [
            [`x_from${k}`, read(from)],
            [`x_to${k}`, write(to)],
          ]),
        ),
        ...(also ? { x_places: write(also) } : {}),
      },
      sizes: { x_first: first },
      body: (e) => {
        const at = get('x_order', add(e, variable('x_first')))
        return [
          ...some.map(([from], k) => store(`x_to${k}`, e, load(`x_from${k}`, [at], from.dtype))),
          ...(also ? [store('x_places', e, at)] : []),
        ]
      },
    })
  }
}

/** Permutes the entries: entry `order[s]` moves to s. Takes ownership of `order`. */
export function reorder(q: Queue, frame: Frame<Column>, order: Column): void {
  const moved: [from: Column, to: Column, name: string | null][] = []
  for (const [name, from] of frame.columns) moved.push([from, q.column(frame.n, from.dtype, name), name])
  if (frame.entry) moved.push([frame.entry, q.column(frame.n, 'i32', 'entry'), null])
  gather(
    q,
    order,
    moved.map(([from, to]) => [from, to] as const),
  )
  for (const [, to, name] of moved) {
    if (name === null) frame.setEntry(to)
    else frame.set(name, to)
  }
  if (frame.entry) q.release(order)
  else frame.setEntry(order)
}

/** A frame of the `count` entries `order[from …]`. */
export function part(
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
  else gather(q, order, pairs, { first: from, count, places: entry })
  return out
}
