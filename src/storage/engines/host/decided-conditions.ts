/** Conditions decided by the minimum and maximum of columns, which are far cheaper than an evaluation. */

import type { Frame } from '../../../columns/column-engine.ts'
import { type Expr, int, isZero } from '../../../ir/expressions/expr.ts'
import type { TypedArray } from '../../../ir/values/arrays.ts'

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
