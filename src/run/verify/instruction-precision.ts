/** Precision of a plan's products: instructions may use fewer mantissa bits of a factor than its type has (tf32). */
import type { Plan } from '../../ir/statements/loops.ts'
import { walkStmts } from '../../ir/statements/tree.ts'
import type { RefOptions } from '../../reference/index.ts'

/** Returns the fewest mantissa bits of any product, as an option of the reference; empty if every product is exact in its type. */
export function precisionOf(plan: Plan): Pick<RefOptions, 'precision'> {
  let precision: number | undefined
  for (const step of plan.steps)
    if (step.kind === 'launch')
      walkStmts(step.body, (s) => {
        if (s.kind === 'instr' && s.precision !== undefined)
          precision = Math.min(precision ?? 23, s.precision)
      })
  return precision === undefined ? {} : { precision }
}
