/** Partial evaluation of expressions on the host: unknown values are NaN, and so are values that depend on them. */

import type { Expr } from '../../ir/expressions/expr.ts'
import { compileExpr, type Leaves, type Value } from '../../ir/values/evaluate.ts'

export type Numbers = ArrayLike<number>

/** The simulated state of one thread. */
export interface Frame {
  /** Values by name, including hardware indices. */
  readonly vars: Map<string, number>
  /** Registers that affect control flow, by name. */
  readonly registers: Map<string, Float64Array>
  /** Arrays that no launch writes, by name. */
  readonly arrays: ReadonlyMap<string, Numbers>
  /** Number of simulated iterations. */
  steps: number
  /** True if an unknown condition or trip count was assumed. */
  assumed: boolean
}

export const isUnknown = Number.isNaN

/** Evaluates a condition; unknown ones are assumed to hold. */
export function holds(value: number, f: Frame): boolean {
  if (!isUnknown(value)) return value !== 0
  f.assumed = true
  return true
}

const variable =
  (name: string): Value<Frame> =>
  (f) =>
    f.vars.get(name) ?? Number.NaN

const LEAVES: Leaves<Frame> = {
  partial: true,
  variable: (e) => variable(e.name),
  builtin: (e) => variable(e.axis),
  load(e, of) {
    const at = of(e.index[0]!)
    const { buffer } = e
    return (f) => (f.registers.get(buffer) ?? f.arrays.get(buffer))?.[at(f)] ?? Number.NaN
  },
  search: () => () => Number.NaN,
}

export const compileValue = (e: Expr): Value<Frame> => compileExpr(e, LEAVES)
