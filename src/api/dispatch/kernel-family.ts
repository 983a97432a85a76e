/** Schedules of a kernel, compiled on first use: those of the auto-scheduler, or of a dispatch. `loadPlan` loads none of this. */
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { releaseAll, type Work } from '../../ast/work.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { getOrAddPromise } from '../../ir/memoize.ts'
import type { Plan, PlanFamily } from '../../plan/schema.ts'
import type { Sources } from '../../run/compile/program.ts'
import type { Device } from '../../runtime/device.ts'
import { predictedTimes } from '../auto-schedule/predicted-times.ts'
import {
  type AutoScheduleInputs,
  fastestCandidates,
  keepsDeclaredFormats,
} from '../auto-schedule/schedule-candidates.ts'
import { PLAIN, plainReason } from '../auto-schedule/software-adapter-schedule.ts'
import type { Candidate, Selected } from '../built/candidates.ts'
import type { CompiledCode } from '../built/code.ts'
import { checkedPlanOf, compileSteps } from '../built/compile-code.ts'
import { type ComparedData, Family } from '../built/schedule-family.ts'
import { sumsOf, sumsText } from '../built/unordered-sums.ts'
import type { RunInputs } from '../inputs/bound-inputs.ts'
import { traceOf } from '../kernels/nests.ts'
import { withPlace } from '../programs/error-sources.ts'
import type { AutomaticRules } from './automatic-rules.ts'
import { deviceChoice, type RunBranch } from './device-choice.ts'
import { kindOf, modelFor } from './device-facts.ts'
import {
  type BranchCall,
  conjunction,
  type Known,
  openBranches,
  reduced,
  type Selection,
} from './dispatch-conditions.ts'
import { closedBranches, closedSchedule, familyPlan, MOST_PLANS } from './family-plan.ts'
import { liveRatios } from './prepared-schedule.ts'
import {
  type AnyKernel,
  type Automatic,
  automaticSelection,
  type Dispatch,
  decidedByRuns,
  type KernelDispatch,
  scheduleOf,
} from './schedules.ts'

export class KernelFamily extends Family {
  declare readonly schedules: Automatic | KernelDispatch
  /** Compiled schedules: of a dispatch by kernel, which `schedules.ts` caches; of the auto-scheduler by steps. */
  readonly #compiled = new Map<unknown, Promise<CompiledCode>>()
  /** Rules for run-time zeros that the auto-scheduler selected, by sizes. */
  readonly #rules = new Map<string, Promise<AutomaticRules | null>>()

  constructor(device: Device, schedules: Automatic | KernelDispatch) {
    super(device, schedules)
    if (schedules.kind === 'automatic')
      this.#compiled.set(keyOf(schedules.kernel), Promise.resolve(schedules.code))
  }

  override get sources(): Sources {
    return this.schedules.base.sources
  }

  override get plan(): Plan | PlanFamily {
    const { schedules, device } = this
    return schedules.kind === 'dispatch' ? familyPlan(schedules, device) : super.plan
  }

  override scheduleOf(call: BranchCall, args: readonly number[]): AnyKernel {
    return scheduleOf(this.schedules as KernelDispatch, call, args)
  }

