/**
 * Branches of a dispatch on a device: conditions without device properties and parameters, and schedules. Schedules that need no data are
 * compiled together, and written as a family of plans.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr, Var } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import { type FamilyStatistic, writeFamily } from '../../plan/family-codec.ts'
import type { Plan, PlanFamily } from '../../plan/schema.ts'
import { writePlan } from '../../plan/write.ts'
import { planOn } from '../../run/compile/compiled-program.ts'
import type { DeviceProperties } from '../../run/compile/device-limits.ts'
import { runOn } from '../../run/compile/program.ts'
import { valuesOf } from '../../schedule/steps/parameter-values.ts'
import { sumsOf } from '../built/unordered-sums.ts'
import { deviceChoice, type RunBranch } from './device-choice.ts'
import { type DeviceFacts, deviceAnswer, type SelectionContext } from './device-facts.ts'
import { type BranchCall, callText, type DispatchCall, openBranches, reduced } from './dispatch-conditions.ts'
import { formatOf } from './fill-ratio.ts'
import { liveRatios } from './prepared-schedule.ts'
import { type AnyKernel, type KernelDispatch, scheduleOf } from './schedules.ts'

/** Maximum number of plans of a family. */
export const MOST_PLANS = 6

interface ClosedCall {
  readonly call: BranchCall
  readonly args: readonly (number | undefined)[]
  /** The first argument that depends on data; undefined if none does. */
  readonly open: Expr | undefined
  /** Call of the schedule with its arguments, as far as they are known. */
  readonly text: string
}

interface ClosedBranch {
  /** The conditions over sizes and statistics; empty: always. */
  readonly conditions: readonly Expr[]
  readonly calls: readonly ClosedCall[]
}

/** Returns the branches that may hold on the device for the expected sizes, in order. */
export function closedBranches(
  { choice, values, sizes }: DispatchCall & Pick<KernelDispatch, 'sizes'>,
  on: SelectionContext,
  given: DeviceFacts = {},
): readonly ClosedBranch[] {
  const known = (v: Var): number | undefined => {
    const question = choice.device.get(v.name)
    return values.get(v.name) ?? (question ? deviceAnswer(on, given, question, v) : sizes?.get(v.name))
  }
  return [...openBranches(choice.branches, known)].map(({ open, calls, span }) => ({
    conditions: open,
    calls: calls.map((call) => closedCall(call, (a) => reduced(a, known, span))),
  }))
}

function closedCall(call: BranchCall, reduce: (a: Expr) => Expr): ClosedCall {
  const args = call.args.map((a) => a && reduce(a))
  const open = args.find((a) => a !== null && a.kind !== 'const') ?? undefined
  const numbers = args.map((a) => (a?.kind === 'const' ? a.value : undefined))
  return { call, args: numbers, open, text: callText(call.schedule, numbers) }
}

/**
 * The schedule of a call that needs no data; `null` for unordered sums, which a deterministic dispatch skips. Throws SptError
 * `schedule/…` for an illegal step.
 */
export function closedSchedule(
  dispatch: KernelDispatch,
  on: DeviceProperties,
  { call, args }: ClosedCall,
): AnyKernel | null {
  const schedule = scheduleOf(dispatch, call, [...valuesOf(call.schedule, args).values()])
  if (!dispatch.deterministic) return schedule
  return sumsOf<AnyKernel>(schedule, on).length === 0 ? schedule : null
}

/** Throws SptError `choose/open` if conditions that may hold on the device depend on fill ratios, which only runs measure. */
export function rejectLive({ choice, text }: DispatchCall, branches: readonly ClosedBranch[]): void {
  const used = new Set(branches.flatMap((b) => b.conditions.flatMap((e) => [...freeVars(e)])))
  const live = [...choice.statistics].find(([name, s]) => s.kind === 'fill_ratio' && s.live && used.has(name))
  if (!live) return
  const calls = [...new Set(branches.flatMap((b) => b.calls.map((c) => c.text)))]
  // A single plan can select by fill ratios only, so sizes in conditions have to be known.
  const others = [...used].filter((name) => !liveRatios(choice).has(name))
  const sizes = others.filter((name) => !choice.statistics.has(name))
  const isBySizes = others.length > 0 && sizes.length === others.length
  const one = `write the plan of one schedule: ${calls.join(', ')} (--schedule '${calls[0]}' on the command line)`
  failWith(
    'choose/open',
    `${choice.kernel}.${text} is not a family of plans: each run measures ${live[0]}`,
    isBySizes
      ? {
          expected: `conditions over sizes, or over fill ratios and known sizes`,
          hint: `build(device, { sizes: { ${sizes.map((name) => `${name}: …`).join(', ')} } }), or ${one}`,
        }
      : { expected: 'conditions over sizes and statistics of the inputs', hint: one },
  )
}

