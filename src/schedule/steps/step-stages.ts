/** The stages of steps: on coordinates, or on loops, which exclude later steps on coordinates. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Schedule } from '../../elaborate/index.ts'
import { COORD_STEPS } from '../coordinates/steps.ts'
import { endsCoordinates, LOOP_STEPS } from '../primitives.ts'
import { usesOf } from './step-fields.ts'

/** True for a step that uses a schedule of a called kernel. */
export const isOfCallees = (s: Ast.Step): boolean => s.kind === 'use' && s.kernel !== undefined

/** Steps on coordinates are excluded after the step; `onLoops`: whether they are excluded before it. */
export function isOnLoops(
  step: Ast.Step,
  schedule: Schedule,
  onLoops: boolean,
  known: Map<Schedule, boolean> = new Map(),
): boolean {
  switch (step.kind) {
    case 'as':
      return false
    case 'merge_parts':
      return true
    case 'step':
      return !isOnCoords(step.word, onLoops) && endsCoordinates(step.word)
    case 'each':
      return step.what === 'nest' || step.steps.some((s) => isOnLoops(s, schedule, onLoops, known))
    case 'use': {
      return usesOf(step, schedule).some((used) => {
        const is = known.get(used) ?? used.steps.some((s) => isOnLoops(s, used, onLoops, known))
        known.set(used, is)
        return is
      })
    }
  }
}

/** Returns whether a word acts on coordinates. Words of both stages do, until steps on coordinates are excluded. */
export const isOnCoords = (word: string, onLoops: boolean): boolean =>
  Object.hasOwn(COORD_STEPS, word) && !(onLoops && Object.hasOwn(LOOP_STEPS, word))