  #exclusion(make: () => AnyKernel): string | null {
    if (!this.schedules.deterministic) return null
    const sums = resultOrError(() => sumsOf(make(), this.device))
    return sums instanceof SptError || sums.length === 0 ? null : sumsText(sums)
  }

  /** The reason for which `deterministic` excludes a schedule; `null` if its sums have a fixed order, or if lowering rejects it. */
  override exclusionOf(call: BranchCall, args: readonly number[]): string | null {
    return this.#exclusion(() => this.scheduleOf(call, args))
  }

  override candidate(
    schedule: AnyKernel,
    selection: Selection | null,
    label: string,
    inputs: Candidate['inputs'],
  ): Candidate {
    this.addVariant(selection)
    const { device } = this
    const compile = (other = device): Promise<CompiledCode> =>
      other === device ? this.#compile(schedule, selection) : compileSteps<AnyKernel>(schedule, other)
    const plan = () => checkedPlanOf<AnyKernel>(schedule, device)
    return { schedule, selection, label, device, inputs, plan, compile }
  }

  /** Rules for run-time zeros of the auto-scheduler, selected on the first data of these sizes. `tensors`: by declared name. */
  override async rulesFor(
    sizes: ReadonlyMap<string, number>,
    inputs: RunInputs,
    tensors: ComparedData['sparse'],
  ): Promise<AutomaticRules | null> {
    const { schedules, device } = this
    if (schedules.kind === 'dispatch') return null
    return getOrAddPromise(this.#rules, JSON.stringify([...sizes]), async () => {
      // Loaded on demand, to keep browser bundles small.
      const { automaticRules } = await import('./automatic-rules.ts')
      const isExcluded = (kernel: AnyKernel): boolean => this.#exclusion(() => kernel) !== null
      return automaticRules(schedules, device, isExcluded, inputs, sizes, tensors)
    })
  }

  /** Candidates of the auto-scheduler; empty if none is legal. */
  override automatic(
    values: AutoScheduleInputs,
    rules: AutomaticRules | null,
    inputs: Candidate['inputs'],
  ): readonly Candidate[] {
    const { base, source } = this.schedules
    const forms = fastestCandidates(base, this.device, values)
    // The fastest format was selected from samples, so the data may not fit; lowering or the device may reject it.
    const rejected: string[] = []
    const ordered = forms.filter((f) => {
      const reason = this.#exclusion(() => f.kernel)
      if (reason !== null) rejected.push(`${f.text}: ${reason}`)
      return reason === null
    })
    const declared = ordered.find((f) => keepsDeclaredFormats(base, f))
    const best = new Set([ordered[0], declared].flatMap((f) => f ?? []))
    const ruled = declared ? rules?.nextTo(declared) : null
    const others = [...best].map((form) => {
      const isNotable = rejected.length > 0 || form.plain.length > 0
      const selection = isNotable ? automaticSelection(form, source, rejected) : null
      return this.candidate(form.kernel, selection, form.text, inputs)
    })
    return ruled
      ? [this.candidate(ruled.kernel, ruled.selection, ruled.selection.text, inputs), ...others]
      : others
  }

  /** The kernel without schedule, which runs as `parallel()`, if the rule for software adapters applies to the default dispatch. */
  override withoutSchedule(
    sizes: ReadonlyMap<string, number>,
    sparse: () => ComparedData['sparse'],
  ): Selected | null {
    const { schedules, device } = this
    if (schedules.kind !== 'dispatch' || !schedules.isDefault) return null
    const { base, choice, text: dispatch, source } = schedules
    const reason = plainReason(device, base, sizes, sparse())
    if (reason === null) return null
    const selection = automaticSelection({ text: PLAIN, reason }, source, [])
    return { schedule: base, selection: { ...selection, dispatch, span: choice.span } }
  }

  /**
   * The branches that runs on the bound inputs may select, combined into a single plan; null if they are fewer than two; the reason if
   * they cannot be combined. Throws SptError as a selection.
   */
  override combined(known: Known, selected: (dispatch: Dispatch) => Selected): Selected | string | null {
    const dispatch = this.schedules as KernelDispatch
    const { base, choice, source, text } = dispatch
    const branches: RunBranch[] = []
    const alternatives: Selection[] = []
    for (const { open, ...branch } of openBranches(choice.branches, known)) {
      const isOpen = (a: Expr | null): boolean =>
        a !== null && freeVars(reduced(a, known, branch.span)).size > 0
      if (branch.calls.some((c) => c.args.some(isOpen)))
        return `arguments of ${branch.calls[0]!.schedule.name} depend on a fill ratio`
      const one = { ...choice, branches: [{ ...branch, conditions: [] }] }
      const { schedule, selection } = selected({ ...dispatch, choice: one })
      const { compilation } = schedule as AnyKernel
      branches.push({ text: selection.text, conditions: open, compilation })
      alternatives.push({ ...selection, reason: conjunction(branch.conditions) })
    }
    if (branches.length < 2) return null
    const schedule = deviceChoice(base, text, branches, liveRatios(choice), this.device)
    if (typeof schedule === 'string') return schedule
    const selection = { ...decidedByRuns(alternatives, source), dispatch: text, span: choice.span }
    return { schedule, selection }
  }

  /** The schedule with the shortest predicted time; the first if there are no predictions. */
  override fastest(legal: readonly Selected[], { sparse, beside, sizes }: ComparedData): Selected {
    const { source, device } = this
    const model = modelFor(device)!
    const kernels = legal.map((s) => (s.schedule as AnyKernel).compilation)
    const times = predictedTimes(model, kindOf(device), source, sparse, sizes, kernels, beside)
    const order = legal
      .map((s, k) => ({ ...s, milliseconds: times[k] ?? Number.POSITIVE_INFINITY }))
      .sort((a, b) => (a.milliseconds === b.milliseconds ? 0 : a.milliseconds - b.milliseconds))
    const { schedule, selection } = order[0]!
    const predictions = order.flatMap(({ selection: { text }, milliseconds }) =>
      Number.isFinite(milliseconds) ? [{ text, milliseconds }] : [],
    )
    const costModel = predictions.length > 0 ? model.chip : null
    return { schedule, selection: { ...selection, predictions, costModel } }
  }

  /**
   * Compiles the schedules that a dispatch may select, if they need no data, and are not more than a family has. Throws SptError
   * `schedule/…`, `device/compile` of any of them.
   */
  async compileAll(work?: Work): Promise<void> {
    const { schedules, device } = this
    if (schedules.kind !== 'dispatch') return
    const branches = resultOrError(() => closedBranches(schedules, device))
    if (branches instanceof SptError) return
    const closed = branches.map(({ calls }) => calls.filter((c) => !c.open))
    if (new Set(closed.flatMap((calls) => calls.map((c) => c.text))).size > MOST_PLANS) return
    for (const calls of closed)
      for (const own of calls) {
        const schedule = resultOrError(() => closedSchedule(schedules, device, own))
        // `fastest` skips illegal schedules.
        if (schedule instanceof SptError && calls.length === 1) throw schedule
        if (schedule && !(schedule instanceof SptError))
          await this.#compile(schedule, { schedule: own.call.schedule.name, span: own.call.span }, work)
      }
  }

  /** Compiles a schedule once. Errors name the selected branch. */
  #compile(
    kernel: AnyKernel,
    selection: Pick<Selection, 'schedule' | 'span' | 'alternatives'> | null,
    work?: Work,
  ): Promise<CompiledCode> {
    const key = selection?.schedule || selection?.alternatives ? kernel : keyOf(kernel)
    return getOrAddPromise(this.#compiled, key, async () => {
      try {
        const code = await compileSteps<AnyKernel>(kernel, this.device, work)
        this.codes.add(code)
        return code
      } catch (e) {
        throw selection ? withPlace(e, selection.span) : e
      }
    })
  }

  /** Releases every compiled schedule. A dispatch compiles again for later selections. */
  override release(): void {
    releaseAll(this.#compiled.values())
    this.#compiled.clear()
    super.release()
  }
}

/** Key of the steps of a kernel. Kernels of different sizes often share them. */
const keyOf = ({ compilation }: AnyKernel): string => JSON.stringify(traceOf(compilation))
