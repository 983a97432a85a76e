/** Where a monotone index expression reaches a value: what turns "all positions of row r" into a range. */
import { type Expr, int, load, mul, search } from '../ir/expr.ts'
import { mentions } from '../ir/expr-tree.ts'
import { keyOf } from '../ir/keys.ts'
import type { Kernel2 } from '../ir/loops.ts'
import { monotone } from './depend.ts'

/**
 * The first value of the variable `v` with `e >= bound`, where `e` is evidently monotone in it; else `undefined`.
 * Recognised: ascending index arrays, quotients by what does not change, and the segment that a position lies in
 * (`search_upper(indptr, 0, n + 1, …) - 1`), one inside of the other. `e` takes values from 0 on.
 */
export function firstWith(e: Expr, v: string, kernel: Kernel2): ((bound: Expr) => Expr) | undefined {
  if (e.kind === 'var') return e.name === v ? (bound) => bound : undefined
  if (e.kind === 'load') {
    const index = e.index[0]
    const length = kernel.buffers.find((b) => b.name === e.buffer)?.shape[0]
    if (e.index.length !== 1 || !index || !length || !kernel.ascending?.includes(e.buffer)) return undefined
    const inner = firstWith(index, v, kernel)
    return inner && ((bound) => inner(search('lower', e.buffer, int(0), length, bound)))
  }
  if (e.kind !== 'binary') return undefined
  if (e.op === 'div' && !mentions(e.b, v)) {
    const inner = firstWith(e.a, v, kernel)
    return inner && ((bound) => inner(mul(bound, e.b)))
  }
  const { a } = e
  if (e.op !== 'sub' || keyOf(e.b) !== keyOf(int(1)) || a.kind !== 'search') return undefined
  const whole = keyOf(a.lo) === keyOf(int(0)) && a.method === 'upper' && monotone(kernel).has(a.buffer)
  if (!whole || mentions(a.hi, v)) return undefined
  const inner = firstWith(a.value, v, kernel)
  return inner && ((bound) => inner(load(a.buffer, [bound], 'i32')))
}
