/**
 * Products: the adjoint of a factor is the product of the other factors, also if some of them are 0. The next two
 * derivatives are exact, too: factors that are 0 appear in the adjoint as factors or summands, not only in conditions.
 */
import type { Write } from '../analysis/sparsity/writes.ts'
import type { Buffer1, Reduce1 } from '../ir/coordinates/stage1.ts'
import { iteration, reduce1 } from '../ir/coordinates/stage1-tree.ts'
import type { Names } from '../ir/expressions/bound-names.ts'
import { cast, constant, div, type Expr, eq, load, mul, select, sub } from '../ir/expressions/expr.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import { builtinMonoid } from '../ir/values/monoid.ts'
import { times } from './terms.ts'
import type { Operands } from './winners.ts'

/**
 * The factors of a `*=` with their adjoints; undefined for other statements. With the number z of zeros, the product r of
 * the other factors, and the product w, the sum s and the sum q of squares of the zeros, the product without a factor x is
 * (r / x) · w if x is not 0. Otherwise it is r · 1 for z = 1, r · (s - x) for z = 2, r · ((s² - q) / 2 - x · (s - x)) for z = 3,
 * and 0 for more zeros: its first two derivatives are 0.
 */
export function productOf(
  w: Write,
  adjoint: Expr,
  buffers: ReadonlyMap<string, Buffer1>,
  names: Names,
): Operands | undefined {
  const [target, x] = [w.targets[0]!, w.values[0]!]
  if ((w.stmt as Reduce1).reducer.name !== '*') return undefined
  const { axes, accumulate } = buffers.get(target.buffer)!
  const isZero = eq(x, constant(0, x.dtype))
  const factor = select(isZero, constant(1, x.dtype), x)
  const made = (
    [
      ['zeros', 'i32', '+', select(isZero, constant(1, 'i32'), constant(0, 'i32'))],
      ['rest', accumulate, '*', factor],
      ['zero_product', accumulate, '*', select(isZero, x, constant(1, x.dtype))],
      ['zero_sum', accumulate, '+', select(isZero, x, constant(0, x.dtype))],
      ['zero_squares', accumulate, '+', select(isZero, mul(x, x), constant(0, x.dtype))],
    ] as const
  ).map(([name, type, op, value]) => {
    const dtype = type as Dtype
    const fill = op === '*' ? 1 : 0
    const role = 'local' as const
    const buffer = {
      axes,
      role,
      fill,
      name: names.fresh(`${target.buffer}_${name}`),
      dtype,
      accumulate: dtype,
    }
    const at = load(buffer.name, target.index, dtype)
    return {
      buffer,
      at,
      sum: reduce1({ reducer: builtinMonoid(op, dtype), targets: [at], values: [cast(value, dtype)] }),
    }
  })
  const [zeros, rest, product, sum, squares] = made.map((m) => m.at) as [Expr, Expr, Expr, Expr, Expr]
  const number = (n: number): Expr => constant(n, rest.dtype)
  const count = (n: number): Expr => eq(zeros, constant(n, 'i32'))
  const [own, half] = [cast(x, rest.dtype), number(0.5)]
  const ofThree = sub(mul(half, sub(mul(sum, sum), squares)), mul(own, sub(sum, own)))
  const ofMore = select(count(2), sub(sum, own), select(count(3), ofThree, number(0)))
  const others = select(
    isZero,
    mul(rest, select(count(1), number(1), ofMore)),
    mul(div(rest, cast(factor, rest.dtype)), product),
  )
  const { name } = w.iterations.at(-1)!
  const iters = w.iterations.flatMap((it) => it.iters)
  const body = made.map((m) => m.sum)
  return {
    buffers: made.map((m) => m.buffer),
    iterations: [iteration({ name: names.fresh(`${name}_factors`), iters, where: w.conditions, body })],
    conditions: [],
    seeds: [{ value: x, adjoint: times(adjoint, others) }],
  }
}
