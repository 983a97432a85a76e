/** Steps on coordinates (Stage I) as plain data; iterators are named as loops are. */
import { fail, type SptError } from '../../ast/diagnostic.ts'
import { remembered } from '../../ir/remembered.ts'
import type { Kernel1 } from '../../ir/stage1.ts'
import type { StepIn } from '../primitive.ts'
import { checkStep, stepText } from '../step-data.ts'
import type { LoopStep } from '../steps.ts'
import type { CoordPrimitive } from './primitive.ts'
import { COORD_STEPS } from './primitives.ts'

export type CoordStep = StepIn<typeof COORD_STEPS>

/** What steps made of a kernel, by their texts: points of a space begin with one of a few formats. */
const madeOf = remembered((_: Kernel1): Map<string, Kernel1> => new Map())
/** Arguments of formats are numbers: so many results are kept of each kernel. */
const MOST_MADE = 64

/** Applies one step. @throws SptError `schedule/…`, `format/…` where it could change the result */
export function applyCoordStep(kernel: Kernel1, step: CoordStep): Kernel1 {
  checkStep(step, COORD_STEPS, ' on coordinates')
  const made = madeOf(kernel)
  const key = coordStepsKey([step], true)
  const before = made.get(key)
  if (before) return before
  const next = (COORD_STEPS[step.kind] as CoordPrimitive<CoordStep>).apply(kernel, step)
  if (made.size >= MOST_MADE) made.clear()
  made.set(key, next)
  return next
}

/** A text that is equal for equal steps; `spans`: that stand in one place of a text, too. */
export const coordStepsKey = (steps: readonly CoordStep[], spans: boolean): string =>
  JSON.stringify(steps, (name, value: unknown) =>
    name === 'span' && !spans ? undefined : name === 'format' ? numberOf(value as object) : value,
  )

/** Formats of several programs may have one name. */
let formats = 0
const numberOf = remembered((_: object): number => formats++)

/** A step as the language writes it; of formats, those that are declared. */
export const printCoordStep = (step: CoordStep): string => stepText(COORD_STEPS[step.kind], step)

/** Whether a step on coordinates has the word and the fields of one on loops. */
export const isLoopStep = (s: CoordStep | LoopStep): s is LoopStep =>
  s?.kind === 'fuse' || s?.kind === 'reorder'

/** Loops over such axes may be fused all the same, as loops. */
export const isOfOtherAxes = ({ diagnostics }: SptError): boolean =>
  diagnostics[0]?.code === 'schedule/not-a-chain'

/** The loops would have to be made anew, and the steps on them would be lost. */
export const refuseLate = (s: CoordStep): never =>
  fail({
    code: 'schedule/too-late',
    message: `${s.kind} acts on coordinates and comes after a step on loops`,
    ...(s.span ? { span: s.span } : {}),
    expected: `${s.kind} before the first step on loops`,
    hint: 'move it to the front',
  })
