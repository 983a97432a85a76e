/**
 * Factors of a tensor's fill value 0. Steps replace `0 * factor` by 0, so the bound data of the factors are checked
 * for infinity and NaN.
 */
import { givenBy, writtenIn } from '../../../analysis/sparsity/fill-folding.ts'
import type { Axis } from '../../../ir/coordinates/axis.ts'
import type { Buffer1, FillFactor, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { walkStmts1 } from '../../../ir/coordinates/stage1-tree.ts'
import { constant, type Expr } from '../../../ir/expressions/expr.ts'
import { walkExpr } from '../../../ir/expressions/expr-tree.ts'
import { printExpr1 } from '../../../ir/print/print-stage1.ts'
import { isFloat } from '../../../ir/values/dtype.ts'
import { originOf } from '../as/name-collisions.ts'
import type { Factor } from './padding.ts'

/**
 * Describes a factor of a fill value by its text and its loads. `by` has the dimension of `over` whose iterator is
 * the load's index, or null.
 */
export function fillFactor(kernel: Kernel1, over: readonly Axis[], { factor, iters }: Factor): FillFactor {
  const loads: FillFactor['loads'][number][] = []
  const dimension = (e: Expr): number | null => {
    const axis = e.kind === 'var' ? iters.get(e.name) : undefined
    const k = over.findIndex((a) => a.name === axis)
    return k < 0 ? null : k
  }
  walkExpr(factor, (x) => {
    if (x.kind === 'load' && isFloat(x.dtype))
      loads.push({ tensor: originOf(kernel, x.buffer), by: x.index.map(dimension) })
  })
  return { text: printExpr1(factor), element: factor.kind === 'load', loads }
}

/** Returns all factors of the tensor's fill value in a kernel. */
export function factorsOf(kernel: Kernel1, { name, fill, dtype }: Buffer1): readonly FillFactor[] {
  const out: FillFactor[] = []
  walkStmts1(kernel.body, (s, around) => {
    if (s.kind !== 'assign' && s.kind !== 'reduce') return
    const given = givenBy(writtenIn(s, around), (l) =>
      l.buffer === name ? constant(fill, dtype) : undefined,
    )
    for (const { factors } of given)
      for (const factor of factors) out.push(fillFactor(kernel, [], { factor, iters: new Map() }))
  })
  return out
}
