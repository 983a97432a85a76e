/** Stage III with its range checks. */
import { rangeChecks } from '../../src/analysis/integers/range-checks.ts'
import type { Kernel3 } from '../../src/ir/statements/loops.ts'

export const checked = (plan: Kernel3) => ({ ...plan, checks: rangeChecks(plan) })
