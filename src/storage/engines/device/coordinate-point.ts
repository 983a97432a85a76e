/** What a message calls an entry. */
import { add, int, variable } from '../../../ir/expr.ts'
import type { Frame } from './frame.ts'
import { store } from './kernel.ts'

/** `(i, j) = (3, 5)` */
export async function pointOf(frame: Frame, dims: readonly string[], entry: number): Promise<string> {
  const { queue: q } = frame
  const cells = q.cells(dims.length)
  const t = frame.terms(dims.map((d) => variable(d)))
  q.launch({
    ...t,
    key: `point ${t.key}`,
    threads: 1,
    columns: { ...t.columns, x_totals: q.totals },
    sizes: { ...t.sizes, x_at: entry, x_cell: cells },
    body: () => t.at(variable('x_at')).map((x, k) => store('x_totals', add(variable('x_cell'), int(k)), x)),
  })
  const found = await q.numbers(dims.map((_, k) => cells + k))
  return `(${dims.join(', ')}) = (${found.join(', ')})`
}
