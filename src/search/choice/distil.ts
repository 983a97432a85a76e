/**
 * Distillation of a dispatch into at most six schedules with conditions over sizes and statistics: a decision tree that imitates the
 * selection of the cost model, and can be written as a family of plans.
 */

import { factText } from '../../analysis/integers/facts.ts'
import { predictedTimes } from '../../api/auto-schedule/predicted-times.ts'
import {
  type DeviceFacts,
  kindOf,
  modelFor,
  type SelectionContext,
  type SelectionInputs,
} from '../../api/dispatch/device-facts.ts'
import { closedBranches, familyPlan, MOST_PLANS, rejectLive } from '../../api/dispatch/family-plan.ts'
import { checkSizes, expectArgument, expectOptions } from '../../api/inputs/argument-checks.ts'
import { sizesOf, valuesIn } from '../../api/inputs/bound-inputs.ts'
import { flatInputs } from '../../api/inputs/flat-inputs.ts'
import type { Kernel, Variant } from '../../api/kernels/kernel.ts'
import { failWith, resultOrError, SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import type { Branch } from '../../elaborate/index.ts'
import { hasIndptr } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { binary, constant, type Expr, int, variable } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import type { Fact } from '../../ir/statements/loops.ts'
import type { PlanFamily } from '../../plan/schema.ts'
import { sparseTensors } from '../../run/bind/binding-names.ts'
import type { DeviceProperties } from '../../run/compile/device-limits.ts'
import {
  CANNOT_RUN,
  type Condition,
  type Evidence,
  isMet,
  lossesOf,
  type Measure,
  questionsOf,
  whole,
} from './conditions.ts'
import { grow, type Rule, rulesOf } from './rules.ts'
import { syntheticInputs } from './synthetic-inputs.ts'

export interface DistilOptions {
  /** Data on which selections are imitated; default: synthetic matrices of several sizes and distributions. */
  readonly inputs?: readonly SelectionInputs[]
  /** Properties of the device, if only its kind is given. */
  readonly facts?: DeviceFacts
  /** Sizes that all data have, such as the number of features. Schedules that are specialised for a size fit no other size. */
  readonly sizes?: Readonly<Record<string, number>>
  /** Maximum number of schedules; default 6. */
  readonly plans?: number
}

const DISPATCH = { expected: 'a kernel with a dispatch', hint: "kernel.schedule('auto')" }

/** Minimum gain of a branch, as the mean of log(time / best). */
const GAIN = 0.0001
const LEAVES = 32
/** Minimum number of cases of a branch: smaller branches do not hold on other data. */
const GROUPS = 12

/**
 * Returns the kernel with a dispatch of at most `plans` schedules, whose conditions select nearly as the kernel's own dispatch does on a
 * device. Throws SptError `choose/decided` without a dispatch, `choose/open` if no data fit, `api/argument`,
 * and as `choose`.
 */
export async function distil(
  kernel: Kernel,
  on: SelectionContext,
  options: DistilOptions = {},
): Promise<Kernel> {
  expectOptions('distil', options, ['inputs', 'facts', 'plans', 'sizes'])
  const { inputs, facts = {}, plans = MOST_PLANS, sizes = {} } = options
  const isMany = inputs === undefined || (Array.isArray(inputs) && inputs.length > 0)
  expectArgument(isMany, 'the inputs of distil', inputs, 'an array of one input or more')
  expectArgument(
    Number.isSafeInteger(plans) && plans >= 1,
    'the plans of distil',
    plans,
    'an integer from 1 on',
  )
  checkSizes(kernel.source, sizes)
  const { open, source } = kernel
  if (!open)
    return failWith('choose/decided', `the schedule of ${kernel.name} has no open decisions`, DISPATCH)
  const { choice } = open
  rejectLive(open, closedBranches(open, on, { ...inputs?.[0], ...facts }))
  const { measures, statistics, valuesOn } = questionsOf(kernel)
  const isData = (args: readonly (Expr | null)[]): boolean =>
    args.some((a) => a && [...freeVars(a)].some((v) => choice.statistics.has(v)))
  const calls = choice.branches.flatMap((b) => b.calls)
  const selected = new Map<string, Variant>()
  const cases: { readonly inputs: SelectionInputs; readonly chosen: string }[] = []
  let failure: SptError | undefined
  for (const own of inputs ?? syntheticInputs(source, sizes)) {
    const given = { ...facts, ...own }
    const variant = await valueOrError(() => kernel.choose(on, ...flatInputs(given)))
    if (variant instanceof SptError) {
      failure = variant
      continue
    }
    const { schedule, args } = variant.selection
    const chosen = JSON.stringify([schedule, args])
    cases.push({ inputs: given, chosen })
    // Arguments that depend on the data fit no other data.
    if (calls.some((c) => c.schedule.name === schedule && !isData(c.args))) selected.set(chosen, variant)
  }
  if (selected.size === 0) throw failure!
  const names = [...selected.keys()]
  const variants = [...selected.values()]
  const kernels = variants.map((v) => v.kernel.compilation)
  const model = modelFor(on)
  const times = cases.map(({ inputs: given, chosen }) => {
    const { statistics: _, capability, processors, features, resident, ...own } = given
    const { tensors, params } = valuesIn(source, own)
    const all = sizesOf(source, { tensors, params, resident: {} })
    const predicted = predictedTimes(model, kindOf(on), source, sparseTensors(source, tensors), all, kernels)
    // Without predictions, only the selection itself is known.
    return predicted.every((t) => t === null) ? names.map((n) => (n === chosen ? 1 : null)) : predicted
  })
  const requirements = kernels.map((k) => k.loops.facts ?? [])
  const required = new Map(requirements.flat().map((fact) => [factText(fact), fact]))
  // Requirements are conditions, too, so that a branch may contain the data that a schedule fits.
  const values = cases.map(({ inputs: given }) => {
    const own = valuesOn(on, given)
    const met = [...required].map(([of, f]) => [of, isMet({ requires: [f] }, own) ? 1 : 0] as const)
    return new Map([...own, ...met])
  })
  const evidence: Evidence = {
    measures: [
      ...[...required.keys()].map((of) => ({ of, per: null, isTruth: true })),
      ...measures,
      ...ratios(kernel.source),
    ],
    cases: values.map((own, k) => ({ group: `${k}`, values: own })),
    candidates: requirements.map((requires, c) => ({
      times: times.map((t, k) => (isMet({ requires }, values[k]!) ? t[c]! : null)),
      requires,
      foundOn: null,
    })),
  }
  const rules = bestRules(evidence, plans)
  const conditionExpr = ({ measure: { of, per }, above }: Condition): Expr => {
    const fact = required.get(of)
    if (fact) return factExpr(fact)
    const limit = constant(above, 'f64')
    return binary('gt', variable(of, 'f64'), per ? binary('mul', limit, variable(per, 'f64')) : limit)
  }
  const { span } = choice
  const branches = rules.map(({ conditions, candidate }): Branch => {
    const { schedule, args } = variants[candidate]!.selection
    const all = [...conditions.map(conditionExpr), ...requirements[candidate]!.map(factExpr)]
    const texts = new Map(all.map((expr) => [printExpr1(expr), expr]))
    const called = calls.find((c) => c.schedule.name === schedule)!.schedule
    return {
      conditions: [...texts].map(([text, expr]) => ({ expr, text, span })),
      calls: [{ schedule: called, args: args.map((a) => int(a)), span }],
      span,
    }
  })
  const used = new Set(branches.flatMap((b) => b.conditions.flatMap((c) => [...freeVars(c.expr)])))
  return kernel.dispatching({
    ...choice,
    params: [],
    branches,
    statistics: new Map([...statistics].filter(([name]) => used.has(name))),
    device: new Map(),
    table: null,
  })
}

/**
 * The dispatch of a kernel as a family of plans, distilled if schedules depend on data. Throws SptError as `distil` and `familyPlan`.
 * `facts`: properties that a described device does not have. `deterministic`: without schedules that add floats in no fixed order.
 */
export async function familyOf(
  kernel: Kernel,
  on: DeviceProperties,
  facts: DeviceFacts,
  deterministic = false,
): Promise<PlanFamily> {
  const planOf = ({ open }: Kernel): PlanFamily => {
    if (!open)
      return failWith('choose/decided', `the schedule of ${kernel.name} has no open decisions`, DISPATCH)
    return familyPlan({ ...open, deterministic }, on, facts)
  }
  const plan = resultOrError(() => planOf(kernel))
  if (!(plan instanceof SptError)) return plan
  if (plan.diagnostics[0]!.code !== 'choose/open') throw plan
  return planOf(await distil(kernel, on.kind, { facts }))
}

/** Ratios of sizes and statistics, which suit data of every size. */
function ratios({ params, axes }: Kernel1): readonly Measure[] {
  const sizes = params.flatMap((p) => (p.kind === 'size' && !p.measured ? [p.name] : []))
  const words = ['longest', 'mean', 'count', 'empty', 'shortest']
  const names = [...sizes, ...axes.filter(hasIndptr).flatMap((a) => words.map((w) => `${w}(${a.name})`))]
  return names.flatMap((of, k) => names.slice(k + 1).map((per) => ({ of, per, isTruth: false })))
}

/** The rules of a tree over at most `most` candidates: those with the least loss if each case takes the best of them, added greedily. */
function bestRules(evidence: Evidence, most: number): readonly Rule[] {
  const losses = lossesOf(evidence)
  const { cases } = evidence
  const least = cases.map(() => CANNOT_RUN)
  const candidates: number[] = []
  while (candidates.length < most) {
    const sums = losses.map((own) => least.reduce((n, l, c) => n + Math.min(l, own[c]!), 0))
    const next = sums.indexOf(Math.min(...sums))
    if (candidates.includes(next)) break
    candidates.push(next)
    for (const c of cases.keys()) least[c] = Math.min(least[c]!, losses[next]![c]!)
  }
  const part = { ...whole(evidence), candidates }
  const groups = Math.min(GROUPS, cases.length / 8)
  return rulesOf(grow(evidence, losses, part, { gain: GAIN, leaves: LEAVES, groups }), evidence, losses, part)
}

const factExpr = ({ size, relation, by }: Fact): Expr =>
  relation === 'equal'
    ? binary('eq', variable(size), int(by))
    : binary('eq', binary('mod', variable(size), int(by)), int(0))
