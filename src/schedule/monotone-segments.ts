/**
 * Inverse images of monotone index arrays. Where a monotone index expression reaches a value: what turns "all positions of
 * row r" into a range.
 */
import { offsetsIn } from '../ir/accesses.ts'
import { ceildiv, type Expr, int, load, min, mul, search, sub } from '../ir/expr.ts'
import { mentions } from '../ir/expr-tree.ts'
import type { For, Kernel2 } from '../ir/loops.ts'
import { keyOf, sameExpr } from '../ir/structural-equality.ts'

/**
 * The first iteration of `loop` with `e >= bound`, its extent where there is none, where `e` is evidently monotone in its
 * variable; else `undefined`.
 * Recognised: ascending index arrays, quotients by what does not change, and the segment that a position lies in
 * (`search_upper(indptr, 0, n + 1, …) - 1`), one inside of the other. `e` takes values from 0 on. No bound is asked for
 * that is greater than `most`.
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

/** Positions that a search gives, or offsets, of just what the loop runs over. */
function isWithin(at: Expr, extent: Expr, kernel: Kernel2): boolean {
  if (at.kind === 'search') return sameExpr(at.hi, extent)
  const positions = at.kind === 'load' && kernel.buffers.find((b) => b.name === at.buffer)?.positions
  return positions ? sameExpr(positions, extent) : false
}

/** Like `firstWith`, and may be beyond the extent. */
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
    // Beyond the last quotient nothing comes, and a product of it and the divisor may be no i32.
    const end = endOf(e.a, loop, kernel)
    return inner && ((bound) => inner(mul(end ? min(bound, ceildiv(end, e.b)) : bound, e.b)))
  }
  const { a } = e
  if (e.op !== 'sub' || keyOf(e.b) !== keyOf(int(1)) || a.kind !== 'search') return undefined
  const whole =
    keyOf(a.lo) === keyOf(int(0)) && a.method === 'upper' && offsetsIn(kernel.buffers).has(a.buffer)
  if (!whole || mentions(a.hi, v)) return undefined
  const inner = valueWith(a.value, loop, kernel)
  // Beyond the last segment there are no offsets.
  const last = sub(a.hi, int(1))
  const within = most !== undefined && sameExpr(most, last)
  return inner && ((bound) => inner(load(a.buffer, [within ? bound : min(bound, last)], 'i32')))
}

/** What all values are below, where it is known. */
function endOf(e: Expr, loop: For, kernel: Kernel2): Expr | undefined {
  if (e.kind === 'var') return loop.extent
  if (e.kind === 'load') return kernel.buffers.find((b) => b.name === e.buffer)?.below
  if (e.kind !== 'binary') return undefined
  if (e.op === 'sub' && e.a.kind === 'search') return sub(e.a.hi, int(1))
  if (e.op !== 'div') return undefined
  const end = endOf(e.a, loop, kernel)
  return end && ceildiv(end, e.b)
}
