/**
 * Distillation of a dispatch into at most six schedules with conditions over sizes and statistics: a decision tree that imitates the
 * selection of the cost model, and can be written as a family of plans. Conditions compare times of schedules, fitted as sums.
 */

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
import type { Kernel } from '../../api/kernels/kernel.ts'
import { failWith, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { WORK_OPTIONS, Work, type WorkOptions } from '../../ast/work.ts'
import type { Branch } from '../../elaborate/index.ts'
import { hasIndptr } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { binary, constant, type Expr, int, variable } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { factText } from '../../ir/print/fact-text.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import type { Fact } from '../../ir/statements/loops.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import type { Plan, PlanFamily } from '../../plan/schema.ts'
import { sparseTensors } from '../../run/bind/binding-names.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { DeviceProperties } from '../../run/compile/device-limits.ts'
import {
  type Condition,
  type Evidence,
  isMet,
  lossesOf,
  type Measure,
  questionsOf,
  whole,
} from './conditions.ts'
import { cover } from './cover.ts'
import { fitTimes } from './fitted-times.ts'
import { grow, type Rule, rulesOf } from './rules.ts'
import { selectedVariants } from './selected-variants.ts'
import { syntheticInputs } from './synthetic-inputs.ts'

export interface DistilOptions extends WorkOptions {
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
/** Share of generated data on which schedules are selected. */
const EXPLORED = 1 / 4
/** Maximum number of schedules that are compared on all data. */
const SHORTLIST = 8

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
  expectOptions('distil', options, ['inputs', 'facts', 'plans', 'sizes', ...WORK_OPTIONS])
  const work = new Work(options)
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
  const model = modelFor(on)
  const sample = (inputs ?? syntheticInputs(source, sizes)).map((own) => ({ ...facts, ...own }))
  // Schedules are selected on a part of generated data, and the most promising ones compared on all.
  const explored = inputs || !model ? sample.length : Math.ceil(sample.length * EXPLORED)
  const { variants, selections } = await selectedVariants(kernel, on, sample.slice(0, explored), work)
  const requirements = variants.map((v) => v.kernel.compilation.loops.facts ?? [])
  const required = new Map(requirements.flat().map((fact) => [factText(fact), fact]))
  // Requirements are conditions, too, so that a branch may contain the data that a schedule fits.
  const values = sample.map((given) => {
    const own = resultOrError(() => valuesOn(on, given))
    if (own instanceof SptError) return null
    const met = [...required].map(([of, f]) => [of, isMet({ requires: [f] }, own) ? 1 : 0] as const)
    return new Map([...own, ...met])
  })
  const times = variants.map((): (number | null)[] => sample.map(() => null))
  const predict = async (cases: readonly number[], candidates: readonly number[]): Promise<void> => {
    for (const [n, k] of cases.entries()) {
      work.begin(
        'predict',
        `times of ${candidates.length} schedules for ${n + 1} of ${cases.length} data sets`,
      )
      await work.checkpoint()
      const own = values[k]
      if (!own) continue
      const fitting = candidates.filter((c) => isMet({ requires: requirements[c]! }, own))
      const kernels = fitting.map((c) => variants[c]!.kernel.compilation)
      const predicted = timesOf(kernel, on, sample[k]!, kernels)
      // Without predictions, only the selection itself is known.
      const isKnown = predicted.some((t) => t !== null)
      for (const [n, c] of fitting.entries())
        times[c]![k] = isKnown ? predicted[n]! : selections[k] === c ? 1 : null
    }
  }
  const evidenceOn = (cases: readonly number[], candidates: readonly number[]): Evidence => ({
    measures: [],
    cases: cases.map((k) => ({ group: `${k}`, values: values[k]! })),
    candidates: candidates.map((c) => ({
      times: cases.map((k) => times[c]![k]!),
      requires: requirements[c]!,
      foundOn: null,
    })),
  })
  const known = (cases: readonly number[]): readonly number[] =>
    cases.filter((k) => values[k] && times.some((own) => own[k] !== null))
  const all = [...sample.keys()]
  let candidates: readonly number[] = [...variants.keys()]
  for (const [cases, most] of [
    [all.slice(0, explored), SHORTLIST],
    [all, plans],
  ] as const) {
    await predict(cases, candidates)
    const best = cover(lossesOf(evidenceOn(known(cases), candidates)), most)
    candidates = best.map((k) => candidates[k]!)
  }
  const shared = evidenceOn(known(all), candidates)
  const data = shared.cases.map((c) => c.values)
  const fitted =
    model &&
    fitTimes(
      source,
      data,
      shared.candidates.map((c) => c.times),
    )
  const sums = new Map(fitted?.map((e, k) => [`time ${k}`, e]))
  const names = [...sums.keys()]
  const evidence: Evidence = {
    ...shared,
    measures: [
      ...[...required.keys()].map((of) => ({ of, per: null, isTruth: true })),
      ...(fitted
        ? names.flatMap((of, k) => names.slice(k + 1).map((per) => ({ of, per, isTruth: false })))
        : [...measures, ...ratios(source)]),
    ],
    cases: shared.cases.map(({ group, values: own }) => ({
      group,
      values: new Map([...own, ...[...sums].map(([name, e]) => [name, evaluate(e, own)] as const)]),
    })),
  }
  const rules = treeRules(evidence)
  const quantity = (name: string): Expr => sums.get(name) ?? variable(name, 'f64')
  const conditionExpr = ({ measure: { of, per }, above }: Condition): Expr => {
    const fact = required.get(of)
    if (fact) return factExpr(fact)
    const limit = constant(above, 'f64')
    return binary('gt', quantity(of), per ? binary('mul', limit, quantity(per)) : limit)
  }
  const { span } = choice
  const calls = choice.branches.flatMap((b) => b.calls)
  const branches = rules.map(({ conditions, candidate }): Branch => {
    const { schedule, args } = variants[candidates[candidate]!]!.selection
    const { requires } = evidence.candidates[candidate]!
    const exprs = [...conditions.map(conditionExpr), ...requires.map(factExpr)]
    const texts = new Map(exprs.map((expr) => [printExpr1(expr), expr]))
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
 * The dispatch of a kernel as a family of plans, or one plan if each run selects on the device; distilled if schedules depend on data. Throws SptError as `distil` and `familyPlan`.
 * `facts`: properties that a described device does not have. `deterministic`: without schedules that add floats in no fixed order.
 */
export async function familyOf(
  kernel: Kernel,
  on: DeviceProperties,
  { deterministic = false, ...options }: DistilOptions & { readonly deterministic?: boolean },
): Promise<Plan | PlanFamily> {
  const sizes = new Map(Object.entries(options.sizes ?? {}))
  const planOf = ({ open }: Kernel): Plan | PlanFamily => {
    if (!open)
      return failWith('choose/decided', `the schedule of ${kernel.name} has no open decisions`, DISPATCH)
    return familyPlan({ ...open, deterministic, sizes }, on, options.facts)
  }
  const plan = resultOrError(() => planOf(kernel))
  if (!(plan instanceof SptError)) return plan
  if (plan.code !== 'choose/open') throw plan
  return planOf(await distil(kernel, on.kind, options))
}

/** Ratios of sizes and statistics, which suit data of every size. */
function ratios({ params, axes }: Kernel1): readonly Measure[] {
  const sizes = params.flatMap((p) => (p.kind === 'size' && !p.measured ? [p.name] : []))
  const words = ['longest', 'mean', 'count', 'empty', 'shortest']
  const names = [...sizes, ...axes.filter(hasIndptr).flatMap((a) => words.map((w) => `${w}(${a.name})`))]
  return names.flatMap((of, k) => names.slice(k + 1).map((per) => ({ of, per, isTruth: false })))
}

/** The rules of a decision tree over all candidates. */
function treeRules(evidence: Evidence): readonly Rule[] {
  const losses = lossesOf(evidence)
  const part = whole(evidence)
  const groups = Math.min(GROUPS, evidence.cases.length / 8)
  return rulesOf(grow(evidence, losses, part, { gain: GAIN, leaves: LEAVES, groups }), evidence, losses, part)
}

/** Predicted times on data; `null` without predictions. */
function timesOf(
  { source }: Kernel,
  on: SelectionContext,
  given: SelectionInputs,
  kernels: readonly Compilation[],
): readonly (number | null)[] {
  const { statistics: _, capability, processors, features, resident, ...own } = given
  const { tensors, params } = valuesIn(source, own)
  const sizes = sizesOf(source, { tensors, params, resident: {} })
  return predictedTimes(modelFor(on), kindOf(on), source, sparseTensors(source, tensors), sizes, kernels)
}

const factExpr = ({ size, relation, by }: Fact): Expr =>
  relation === 'equal'
    ? binary('eq', variable(size), int(by))
    : binary('eq', binary('mod', variable(size), int(by)), int(0))
