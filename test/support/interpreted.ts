/** Schedules that no device here runs, statement by statement. */

import { type Memory, runLaunches, runLoops } from '../../src/api/stages/stage-check.ts'
import type { Kernel } from '../../src/node.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'

/** What is in memory after the loops; what nobody writes is poison. */
export const interpreted = ({ compilation: c }: Kernel, inputs: Inputs): Memory =>
  runLoops(c.loops, bindInputs(c.kernel, inputs), 'backward')

/** The same of the plan, where an access outside of an array is an error. */
export const interpretedPlan = ({ compilation: c }: Kernel, inputs: Inputs): Memory =>
  runLaunches(c.plan, bindInputs(c.kernel, inputs))
