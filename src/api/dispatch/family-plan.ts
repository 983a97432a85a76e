/**
 * Branches of a dispatch on a device: conditions without device properties and parameters, and schedules. Schedules that need no data are
 * compiled together, and written as a family of plans.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr, Var } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { groupBy } from '../../ir/memoize.ts'
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

/** Maximum number of selections of a plan, which grows with each branch whose conditions are over sizes and fill ratios. */
const MOST_MEMBERS = 256

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
export function rejectLive(
  { choice, text }: DispatchCall,
  branches: readonly ClosedBranch[],
  reason = '',
): void {
  const used = new Set(branches.flatMap((b) => b.conditions.flatMap((e) => [...freeVars(e)])))
  const live = [...choice.statistics].find(([name, s]) => s.kind === 'fill_ratio' && s.live && used.has(name))
  if (!live) return
  const calls = [...new Set(branches.flatMap((b) => b.calls.map((c) => c.text)))]
  // With known sizes, a single plan selects by the fill ratios.
  const others = [...used].filter((name) => !liveRatios(choice).has(name))
  const sizes = others.filter((name) => !choice.statistics.has(name))
  const isBySizes = others.length > 0 && sizes.length === others.length
  const one = `write the plan of one schedule: ${calls.join(', ')} (--schedule '${calls[0]}' on the command line)`
  failWith(
    'choose/open',
    `${choice.kernel}.${text} is not a family of plans: each run measures ${live[0]}${reason && `, and ${reason}`}`,
    isBySizes
      ? {
          expected: `conditions over sizes, or over fill ratios and known sizes`,
          hint: `build(device, { sizes: { ${sizes.map((name) => `${name}: …`).join(', ')} } }), or ${one}`,
        }
      : { expected: 'conditions over sizes and statistics of the inputs', hint: one },
  )
}

/** A plan of a family. `branches`: its schedules, with conditions over fill ratios that runs measure; the last has none. */
interface Member {
  readonly when: readonly Expr[]
  readonly branches: readonly (RunBranch & { readonly schedule: AnyKernel })[]
}

/**
 * The plans in the order of their conditions. A branch whose conditions over sizes and statistics hold is in the plan; whether its
 * conditions over fill ratios hold is decided by each run, so the plan contains the next branches as well.
 */
function membersOf(
  closed: readonly ClosedBranch[],
  isLive: (e: Expr) => boolean,
  scheduleIn: (branch: ClosedBranch) => AnyKernel | null,
): readonly Member[] {
  const members: Member[] = []
  const add = (k: number, when: readonly Expr[], before: Member['branches']): void => {
    const branch = closed[k]
    const schedule = branch && scheduleIn(branch)
    if (!branch) {
      if (before.length > 0) members.push({ when, branches: before })
    } else if (!schedule) add(k + 1, when, before)
    if (!branch || !schedule || members.length > MOST_MEMBERS) return
    const conditions = branch.conditions.filter(isLive)
    const isOpen = (e: Expr): boolean => !isLive(e) && !when.some((w) => sameExpr(w, e))
    const open = branch.conditions.filter(isOpen)
    const { compilation } = schedule
    const branches = [...before, { text: branch.calls[0]!.text, conditions, compilation, schedule }]
    if (conditions.length > 0) add(k + 1, [...when, ...open], branches)
    else members.push({ when: [...when, ...open], branches })
    if (open.length > 0) add(k + 1, when, before)
  }
  add(0, [], [])
  return members
}

/**
 * Returns a dispatch as a family of plans, or as a single plan if each run selects on the device. Throws SptError as `closedSchedule` and
 * `rejectLive`, and `choose/open` if schedules or their arguments depend on data, or if there are more than `MOST_PLANS`.
 */
export function familyPlan(
  dispatch: KernelDispatch,
  on: DeviceProperties,
  given?: DeviceFacts,
): Plan | PlanFamily {
  const { choice, text, source, base } = dispatch
  const open = (why: string): never =>
    failWith('choose/open', `${choice.kernel}.${text} is not a family of plans: ${why}`, {
      expected: `at most ${MOST_PLANS} schedules with known arguments`,
      hint: `distil the dispatch: distil(kernel, device) of sparsetile/search`,
    })
  const closed = closedBranches(dispatch, on, given)
  const live = liveRatios(choice)
  const isLive = (e: Expr): boolean => [...freeVars(e)].some((name) => live.has(name))
  const isStatistic = (name: string): boolean => choice.statistics.has(name) && !live.has(name)
  for (const e of closed.flatMap((b) => b.conditions))
    if (isLive(e) && [...freeVars(e)].some(isStatistic)) rejectLive(dispatch, closed)
  const members = membersOf(closed, isLive, ({ calls: [call, ...others] }) => {
    if (others.length > 0 || call!.open) rejectLive(dispatch, closed)
    if (others.length > 0) open('`fastest { … }` compares predictions on data')
    if (call!.open) open(`${printExpr1(call!.open)} depends on data`)
    return closedSchedule(dispatch, on, call!)
  })
  const groups = [
    ...groupBy(members, (m) =>
      JSON.stringify(m.branches.map((b) => [b.text, b.conditions.map((e) => printExpr1(e))])),
    ).values(),
  ]
  if (groups.length > MOST_PLANS || members.length > MOST_MEMBERS)
    open(`it selects among ${groups.length} schedules`)
  const plans = groups.map(([member]) => {
    const { branches: runs } = member!
    const isSingle = runs.length === 1 && runs[0]!.conditions.length === 0
    const made = isSingle ? runs[0]!.schedule : deviceChoice(base, text, runs, live, on)
    if (typeof made === 'string') {
      rejectLive(dispatch, closed, made)
      return open(made)
    }
    return planOn(on, runOn<AnyKernel>(made, on.kind).compilation, { sources: made.sources })
  })
  if (plans[0]?.branches && members.length === 1 && members[0]!.when.length === 0) return writePlan(plans[0])
  const branches = members.map((m) => ({
    when: m.when,
    schedule: m.branches.map((b) => b.text).join(' or '),
    plan: groups.findIndex((g) => g.includes(m)),
  }))
  const used = new Set(branches.flatMap((b) => b.when.flatMap((e) => [...freeVars(e)])))
  const statistics = new Map<string, FamilyStatistic>()
  for (const [name, s] of choice.statistics) {
    if (!used.has(name)) continue
    if (s.kind === 'nnz') statistics.set(name, { kind: s.kind, of: s.tensor })
    else if (s.kind !== 'fill_ratio') statistics.set(name, { kind: s.kind, of: s.axis })
    else statistics.set(name, { kind: s.kind, of: s.tensor, format: formatOf(s) })
  }
  return writeFamily({ schedule: text, kernel: source, statistics, branches, plans })
}
