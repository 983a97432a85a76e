/** Products: the adjoint of a factor is the product of the other factors, also if some of them are 0. */
import type { Write } from '../analysis/sparsity/writes.ts'
import type { Buffer1, Reduce1 } from '../ir/coordinates/stage1.ts'
import { iteration, reduce1 } from '../ir/coordinates/stage1-tree.ts'
import type { Names } from '../ir/expressions/bound-names.ts'
import { binary, cast, constant, type Expr, eq, load, select } from '../ir/expressions/expr.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import { builtinMonoid } from '../ir/values/monoid.ts'
import { times, where } from './terms.ts'
import type { Operands } from './winners.ts'

/**
 * The factors of a `*=` with their adjoints, from the number of zeros and the product of the other factors; undefined for
 * other statements.
 */
export function productOf(
  w: Write,
  adjoint: Expr,
  buffers: ReadonlyMap<string, Buffer1>,
  names: Names,
): Operands | undefined {
  const [target, x] = [w.targets[0]!, w.values[0]!]
  if ((w.stmt as Reduce1).reducer.name !== '*') return undefined
  const like = buffers.get(target.buffer)!
  const local = (name: string, dtype: Dtype): Buffer1 => {
    const own = { axes: like.axes, role: 'local' as const, fill: dtype === 'i32' ? 0 : 1 }
    return { ...own, name: names.fresh(`${target.buffer}_${name}`), dtype, accumulate: dtype }
  }
  const [zeros, rest] = [local('zeros', 'i32'), local('rest', like.accumulate as Dtype)]
  const isZero = eq(x, constant(0, x.dtype))
  const count = select(isZero, constant(1, 'i32'), constant(0, 'i32'))
  const factor = select(isZero, constant(1, x.dtype), x)
  const at = (b: Buffer1) => load(b.name, target.index, b.dtype)
  const sum = (op: '+' | '*', b: Buffer1, value: Expr) =>
    reduce1({ reducer: builtinMonoid(op, b.dtype), targets: [at(b)], values: [cast(value, b.dtype)] })
  const { name } = w.iterations.at(-1)!
  const iters = w.iterations.flatMap((it) => it.iters)
  const body = [sum('+', zeros, count), sum('*', rest, factor)]
  const others = binary('div', at(rest), cast(factor, rest.dtype))
  return {
    buffers: [zeros, rest],
    iterations: [iteration({ name: names.fresh(`${name}_factors`), iters, where: w.conditions, body })],
    conditions: [],
    seeds: [{ value: x, adjoint: where(eq(at(zeros), count), times(adjoint, others)) }],
  }
}
