/**
 * Inverse images of monotone index arrays: the first iteration in which a monotone index expression reaches a value.
 * Such an iteration turns "all positions of row r" into a range.
 */

import { ceildiv, type Expr, int, load, min, mul, search, sub } from '../../../ir/expressions/expr.ts'
import { mentions } from '../../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../../ir/expressions/structural-equality.ts'
import { offsetsIn } from '../../../ir/statements/accesses.ts'
import type { For, Kernel2 } from '../../../ir/statements/loops.ts'

/**
 * Returns a function from `bound` to the first iteration of `loop` with `e >= bound`, or to the extent if there is no
 * such iteration; undefined unless `e` is evidently monotone in the loop's variable. Recognised are ascending index
 * arrays, quotients by invariants, and the segment of a position (`search_upper(indptr, 0, n + 1, …) - 1`), also
 * nested. `e` must not be negative, and `bound` must not exceed `most`.
 */
export function firstWith(
  e: Expr,
  loop: For,
  kernel: Kernel2,
  most: Expr,
): ((bound: Expr) => Expr) | undefined {
  const first = valueWith(e, loop, kernel, most)
  return (
    first &&
    ((bound) => {
      const at = first(bound)
      return isWithin(at, loop.extent, kernel) ? at : min(at, loop.extent)
    })
  )
}

/** Returns whether `at` is the result of a search, or an offset, in exactly the range of the loop. */
function isWithin(at: Expr, extent: Expr, kernel: Kernel2): boolean {
  if (at.kind === 'search') return sameExpr(at.hi, extent)
  const positions = at.kind === 'load' && kernel.buffers.find((b) => b.name === at.buffer)?.positions
  return positions ? sameExpr(positions, extent) : false
}

/** Like `firstWith`, but the result may exceed the extent. */
function valueWith(e: Expr, loop: For, kernel: Kernel2, most?: Expr): ((bound: Expr) => Expr) | undefined {
  const v = loop.var
  if (e.kind === 'var') return e.name === v ? (bound) => bound : undefined
  if (e.kind === 'load') {
    const index = e.index[0]
    const length = kernel.buffers.find((b) => b.name === e.buffer)?.shape[0]
    if (e.index.length !== 1 || !index || !length || !kernel.ascending?.includes(e.buffer)) return undefined
    const inner = valueWith(index, loop, kernel)
    return inner && ((bound) => inner(search('lower', e.buffer, int(0), length, bound)))
  }
  if (e.kind !== 'binary') return undefined
  if (e.op === 'div' && !mentions(e.b, v)) {
    const inner = valueWith(e.a, loop, kernel)
    // The bound is limited to the last quotient: its product with the divisor could overflow i32.
    const end = endOf(e.a, loop, kernel)
    return inner && ((bound) => inner(mul(end ? min(bound, ceildiv(end, e.b)) : bound, e.b)))
  }
  const { a } = e
  if (e.op !== 'sub' || keyOf(e.b) !== keyOf(int(1)) || a.kind !== 'search') return undefined
  const whole =
    keyOf(a.lo) === keyOf(int(0)) && a.method === 'upper' && offsetsIn(kernel.buffers).has(a.buffer)
  if (!whole || mentions(a.hi, v)) return undefined
  const inner = valueWith(a.value, loop, kernel)
  // There are no offsets beyond the last segment.
  const last = sub(a.hi, int(1))
  const within = most !== undefined && sameExpr(most, last)
  return inner && ((bound) => inner(load(a.buffer, [within ? bound : min(bound, last)])))
}

/** Returns an exclusive upper bound of all values of `e`; undefined if it is unknown. */
function endOf(e: Expr, loop: For, kernel: Kernel2): Expr | undefined {
  if (e.kind === 'var') return loop.extent
  if (e.kind === 'load') return kernel.buffers.find((b) => b.name === e.buffer)?.below
  if (e.kind !== 'binary') return undefined
  if (e.op === 'sub' && e.a.kind === 'search') return sub(e.a.hi, int(1))
  if (e.op !== 'div') return undefined
  const end = endOf(e.a, loop, kernel)
  return end && ceildiv(end, e.b)
}
