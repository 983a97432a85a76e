/** How precise the products of a plan are: declared instructions may keep fewer bits of a factor than its type (tf32). */
import type { Plan } from '../ir/loops.ts'
import { walkStmts } from '../ir/tree.ts'
import type { RefOptions } from '../reference/index.ts'

/** What the reference is given for it: the fewest bits; nothing where every product has those of its type. */
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
