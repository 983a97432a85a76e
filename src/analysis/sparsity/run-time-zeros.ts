/** Temporaries with dynamic sparsity: elements keep the fill value depending on data (ReLU, gates, masks). */
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { type Expr, isZero, type Load } from '../../ir/expressions/expr.ts'
import { someExpr } from '../../ir/expressions/expr-tree.ts'
import { writesOf } from './writes.ts'

/** Returns the names of the temporaries whose statements may give the fill value to elements, depending on data. */
export function dynamicTemporaries(kernel: Kernel1): ReadonlySet<string> {
  const buffers = new Map(kernel.buffers.map((b) => [b.name, b]))
  const found = new Set<string>()
  for (const { stmt, targets, values, conditions } of writesOf(kernel))
    for (const [k, target] of targets.entries()) {
      const { role, fill } = buffers.get(target.buffer)!
      if (role !== 'local') continue
      const isFilled = (l: Load): boolean =>
        found.has(l.buffer) ||
        (buffers.get(l.buffer)!.role === 'in' && l.index.length === target.index.length)
      const isSkipped = conditions.some((c) => someExpr(c, (x) => x.kind === 'load'))
      if (isSkipped || (stmt.kind === 'assign' && mayBe(values[k]!, fill, isFilled))) found.add(target.buffer)
    }
  return found
}

/** `isFilled`: loads of elements that may have the fill value. */
function mayBe(e: Expr, fill: number, isFilled: (l: Load) => boolean): boolean {
  const go = (x: Expr): boolean => mayBe(x, fill, isFilled)
  switch (e.kind) {
    case 'load':
      return isFilled(e)
    case 'cast':
      return go(e.x)
    case 'select':
      return [e.then, e.else].some((x) => (x.kind === 'const' ? x.value === fill : go(x)))
    case 'binary':
      if (e.op === 'max' || e.op === 'min')
        return [e.a, e.b].some((x) => x.kind === 'const' && x.value === fill)
      return (
        fill === 0 &&
        !isZero(e.a) &&
        ((e.op === 'mul' && (go(e.a) || go(e.b))) || (e.op === 'div' && go(e.a)))
      )
    default:
      return false
  }
}
