/** A step on coordinates (Stage I) as plain data. Iterators are named like loops. */
import { failAt, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { withDiagnostics } from '../../ast/diagnostics/with-diagnostics.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { rewriteStmts1 } from '../../ir/coordinates/stage1-tree.ts'
import { memoize } from '../../ir/memoize.ts'
import type { Primitive, StepIn } from '../primitive.ts'
import type { Located } from '../refusals.ts'
import { checkStep, type LoopStep, stepText } from '../steps/step-data.ts'
import { as } from './as/as.ts'
import { attach } from './attach.ts'
import { drop } from './drop.ts'
import { fuse } from './fuse.ts'
import { isStoredOverLists } from './live/checks.ts'
import { mask } from './mask.ts'
import { reorder } from './reorder.ts'

export type CoordStep = StepIn<typeof COORD_STEPS>

/** Results of steps on a kernel, by the text of the step: points of a search space share a few formats. */
const madeOf = memoize((_: Kernel1): Map<string, Kernel1> => new Map())
/** Number of cached results for a kernel; formats have numeric arguments, so there may be many. */
const MOST_MADE = 64

/** Applies one step. @throws SptError `schedule/…`, `format/…` if the step could change the result */
function applyCoordStep(kernel: Kernel1, step: CoordStep): Kernel1 {
  checkStep(step, COORD_STEPS, ' on coordinates')
  const made = madeOf(kernel)
  const key = coordStepsKey([step], true)
  const before = made.get(key)
  if (before) return before
  const next = applyLocated(kernel, step)
  if (made.size >= MOST_MADE) made.clear()
  made.set(key, next)
  return next
}

/**
 * Applies `step` after `steps`; `kernels` are the states before and after the steps. `H as … live` scans a dense H: if an
 * earlier `P as … live` stores H over the lists of P, the step of H is applied before the step of P. Both orders of two such
 * steps thus give the same kernel.
 * @throws SptError as for a single step. A note gives the reason if a later step is illegal in the new order.
 */
export function applyNextStep(
  kernels: readonly Kernel1[],
  steps: readonly CoordStep[],
  step: CoordStep,
): Kernel1 {
  const last = kernels[steps.length]!
  if (!isOverLists(last, step)) return applyCoordStep(last, step)
  let order: readonly CoordStep[] = []
  let states = kernels.slice(0, 1)
  for (const s of [...steps, step]) {
    const over = states.findIndex((k) => isOverLists(k, s))
    const at = over < 0 ? order.length : over - 1
    const later = order.slice(at)
    states = [...states.slice(0, at + 1), applyCoordStep(states[at]!, s)]
    for (const x of later) {
      const next = resultOrError(() => applyCoordStep(states.at(-1)!, x))
      if (next instanceof SptError) return refuseMove(last, step, next)
      states.push(next)
    }
    order = [...order.slice(0, at), s, ...later]
  }
  return states.at(-1)!
}

/** Returns whether a `live` step is about a tensor that another `live` step stores over lists. */
const isOverLists = (kernel: Kernel1, step: CoordStep): boolean =>
  step?.kind === 'as' && step.live !== undefined && isStoredOverLists(kernel, step.buffer)

function refuseMove(kernel: Kernel1, step: CoordStep, { diagnostics }: SptError): Kernel1 {
  const note = `in that order, a later step is rejected: ${diagnostics[0]!.message}`
  return withDiagnostics(
    (d) => ({ ...d, notes: [...(d.notes ?? []), note] }),
    () => applyCoordStep(kernel, step),
  )
}

/** Applies the step. Its errors and new statements without a location get that of the step. */
function applyLocated(kernel: Kernel1, step: CoordStep): Kernel1 {
  const { span } = step
  const primitive = COORD_STEPS[step.kind] as Primitive<CoordStep, Kernel1, Kernel1>
  if (!span) return primitive.apply(kernel, step)
  const next = withDiagnostics(
    (d) => (d.span ? d : { ...d, span }),
    () => primitive.apply(kernel, step),
  )
  return { ...next, body: rewriteStmts1(next.body, (s) => (s.span ? undefined : { ...s, span })) }
}

/** Returns a text that is equal for equal steps; with `spans`, equal only for steps at the same source position. */
export const coordStepsKey = (steps: readonly CoordStep[], spans: boolean): string =>
  JSON.stringify(steps, (name, value: unknown) =>
    name === 'span' && !spans ? undefined : name === 'format' ? numberOf(value as object) : value,
  )

/** Number of known formats. Formats of different programs may have the same name, so each has a number. */
let formats = 0
const numberOf = memoize((_: object): number => formats++)

/** Returns the step as `.spt` text; for declared formats only. */
export const printCoordStep = (step: CoordStep): string => stepText(COORD_STEPS[step.kind], step)

/** Returns whether a step on coordinates has the word and the fields of a step on loops. */
export const isLoopStep = (s: CoordStep | LoopStep): s is LoopStep =>
  s?.kind === 'fuse' || s?.kind === 'reorder'

/** Returns whether a `fuse` failed because the axes are not a chain. Their loops may still be fused. */
export const isOfOtherAxes = ({ diagnostics }: SptError): boolean =>
  diagnostics[0]?.code === 'schedule/not-a-chain'

/** Throws `schedule/too-late`: the step would regenerate the loops and discard the steps on them. */
export const refuseLate = (word: string, at: Located, place = 'the front'): never =>
  failAt('schedule/too-late', at.span, {
    message: `${word} acts on coordinates and comes after a step on loops`,
    expected: `${word} before the first step on loops`,
    hint: `move ${word} to ${place}`,
  })

// The table of primitives on coordinates, from which their syntax, methods and documentation are derived.

export const COORD_STEPS = { as, reorder, fuse, attach, mask, drop }
