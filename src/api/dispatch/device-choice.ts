/**
 * Dispatch on the device: a plan with several schedules of a dispatch, which each run selects by the lengths of the run-time
 * lists. Nothing is read back. The launches that decide are an ordinary kernel.
 */
import { elaborate } from '../../elaborate/index.ts'
import { capacitiesOf, type RuntimeLists } from '../../ir/coordinates/runtime-lists.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { type Expr, int, mul } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { getOrAdd, memoize } from '../../ir/memoize.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import type { Buffer, Kernel3, Launch } from '../../ir/statements/loops.ts'
import { type Alternative, type Conditional, combineAlternatives } from '../../lower/launches/alternatives.ts'
import type { LowerOptions } from '../../lower/passes.ts'
import { Compilation } from '../../run/compile/compile.ts'
import type { DeviceProperties } from '../../run/compile/device-limits.ts'
import { lanesOf } from '../../run/compile/lowering-options.ts'
import { runOn } from '../../run/compile/program.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import { programOf } from '../../schedule/steps/language.ts'
import { scheduleCandidates } from '../auto-schedule/schedule-candidates.ts'
import {
  CountedLists,
  conditionText,
  ends,
  firstOf,
  groupsOf,
  type Measured,
  type Naming,
  sizes,
} from './decision-text.ts'
import type { FillRatioStatistic } from './dispatch-conditions.ts'
import { determinesFillRatio } from './fill-ratio.ts'
import type { LiveRatios } from './prepared-schedule.ts'
import type { AnyKernel } from './schedules.ts'

/** A branch of a dispatch whose conditions over fill ratios each run evaluates; none for the last. */
export interface RunBranch {
  readonly text: string
  readonly conditions: readonly Expr[]
  readonly compilation: Compilation
}

/** Largest number of branches in a plan. */
const MOST_BRANCHES = 6

/** Returns the kernel with the branches in a single plan; the reason if they cannot be combined (`lower/launches/alternatives.ts`). */
export function deviceChoice(
  base: AnyKernel,
  dispatch: string,
  branches: readonly RunBranch[],
  live: LiveRatios,
  device: DeviceProperties,
): AnyKernel | string {
  const last = branches.at(-1)!
  if (last.conditions.length > 0) return `${last.text}, the last branch, has a condition`
  if (branches.length > MOST_BRANCHES) return `more than ${MOST_BRANCHES} branches can hold`
  const { kind } = device
  const lowering = lanesOf(device)
  const key = JSON.stringify([
    dispatch,
    kind,
    lowering,
    branches.map((b) => [numberOf(b.compilation), b.text, b.conditions.map((e) => printExpr1(e))]),
  ])
  return getOrAdd(
    getOrAdd(known, base.compilation, () => new Map()),
    key,
    () => combinedKernel(base, dispatch, branches, live, kind, lowering),
  )
}

let compilations = 0
/** A number for each compilation: schedules of equal texts differ if they were made for other sizes. */
const numberOf = memoize((_: Compilation) => ++compilations)

/** Combined kernels by the kernel without steps. */
const known = new WeakMap<Compilation, Map<string, AnyKernel | string>>()

function combinedKernel(
  base: AnyKernel,
  dispatch: string,
  branches: readonly RunBranch[],
  live: LiveRatios,
  kind: DeviceKind,
  lowering: LowerOptions,
): AnyKernel | string {
  const compilations = branches.map((b) => runOn(b.compilation, kind))
  const combine = (options: LowerOptions): Kernel3 | string => {
    const plans = compilations.map((c) => c.planFor(options))
    if (capacitiesOf(plans.at(-1)!).length > 0)
      return `${branches.at(-1)!.text}, the last branch, has lists with a capacity`
    const decision = decisionOf(base, branches, plans, live, kind, options)
    if (typeof decision === 'string') return decision
    const { counts, ...deciding } = decision
    const alternatives = plans.map(
      (plan, k): Alternative => ({ plan, kernel: compilations[k]!.kernel, counts: counts[k]! }),
    )
    return combineAlternatives(alternatives, deciding)
  }
  const plan = combine(lowering)
  if (typeof plan === 'string') return plan
  const combined = Compilation.combined(dispatch, compilations, (options) => combine(options) as Kernel3)
  combined.adopt(plan, lowering)
  return base.compiledAs(combined)
}

