/** Columns in another order: element s of each becomes the one that `order` names. */
import { add, load, variable } from '../../../ir/expr.ts'
import { type Column, natural, read, write } from './column-types.ts'
import { get, store } from './kernel.ts'
import type { Queue } from './queue.ts'

/** Columns that one launch moves, within the buffers that every device binds. */
const AT_ONCE = 3

/** `to[s] = from[order[s + first]]` for each pair; `places` becomes that piece of `order` itself. */
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
