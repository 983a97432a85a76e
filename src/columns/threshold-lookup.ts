/**
 * Bucketing by table look-up: a sum of comparisons with constants becomes one look-up: `(x > 1) + (x > 2) + (x > 4)`,
 * the class of x.
 */
import type { Expr } from '../ir/expressions/expr.ts'
import { keyOf } from '../ir/expressions/structural-equality.ts'

export interface Thresholds {
  /** The compared i32 expression. */
  readonly compared: Expr
  /** The number of constants below x, for x from 0 on; the last element applies to all larger x. */
  readonly below: Float64Array
}

/** Largest table that fits the cache. */
const LARGEST = 4096

/** The thresholds of such a sum; `null` for other expressions, and for negative or large constants. */
export function thresholdsOf(e: Expr): Thresholds | null {
  if (e.kind !== 'binary' || e.op !== 'add' || e.dtype !== 'i32') return null
  const bounds: number[] = []
  let compared: Expr | null = null
  const pending: Expr[] = [e]
  for (let term = pending.pop(); term; term = pending.pop()) {
    if (term.kind === 'binary' && term.op === 'add') {
      pending.push(term.a, term.b)
      continue
    }
    if (term.kind === 'const' && term.value === 0) continue
    const match = comparison(term)
    if (!match || (compared && keyOf(compared) !== keyOf(match.compared))) return null
    compared ??= match.compared
    bounds.push(match.bound)
  }
  const top = Math.max(...bounds)
  if (!compared || bounds.length < 2 || Math.min(...bounds) < 0 || top > LARGEST) return null
  const below = Float64Array.from({ length: top + 2 }, (_, x) => bounds.filter((b) => b < x).length)
  return { compared, below }
}

/** `select(x > c, 1, 0)`. */
function comparison(e: Expr): { readonly compared: Expr; readonly bound: number } | null {
  if (e.kind !== 'select' || !isFlag(e)) return null
  const { cond } = e
  if (cond.kind !== 'binary' || cond.op !== 'gt' || cond.a.dtype !== 'i32' || cond.b.kind !== 'const')
    return null
  return Number.isInteger(cond.b.value) ? { compared: cond.a, bound: cond.b.value } : null
}

/** True for a condition converted to 1 or 0, which is its representation already. */
export const isFlag = (e: Extract<Expr, { kind: 'select' }>): boolean =>
  e.then.kind === 'const' && e.then.value === 1 && e.else.kind === 'const' && e.else.value === 0
