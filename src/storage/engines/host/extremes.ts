/** Ranges of columns and tables, and of expressions over them. */
import { type Interval, interval, intervalOf } from '../../../analysis/integers/interval.ts'
import type { Frame } from '../../../columns/column-engine.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import { children } from '../../../ir/expressions/expr-tree.ts'
import type { TypedArray } from '../../../ir/values/arrays.ts'

/** Minimum and maximum of a range; the result always includes 0. */
export function extremes(x: Int32Array | Float64Array, from: number, to: number): readonly [number, number] {
  let lo = 0
  let hi = 0
  for (let k = from; k < to; k++) {
    const v = x[k]!
    if (v < lo) lo = v
    else if (v > hi) hi = v
  }
  return [lo, hi]
}

/** True if no intermediate result overflows for any values within the columns' bounds; tables are measured. */
export function fits(frame: Frame<TypedArray>, e: Expr): boolean {
  let allFit = true
  const visit = (x: Expr): Interval => {
    const operands = children(x).map(visit)
    const table = x.kind === 'load' ? frame.tables.get(x.buffer) : undefined
    const range =
      x.kind === 'load' && table instanceof Int32Array
        ? rangeOfTable(table, frame.fills.get(x.buffer) ?? 0)
        : intervalOf(x, operands, (name) => frame.range(name))
    allFit &&= range.fits
    return range
  }
  visit(e)
  return allFit
}

function rangeOfTable(table: Int32Array, fill: number): Interval {
  const [lo, hi] = extremes(table, 0, table.length)
  return interval(Math.min(lo, fill), Math.max(hi, fill))
}