function decisionOf(
  base: AnyKernel,
  branches: readonly RunBranch[],
  plans: readonly Kernel3[],
  live: LiveRatios,
  kind: DeviceKind,
  options: LowerOptions,
) {
  const measured = new Map<string, Measured>()
  for (const name of new Set(branches.flatMap((b) => b.conditions.flatMap((e) => [...freeVars(e)])))) {
    if (!live.has(name)) continue
    const found = measuredBy(branches, plans, live.get(name))
    if (!found) return `no schedule measures ${name} in every run`
    measured.set(name, found)
  }
  const counts = plans.map((plan, k) => {
    const capacities = k < plans.length - 1 ? capacitiesOf(plan).map((c) => c.counts) : []
    const own = [...measured.values()].filter((m) => m.k === k)
    return new Set([...capacities, ...own.flatMap((m) => m.lists.parts.map((p) => p.counts))])
  })
  const last = plans.length - 1
  const lowered = (text: string): Kernel3 => {
    const [kernel] = elaborate(programOf({ name: 'decision.spt', text })).kernels.values()
    const own = base.compiledAs(Compilation.of(kernel!))
    const best = scheduleCandidates<AnyKernel>(own, kind, {}, 1)[0]?.kernel ?? own
    return runOn<AnyKernel>(best, kind).compilation.planFor(options)
  }
  return {
    counts,
    decide(nameOf: Naming, launches: readonly Conditional[], fresh: (name: string) => string) {
      const lists = new CountedLists(plans, nameOf, fresh)
      const conditions = branches.flatMap((b) => b.conditions)
      const ratios = new Map([...measured].map(([name, m]) => [name, lists.ratio(m)]))
      const wanted = branches.map((b) => b.conditions.map((e) => conditionText(e, ratios)))
      const fits = plans.map((plan, k) => (k < last ? lists.fits(k, plan) : []))
      const [choice, entry, taken] = [fresh('choice'), fresh('entry'), fresh('taken')]
      const groups =
        kind === 'webgpu'
          ? launches.flatMap(({ alternative: k, launch }) =>
              groupsOf(launch).map((n) => `select(${taken} == ${k}, ${n}, 0)`),
            )
          : []
      const values = [taken, firstOf(wanted), ...groups]
      const plan =
        lowered(`kernel decision(${sizes([...lists.sizes, ...launches.flatMap((l) => l.launch.grid), ...conditions], measured)}) {
${lists.declarations.join('\n')}
  axis ${entry} = dense_fixed(${values.length})
  buffer ${choice}: i32[${entry}] out
${lists.iterations.join('\n')}
  iterate decide [${entry}] as S {
    let ${taken} = ${firstOf(wanted.map((w, k) => [...w, ...fits[k]!]))}
    ${choice}[${entry}] = ${values.slice(0, -1).reduceRight((rest, e, k) => `select(${entry} == ${k}, ${e}, ${rest})`, values.at(-1)!)}
  }
}`)
      const schedules = branches.map(({ text, conditions }, k) => {
        const all = [
          ...conditions.map((e) => printExpr1(e)),
          ...(fits[k]!.length > 0 ? ['the lists fit'] : []),
        ]
        return { text, ...(k < last && { when: all.join(' and ') }) }
      })
      const fillRatios = [...measured].map(([text, { k, lists: l, elements }]) => ({
        text,
        counts: nameOf(k, l.parts[0]!.counts),
        elements,
      }))
      return { plan, choice, schedules, fillRatios, ...(kind === 'webgpu' && { grids: 2 }) }
    },
    zero({ name, dtype, shape }: Buffer): Launch {
      const size = ends(shape[0]!)
      const value = dtype === 'bool' ? 'false' : `${dtype}(0)`
      const plan = lowered(`kernel zero(${sizes([size])}) {
  axis zeros = dense_fixed(${printExpr1(size)})
  buffer ${name}: ${dtype}[zeros] out
  iterate fill [zeros] as S { ${name}[zeros] = ${value} }
}`)
      return plan.steps.find((s) => s.kind === 'launch')!
    },
  }
}

function measuredBy(
  branches: readonly RunBranch[],
  plans: readonly Kernel3[],
  ratio: FillRatioStatistic | undefined,
): Measured | undefined {
  if (!ratio) return undefined
  for (const [k, plan] of plans.entries()) {
    const isThere = (l: RuntimeLists): boolean =>
      l.parts.every((p) => plan.buffers.some((b) => b.name === p.counts))
    const lists = plan.runtimeLists?.find((l) => determinesFillRatio(l, ratio) && isThere(l))
    if (lists) return { k, lists, elements: elementsOf(branches[k]!.compilation.source, ratio.tensor) }
  }
  return undefined
}

/** Number of elements of a dense tensor. */
function elementsOf({ buffers, axes }: Kernel1, tensor: string): Expr {
  const extents = buffers
    .find((b) => b.name === tensor)!
    .axes.map((name) => {
      const axis = axes.find((a) => a.name === name)!
      return 'extent' in axis ? axis.extent : int(1)
    })
  return extents.reduce((a, b) => mul(a, b))
}
