/** Steps over several loop nests: groups of loops or names, and the equivalent single steps. */

import type { Span } from '../diagnostics/span.ts'
import type { Step, StepArgument, StepValue, StepValues, WordStep } from '../nodes/nodes.ts'
import { checkSameLength } from './checks.ts'

/** Returns a group of values, or a single value itself. */
export const groupOf = (items: readonly StepValue[], span: Span): StepValue =>
  items.length === 1 ? items[0]! : { kind: 'group', items, span }

/** Applies a function to a value, or to each value of a group. */
export const mapGroup = (v: StepValue, f: (v: StepValue) => StepValue): StepValue =>
  v.kind === 'group' ? { ...v, items: v.items.map(f) } : f(v)

/** Returns the groups in the arguments of a step, in source order. */
export const groupsIn = (args: readonly StepArgument[]): readonly StepValues[] =>
  args.flatMap((a) => (typeof a === 'string' ? [] : groupsOf(a.value)))

const groupsOf = (v: StepValue): readonly StepValues[] =>
  v.kind === 'group' ? [v] : v.kind === 'list' ? v.items.flatMap(groupsOf) : []

/** Checks that the groups of a step have the same length. @throws SptError `parse/arity` */
export function checkGroups(args: readonly StepArgument[]): void {
  const [first, ...others] = groupsIn(args).map((g) => ({
    what: 'name',
    length: g.items.length,
    span: g.span,
  }))
  for (const other of others) checkSameLength(first!, other)
}

/**
 * Returns the equivalent steps without groups, in order. The span of a step is the span of its loop nest or name in the
 * group.
 */
export const writtenOut = (steps: readonly Step[]): readonly Step[] =>
  steps.flatMap((s): readonly Step[] => {
    if (s.kind === 'step') return singleSteps(s)
    return [s.kind === 'each' ? { ...s, steps: writtenOut(s.steps) } : s]
  })

function singleSteps(step: WordStep): readonly WordStep[] {
  const [first] = groupsIn(step.args)
  if (!first) return [step]
  return first.items.map((item, k) => ({
    ...step,
    args: step.args.map((a) => (typeof a === 'string' ? a : { ...a, value: single(a.value, k) })),
    span: placeIn(item) ?? step.span,
  }))
}

/** Returns the span of a value of a group: of its loop nest, if the value names a loop nest. */
function placeIn(v: StepValue): Span | undefined {
  if (v.kind === 'loop' || v.kind === 'binding') return v.loop.nest?.span ?? v.loop.span
  if (v.kind === 'name') return v.name.span
  return v.kind === 'list' && v.items[0] ? placeIn(v.items[0]) : undefined
}

function single(v: StepValue, k: number): StepValue {
  if (v.kind === 'group') return v.items[k]!
  return v.kind === 'list' ? { ...v, items: v.items.map((x) => single(x, k)) } : v
}