/** The plan of the branches, if every condition depends on fill ratios that runs measure, and the branches can be combined. */
function combinedPlan(
  dispatch: KernelDispatch,
  closed: readonly ClosedBranch[],
  on: DeviceProperties,
): Plan | null {
  const live = liveRatios(dispatch.choice)
  const isLive = (e: Expr): boolean => [...freeVars(e)].every((name) => live.has(name))
  const branches = closed.flatMap(({ conditions, calls }): RunBranch[] => {
    const schedule = calls.length === 1 && !calls[0]!.open ? closedSchedule(dispatch, on, calls[0]!) : null
    if (!schedule || !conditions.every(isLive)) return []
    return [{ text: calls[0]!.text, conditions, compilation: schedule.compilation }]
  })
  if (branches.length !== closed.length) return null
  const kernel = deviceChoice(dispatch.base, dispatch.text, branches, live, on)
  return typeof kernel === 'string'
    ? null
    : writePlan(planOn(on, kernel.compilation, { sources: kernel.sources }))
}

/**
 * Returns a dispatch as a family of plans, or as a single plan if each run selects on the device. Throws SptError as `closedSchedule` and `rejectLive`, and `choose/open` if schedules or their
 * arguments depend on data, or if there are more than `MOST_PLANS`.
 */
export function familyPlan(
  dispatch: KernelDispatch,
  on: DeviceProperties,
  given?: DeviceFacts,
): Plan | PlanFamily {
  const { choice, text, source } = dispatch
  const open = (why: string): never =>
    failWith('choose/open', `${choice.kernel}.${text} is not a family of plans: ${why}`, {
      expected: `at most ${MOST_PLANS} schedules with known arguments`,
      hint: `distil the dispatch: distil(kernel, device) of sparsetile/search`,
    })
  const closed = closedBranches(dispatch, on, given)
  const combined = closed.length > 1 ? combinedPlan(dispatch, closed, on) : null
  if (combined) return combined
  rejectLive(dispatch, closed)
  const branches = closed.flatMap(({ conditions, calls: [call, ...others] }) => {
    if (others.length > 0) open('`fastest { … }` compares predictions on data')
    if (call!.open) open(`${printExpr1(call!.open)} depends on data`)
    const schedule = closedSchedule(dispatch, on, call!)
    return schedule ? [{ when: conditions, text: call!.text, schedule }] : []
  })
  const schedules = new Map(branches.map((b) => [b.text, b.schedule]))
  if (schedules.size > MOST_PLANS) open(`it selects among ${schedules.size} schedules`)
  const used = new Set(branches.flatMap((b) => b.when.flatMap((e) => [...freeVars(e)])))
  const statistics = new Map<string, FamilyStatistic>()
  for (const [name, s] of choice.statistics) {
    if (!used.has(name)) continue
    if (s.kind === 'nnz') statistics.set(name, { kind: s.kind, of: s.tensor })
    else if (s.kind !== 'fill_ratio') statistics.set(name, { kind: s.kind, of: s.axis })
    else statistics.set(name, { kind: s.kind, of: s.tensor, format: formatOf(s) })
  }
  const texts = [...schedules.keys()]
  return writeFamily({
    schedule: text,
    kernel: source,
    statistics,
    branches: branches.map((b) => ({ when: b.when, schedule: b.text, plan: texts.indexOf(b.text) })),
    plans: [...schedules.values()].map((s) =>
      planOn(on, runOn<AnyKernel>(s, on.kind).compilation, { sources: s.sources }),
    ),
  })
}
