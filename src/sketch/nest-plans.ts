/**
 * Plans of all nests of a kernel. Each nest has its own alternatives, and a trial decides which are legal: a rejected
 * alternative never affects another nest.
 */
import type { SptError } from '../ast/diagnostics/diagnostic.ts'
import { groupBy } from '../ir/memoize.ts'
import type { Kernel2 } from '../ir/statements/loops.ts'
import { Decisions, type Draft, type PartialPoint, type Plan, type Schedulable } from './draft.ts'
import { chooseEpilogues, producersOf } from './epilogues.ts'
import { chooseMerges, mergeSteps } from './launch-merges.ts'
import type { BlockShape, Rule, RuleContext, RulesOf } from './partition.ts'
import type { NestShape } from './strands.ts'
import { inSequence, type Memo, type NestSteps, Trials } from './trials.ts'

/** A nest that no rule schedules; it runs as by `parallel()` or unscheduled. */
export interface PlainNest {
  readonly nest: string
  readonly reason: string
}

export interface NestPlans {
  /** Nests that have no plan, with the reason. */
  readonly plain: readonly PlainNest[]
  /**
   * Applies the plans, nest by nest.
   * @param reject - Receives the error of a nest, which then stays as it is; default: throws the error
   */
  apply<K extends Schedulable<K>>(draft: Draft<K>, reject?: (nest: string, error: SptError) => void): void
}

interface NestPlan {
  readonly nest: NestShape
  readonly rule: string
  readonly shape: BlockShape
  /** Nests that are computed where an element of this nest is complete. */
  readonly epilogues: readonly NestShape[]
}

export function planNests(
  nests: readonly NestShape[],
  kernel: Kernel2,
  context: RuleContext,
  rulesOf: RulesOf,
  memo: Memo,
): NestPlans {
  const d = context.decisions
  const trials = new Trials(kernel, memo)
  const selection = new Map<NestShape, Rule>()
  const plain: PlainNest[] = []
  const guess = (nest: NestShape, rule: Rule, epilogues: readonly NestShape[] = []): NestSteps => {
    const shape = { name: nest.prefix, isMixed: false }
    return stepsOf({ nest, rule: rule.name, shape, epilogues }, {}, context, rulesOf)
  }
  const select = (nest: NestShape): void => {
    const rules = rulesOf(nest, context)
    const error = rules[0] && trials.rejection(guess(nest, rules[0]))
    const legal = error ? rules.filter((r) => !trials.rejection(guess(nest, r))) : rules
    const names = legal.map((r) => r.name)
    if (names.length > 0) selection.set(nest, legal[names.indexOf(d.form(`${nest.prefix}.sketch`, names))]!)
    else if (nest.strands.length > 0) plain.push({ nest: nest.name, reason: reasonOf(error) })
  }
  const producers = producersOf(nests, kernel)
  for (const nest of nests) if (!producers.has(nest)) select(nest)
  const destinations = chooseEpilogues(producers, d, (producer, epilogue) => {
    const rule = selection.get(producer)
    return rule?.holds === true && !trials.rejection(guess(producer, rule, [epilogue]))
  })
  for (const nest of producers.keys()) if (!destinations.has(nest)) select(nest)
  const epilogues = groupBy(destinations.keys(), (nest) => destinations.get(nest)!)
  const isLegal = (run: readonly NestShape[]): boolean => {
    const plans = run.map((n) => guess(n, selection.get(n)!))
    return run.every((n) => !epilogues.has(n)) && !trials.rejection(inSequence([...plans, mergeSteps(run)]))
  }
  const merges = context.threads > 1 ? chooseMerges(nests, selection, kernel, d, isLegal) : []
  const plans = [...selection].map(([nest, { name: rule }]): NestSteps => {
    const merge = merges.find((m) => m.nests.includes(nest))
    const rules = merge?.nests.map((n) => selection.get(n)!.name)
    const shape = { name: merge?.prefix ?? nest.prefix, isMixed: new Set(rules).size > 1 }
    // The context's decisions record those of the plan.
    rulesOf(nest, context)
      .find((r) => r.name === rule)!
      .plan(shape)
    const plan = { nest, rule, shape, epilogues: epilogues.get(nest) ?? [] }
    return stepsOf(plan, d.values, context, rulesOf)
  })
  return {
    plain,
    apply(draft, reject) {
      trials.apply(draft, plans, (error, names) => {
        if (!reject) throw error
        for (const { name } of names) reject(name, error)
      })
      const merged = merges.map((m) => mergeSteps(m.order))
      trials.apply(draft, merged, (error) => {
        if (!reject) throw error
      })
    },
  }
}

/** The steps of a plan. @param given - Values of decisions; the others have their heuristic default */
function stepsOf(
  { nest, rule, shape, epilogues }: NestPlan,
  given: PartialPoint,
  context: RuleContext,
  rulesOf: RulesOf,
): NestSteps {
  const planOn = (own: NestShape, decisions: Decisions): Planned | undefined => {
    const found = rulesOf(own, { ...context, decisions }).find((r) => r.name === rule)
    return found && { atomic: found.atomic, plan: found.plan(shape) }
  }
  const decisions = new Decisions(given, true)
  planOn(nest, decisions)
  const { values } = decisions
  return {
    nests: [nest, ...epilogues],
    key: JSON.stringify([rule, shape, values]),
    on([own, ...others]) {
      const planned = planOn(own!, new Decisions(values, true))
      return planned ? (draft) => scheduleNest(draft, own!, planned, others) : null
    },
  }
}

type Planned = Pick<Rule, 'atomic'> & { readonly plan: Plan }

function scheduleNest<K extends Schedulable<K>>(
  draft: Draft<K>,
  nest: NestShape,
  { atomic, plan }: Planned,
  epilogues: readonly NestShape[],
): void {
  for (const buffer of atomic) draft.atomic(buffer)
  const arranged = plan(draft)
  const at = arranged.completeAt === undefined ? nest.top : { var: arranged.completeAt }
  for (const epilogue of epilogues) draft.step({ kind: 'compute_at', nest: epilogue.name, at })
  arranged.finish(draft)
}

export const reasonOf = (error: SptError | null | undefined): string =>
  error?.diagnostics[0]?.message ?? 'no sketch fits its loops'
