/** Functions that compile and compare schedules. `loadPlan` loads none of them: its schedules are compiled. */
import { predictedTimes } from '../auto-schedule/predicted-times.ts'
import { fastestCandidates, keepsDeclaredFormats } from '../auto-schedule/schedule-candidates.ts'
import { PLAIN, plainReason } from '../auto-schedule/software-adapter-schedule.ts'
import { compileSteps } from '../built/compile-code.ts'
import { sumsOf, sumsText } from '../built/unordered-sums.ts'
import { traceOf } from '../kernels/nests.ts'
import { combinedBranches } from './combined-branches.ts'
import { closedBranches, closedSchedule, familyPlan, MOST_PLANS } from './family-plan.ts'

export const COMPILER = {
  MOST_PLANS,
  PLAIN,
  closedBranches,
  closedSchedule,
  combinedBranches,
  compileSteps,
  familyPlan,
  fastestCandidates,
  keepsDeclaredFormats,
  plainReason,
  predictedTimes,
  sumsOf,
  sumsText,
  traceOf,
} as const

export type Compiler = typeof COMPILER
