/**
 * Distillation of a dispatch into at most six schedules with conditions over sizes and statistics: a decision tree that imitates the
 * selection of the cost model, and can be written as a family of plans.
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
import { expectArgument, expectOptions } from '../../api/inputs/argument-checks.ts'
import { sizesOf, valuesIn } from '../../api/inputs/bound-inputs.ts'
import { flatInputs } from '../../api/inputs/flat-inputs.ts'
import { coords } from '../../api/inputs/tensors.ts'
import type { Kernel, Variant } from '../../api/kernels/kernel.ts'
import { failWith, resultOrError, SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import type { Branch } from '../../elaborate/index.ts'
import { hasIndptr, isDenseChain } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { binary, constant, type Expr, int, variable } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import type { Fact } from '../../ir/statements/loops.ts'
import type { PlanFamily } from '../../plan/schema.ts'
import { sparseTensors } from '../../run/bind/binding-names.ts'
import { Random } from '../../run/bind/sources/random-tensors.ts'
import type { DeviceProperties } from '../../run/compile/device-limits.ts'
import {
  CANNOT_RUN,
  type Condition,
  type Evidence,
  lossesOf,
  type Measure,
  questionsOf,
  whole,
} from './conditions.ts'
import { grow, type Rule, rulesOf, selectCandidate } from './rules.ts'

export interface DistilOptions {
  /** Data on which selections are imitated; default: synthetic matrices of several sizes and distributions. */
  readonly inputs?: readonly SelectionInputs[]
  /** Properties of the device, if only its kind is given. */
  readonly facts?: DeviceFacts
  /** Maximum number of schedules; default 6. */
  readonly plans?: number
}

const DISPATCH = { expected: 'a kernel with a dispatch', hint: "kernel.schedule('auto')" }

