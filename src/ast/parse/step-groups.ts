/** Steps over several loop nests: groups of loops or names, and the equivalent single steps. */
import type { Span } from '../diagnostics/span.ts'
import type {
  Expr,
  NamedArg,
  Step,
  StepArgument,
  StepValue,
  UseArgument,
  UseStep,
  WordStep,
} from '../nodes/nodes.ts'
import { checkSameLength } from './checks.ts'

export const groupOf = (items: readonly StepValue[], span: Span): StepValue =>
  items.length === 1 ? items[0]! : { kind: 'group', items, span }

export const mapGroup = (v: StepValue, f: (v: StepValue) => StepValue): StepValue =>
  v.kind === 'group' ? { ...v, items: v.items.map(f) } : f(v)

type Group = Extract<StepValue | UseArgument, { kind: 'group' }>

type Argument = StepArgument | NamedArg<UseArgument>

const groupsIn = (a: Argument): readonly Group[] => (typeof a === 'string' ? [] : groupsOf(a.value))

const groupsOf = (v: StepValue | UseArgument): readonly Group[] =>
  v.kind === 'group' ? [v] : v.kind === 'list' ? v.items.flatMap(groupsOf) : []

const isInList = (g: Group, a: Argument): boolean => typeof a !== 'string' && a.value !== g

/**
 * Returns the arguments, whose groups have the same length, except for groups in a list. @throws SptError
 * `parse/arity`
 */
export function checkGroups<A extends Argument>(args: readonly A[]): readonly A[] {
  const groups = args.flatMap((a) => groupsIn(a).filter((g) => !isInList(g, a)))
  const [first, ...others] = groups.map((g) => ({ what: 'name', length: g.items.length, span: g.span }))
  for (const other of others) checkSameLength(first!, other)
  return args
}

/**
 * Returns the equivalent steps without groups, in order. The span of a step is the span of its loop nest or name in the
 * group.
 */
export const writtenOut = (steps: readonly Step[]): readonly Step[] =>
  steps.flatMap((s): readonly Step[] => {
    if (s.kind === 'step') return singleSteps(s)
    if (s.kind === 'use') return singleUses(s)
    return [s.kind === 'each' ? { ...s, steps: writtenOut(s.steps) } : s]
  })

function singleSteps(step: WordStep): readonly WordStep[] {
  const groups = step.args.flatMap(groupsIn)
  if (groups.length === 0) return [step]
  return Array.from({ length: Math.max(...groups.map((g) => g.items.length)) }, (_, k) => ({
    ...step,
    args: step.args.map((a) => (typeof a === 'string' ? a : { ...a, value: single(a.value, k) })),
    span: placeIn(groups.find((g) => g.items[k])!.items[k]!) ?? step.span,
  }))
}

/** Returns step k of a value. In a list with groups, step k has the k-th members, and the first step the other items. */
function single(v: StepValue, k: number): StepValue {
  if (v.kind === 'group') return v.items[k]!
  if (v.kind !== 'list' || groupsOf(v).length === 0) return v
  const items = v.items.map((x) => (x.kind === 'group' ? x.items[k] : k === 0 ? x : undefined))
  return { ...v, items: items.filter((x) => x !== undefined) }
}

export function singleUses(step: UseStep): readonly UseStep[] {
  const [first] = step.args.flatMap(groupsIn)
  if (!first) return [step]
  return first.items.map((item, k) => ({
    ...step,
    args: step.args.map((a) => (a.value.kind === 'group' ? { ...a, value: a.value.items[k]! } : a)),
    span: placeIn(item) ?? step.span,
  }))
}

/** Returns the span of a value of a group: of its loop nest, if the value names a loop nest. */
function placeIn(v: StepValue | Expr): Span | undefined {
  if (v.kind === 'loop' || v.kind === 'binding') return v.loop.nest?.span ?? v.loop.span
  if (v.kind === 'field') return v.object.span
  if (v.kind === 'name') return 'of' in v ? v.name.span : v.span
  return v.kind === 'list' && v.items[0] ? placeIn(v.items[0]) : undefined
}
