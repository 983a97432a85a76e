/** Ranges of columns and tables, and of expressions over them. */
import { type Interval, interval, intervalOf } from '../../../analysis/integers/interval.ts'
import type { Frame } from '../../../columns/column-engine.ts'
import { type Expr, int, isZero } from '../../../ir/expressions/expr.ts'
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

// Conditions decided by the minimum and maximum of columns, which are far cheaper than an evaluation.

/** The condition without the alternatives that are false for every entry; `0` if all of them are. */
export function dropFalse(
  frame: Frame<TypedArray>,
  e: Expr,
  rangeOf: (column: string) => readonly [number, number] | null,
): Expr {
  if (e.kind !== 'binary') return e
  if (e.op === 'or') {
    const [a, b] = [dropFalse(frame, e.a, rangeOf), dropFalse(frame, e.b, rangeOf)]
    if (isZero(a)) return b
    if (isZero(b)) return a
    return a === e.a && b === e.b ? e : { ...e, a, b }
  }
  if ((e.op !== 'lt' && e.op !== 'ge') || e.a.kind !== 'var') return e
  const bound = knownSize(frame, e.b)
  const range = bound === undefined ? null : rangeOf(e.a.name)
  if (bound === undefined || !range) return e
  const [lo, hi] = range
  const never = e.op === 'lt' ? lo >= bound : hi < bound
  return never ? NEVER : e
}

const NEVER = int(0)

function knownSize(frame: Frame<TypedArray>, e: Expr): number | undefined {
  if (e.kind === 'const') return e.value
  return e.kind === 'var' && !frame.column(e.name) ? frame.sizes.get(e.name) : undefined
}
