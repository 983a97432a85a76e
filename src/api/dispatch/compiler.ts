/** Functions that compile and compare schedules. `loadPlan` loads none of them: its schedules are compiled. */
import { fastestCandidates, keepsDeclaredFormats } from '../auto-schedule/schedule-candidates.ts'
import { PLAIN, plainReason } from '../auto-schedule/software-adapter-schedule.ts'
import { compileSteps } from '../built/compile-code.ts'
import { traceOf } from '../kernels/nests.ts'
import { combinedBranches } from './combined-branches.ts'
import { closedBranches, closedSchedule, familyPlan, MOST_PLANS } from './family-plan.ts'
import { exclusionOf, fastestOf } from './schedule-comparison.ts'

export const COMPILER = {
  MOST_PLANS,
  PLAIN,
  closedBranches,
  closedSchedule,
  combinedBranches,
  compileSteps,
  exclusionOf,
  familyPlan,
  fastestCandidates,
  fastestOf,
  keepsDeclaredFormats,
  plainReason,
  traceOf,
} as const

export type Compiler = typeof COMPILER
