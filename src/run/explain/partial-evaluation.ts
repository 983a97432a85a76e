/** Values of expressions on the host, as far as they are known: what is not is NaN, and so is all that depends on it. */
import { compileExpr, type Leaves, type Value } from '../../ir/evaluate.ts'
import type { Expr } from '../../ir/expr.ts'

export type Numbers = ArrayLike<number>

/** What one thread knows. */
export interface Frame {
  /** Hardware indices are among them, under their names. */
  readonly vars: Map<string, number>
  /** Its own registers, as far as control flow depends on them. */
  readonly registers: Map<string, Float64Array>
  /** Arrays that no launch writes. */
  readonly arrays: ReadonlyMap<string, Numbers>
  /** Iterations followed. */
  steps: number
  /** Whether something that was not known has been assumed. */
  assumed: boolean
}

export const isUnknown = Number.isNaN

/** Whether it holds; what is not known is assumed to. */
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