/** Minimum gain of a branch, as the mean of log(time / best). */
const GAIN = 0.0002
const LEAVES = 16
/** Minimum number of cases of a branch: smaller branches do not hold on other data. */
const GROUPS = 24

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
  expectOptions('distil', options, ['inputs', 'facts', 'plans'])
  const { inputs, facts = {}, plans = MOST_PLANS } = options
  const isMany = inputs === undefined || (Array.isArray(inputs) && inputs.length > 0)
  expectArgument(isMany, 'the inputs of distil', inputs, 'an array of one input or more')
  expectArgument(
    Number.isSafeInteger(plans) && plans >= 1,
    'the plans of distil',
    plans,
    'an integer from 1 on',
  )
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
  for (const own of inputs ?? syntheticInputs(source)) {
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
    const sizes = sizesOf(source, { tensors, params, resident: {} })
    const predicted = predictedTimes(
      model,
      kindOf(on),
      source,
      sparseTensors(source, tensors),
      sizes,
      kernels,
    )
    // Without predictions, only the selection itself is known.
    return predicted.every((t) => t === null) ? names.map((n) => (n === chosen ? 1 : null)) : predicted
  })
  const evidence: Evidence = {
    measures: [...measures, ...ratios(kernel.source)],
    cases: cases.map(({ inputs: given }, k) => ({ group: `${k}`, values: valuesOn(on, given) })),
    candidates: kernels.map((k, c) => ({
      times: times.map((t) => t[c]!),
      requires: k.loops.facts ?? [],
      foundOn: null,
    })),
  }
  const losses = lossesOf(evidence)
  const rules = bestRules(evidence, losses, plans)
  const { span } = choice
  const branches = rules.map(({ conditions, candidate }): Branch => {
    const { schedule, args } = variants[candidate]!.selection
    const all = [...conditions.map(conditionExpr), ...evidence.candidates[candidate]!.requires.map(factExpr)]
    const called = calls.find((c) => c.schedule.name === schedule)!.schedule
    return {
      conditions: all.map((expr) => ({ expr, text: printExpr1(expr), span })),
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

/** The rules of a tree over at most `most` candidates, which are added greedily. */
function bestRules(evidence: Evidence, losses: readonly Float64Array[], most: number): readonly Rule[] {
  const { cases, candidates } = evidence
  let best: { readonly rules: readonly Rule[]; readonly taken: readonly number[]; readonly loss: number } = {
    rules: [],
    taken: [],
    loss: Number.POSITIVE_INFINITY,
  }
  while (best.taken.length < most) {
    const next = [...candidates.keys()].map((k) => {
      const part = { ...whole(evidence), candidates: [...best.taken, k] }
      const tree = grow(evidence, losses, part, {
        gain: GAIN,
        leaves: LEAVES,
        groups: Math.min(GROUPS, cases.length / 8),
      })
      const rules = rulesOf(tree, evidence, losses, part)
      const chosen = cases.map((c) => selectCandidate(rules, candidates, c.values))
      const loss = chosen.reduce<number>(
        (n, own, c) => n + (own === undefined ? CANNOT_RUN : losses[own]![c]!),
        0,
      )
      return { rules, taken: part.candidates, loss }
    })
    const better = next.reduce((a, b) => (b.loss < a.loss ? b : a), best)
    if (better === best) break
    best = better
  }
  return best.rules
}

const conditionExpr = ({ measure: { of, per }, above }: Condition): Expr =>
  binary(
    'gt',
    variable(of, 'f64'),
    per === null ? constant(above, 'f64') : binary('mul', constant(above, 'f64'), variable(per, 'f64')),
  )

const factExpr = ({ size, relation, by }: Fact): Expr =>
  relation === 'equal'
    ? binary('eq', variable(size), int(by))
    : binary('eq', binary('mod', variable(size), int(by)), int(0))

// Synthetic data: matrices of random sizes, densities, distributions of row lengths, and places of columns.

const WIDTHS = [4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512]
const MATRICES = 240
/** Cases for each matrix, with other sizes. */
const CASES = 3
const MOST_ELEMENTS = 200_000

/** Length of row `i`, given the mean length and a parameter in [0, 1). */
const LENGTHS: readonly ((i: number, rows: number, mean: number, p: number, random: Random) => number)[] = [
  (_i, _rows, mean) => mean,
  (_i, _rows, mean, _p, random) => 2 * mean * random.next(),
  (i, rows, mean, p) => mean * (1 - 0.9 * p) * (rows / (i + 1)) ** (0.9 * p),
  (i, rows, mean, p, random) => (i % Math.ceil(rows / (1 + 8 * p)) === 0 ? rows : 2 * mean * random.next()),
  (_i, _rows, mean, p, random) => (random.next() < p ? 0 : mean / (1 - p)),
]

/** Throws SptError `choose/open` if the kernel has no sparse matrix, or several. */
function syntheticInputs({ name, axes, buffers, params }: Kernel1): readonly SelectionInputs[] {
  const byName = new Map(axes.map((a) => [a.name, a]))
  const sparse = buffers.filter((b) => b.role === 'in' && b.axes.some((a) => !isDenseChain(byName, a)))
  const [of] = sparse
  if (sparse.length > 1 || (of && of.axes.length !== 2))
    failWith('choose/open', `no data are known for ${name}`, {
      expected: 'a kernel with one sparse matrix',
      hint: 'distil(kernel, device, { inputs: [{ tensors: { … }, params: { … } }, …] })',
    })
  const extents = (of?.axes ?? []).flatMap((a) => {
    const axis = byName.get(a)!
    return 'extent' in axis ? [...freeVars(axis.extent)] : []
  })
  const free = params.filter((p) => p.kind === 'size' && !p.measured && !extents.includes(p.name))
  const random = new Random(1)
  return Array.from({ length: of ? MATRICES : CASES }, (_, k) => {
    const tensors = of ? { [of.name]: matrixOf(k, random) } : {}
    const sizes = () => free.map((p) => [p.name, WIDTHS[random.below(WIDTHS.length)]!] as const)
    return Array.from({ length: free.length > 0 ? CASES : 1 }, () => ({
      tensors,
      params: Object.fromEntries(sizes()),
    }))
  }).flat()
}

/** The matrix `k` of a sample. */
function matrixOf(k: number, random: Random) {
  const between = (low: number, high: number): number => low * (high / low) ** random.next()
  const rows = Math.round(between(64, 20_000))
  const columns = Math.ceil(rows * [1, 1, 1, 1 / 8, 8][random.below(5)]!)
  const mean = Math.min(between(1, 128), MOST_ELEMENTS / rows, columns / 2)
  const [length, layout, p] = [LENGTHS[k % LENGTHS.length]!, random.below(4), random.next()]
  const [i, j]: [number[], number[]] = [[], []]
  for (let row = 0; row < rows; row++) {
    const own = Math.min(columns, Math.round(length(row, rows, mean, p, random)))
    // Near the diagonal, anywhere, in equal distances, or those of neighbouring rows.
    const start =
      layout === 0
        ? Math.floor((row * columns) / rows)
        : layout === 3
          ? (row >> 3) * 97
          : random.below(columns)
    const step = layout === 0 ? 1 : Math.max(1, Math.floor(columns / Math.max(1, own)))
    const at = Array.from({ length: own }, (_, c) =>
      layout === 1 ? random.below(columns) : (start + c * step) % columns,
    )
    for (const column of [...new Set(at)].sort((a, b) => a - b)) {
      i.push(row)
      j.push(column)
    }
  }
  return coords([rows, columns], [i, j], new Float32Array(i.length).fill(1))
}
