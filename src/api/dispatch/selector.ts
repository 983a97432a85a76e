/** Schedule selection: evaluates the conditions of a dispatch on bound data and a device. */

import { invariant, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { CostModel } from '../../cost-model/learned/trained-models.ts'
import { sparseTensors } from '../../cost-model/prediction.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { checkDimensions, givenParams } from '../../run/bind/sizes/bound-sizes.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { Device } from '../../runtime/device.ts'
import { DenseOnDevice, type Tensor } from '../../storage/tensor.ts'
import { predictedTimes } from '../auto-schedule/predicted-times.ts'
import { fastestCandidates, keepsDeclaredFormats } from '../auto-schedule/schedule-candidates.ts'
import { PLAIN, plainReason } from '../auto-schedule/software-adapter-schedule.ts'
import type { Candidate } from '../built/candidates.ts'
import { CompiledCode } from '../built/code.ts'
import { sumsOf, sumsText } from '../built/unordered-sums.ts'
import { declaredOf, type RunInputs, valuesIn } from '../inputs/bound-inputs.ts'
import { besideDeclared, type DeclaredInputs, formatInputsFor } from '../inputs/format-input-binding.ts'
import { randomInputs } from '../inputs/small-data.ts'
import { residentStructure } from '../resident/resident-binding.ts'
import type { LiveRatios } from './branches.ts'
import { kindOf, modelFor, type SelectionContext, type SelectionInputs } from './device-facts.ts'
import { type Decision, decide, type Selection } from './dispatch-conditions.ts'
import { Facts } from './facts.ts'
import {
  type AnyKernel,
  type Automatic,
  automaticSelection,
  checkRequirements,
  type Dispatch,
  type Selected,
  scheduleOf,
} from './schedules.ts'

type Decided = Selected & { readonly selection: Selection }

/** Selects schedules of a dispatch or of the auto-scheduler for a device and the inputs of one binding. */
export class Selector {
  readonly #schedules: Automatic | Dispatch
  readonly #on: SelectionContext
  readonly #source: Compilation['source']
  readonly #used: DeclaredInputs
  readonly #facts: Facts
  readonly #resident: NonNullable<SelectionInputs['resident']>
  /** Sparse tensors, resident and bound, if schedules are compared on resident ones; otherwise undefined. */
  #structure: Record<string, Tensor> | undefined
  /** Values to bind. */
  #inputs: RunInputs
  /** Fill ratios that runs may measure, by name. */
  readonly live: LiveRatios

  /** Throws SptError `api/argument`, `choose/unknown-name`, `choose/unknown-feature`. */
  constructor(schedules: Automatic | Dispatch, on: SelectionContext, given: SelectionInputs) {
    const choice = schedules.kind === 'dispatch' ? schedules.choice : null
    this.#schedules = schedules
    this.#on = on
    this.#source = schedules.source
    this.#used = schedules.kind === 'dispatch' ? schedules.used : new Map()
    this.#facts = new Facts(choice, this.#source, on, given, this.#used)
    this.#resident = given.resident ?? {}
    this.#inputs = this.#facts.inputs
    this.live = new Map(
      [...(choice?.statistics ?? [])].flatMap(([name, s]) =>
        s.kind === 'fill_ratio' && s.live ? [[name, s]] : [],
      ),
    )
  }

  get unknown(): ReadonlySet<string> {
    return this.#facts.statistics.unknown
  }

  /** Downloads all data that the selection needs from a device; undefined if there are none. */
  fetch(): Promise<void> | undefined {
    const schedules = this.#schedules
    const { statistics, branches } =
      schedules.kind === 'dispatch' ? schedules.choice : { statistics: new Map(), branches: null }
    const own = Object.entries(declaredOf(this.#source, this.#resident, this.#used))
    if (own.length === 0) return undefined
    return this.#facts.statistics.download(statistics).then(async () => {
      if (branches && !(branches.some((b) => b.calls.length > 1) && modelFor(this.#on))) return
      this.#structure = this.#sparse()
      // Arrays of a format with several parts are not over the kernel's axes.
      for (const [name, t] of own)
        if (!branches || t.kind !== 'parts') this.#structure[name] = await residentStructure(t)
    })
  }

  /**
   * Schedules, the preferred one first; each later one runs if the data or the device reject those before it. Empty if the auto-scheduler
   * has no legal one. Throws like `select`.
   */
  candidates(): readonly Selected[] {
    if (this.#schedules.kind === 'dispatch') return [this.select()]
    const { base } = this.#schedules
    const { tensors, params } = this.#facts.values
    const values = { tensors: { ...tensors, ...this.#structure }, params }
    const forms = fastestCandidates(base, this.#on as Device, values)
    // The fastest format was selected from samples, so the data may not fit; lowering or the device may reject it.
    const rejected: string[] = []
    const ordered = forms.filter((f) => {
      const reason = this.#exclusion(f.kernel)
      if (reason !== null) rejected.push(`${f.text}: ${reason}`)
      return reason === null
    })
    const declared = ordered.find((f) => keepsDeclaredFormats(base, f))
    const best = new Set([ordered[0], declared].flatMap((f) => f ?? []))
    return [...best].map((form) => ({
      schedule: form.kernel,
      text: form.text,
      selection: rejected.length > 0 ? automaticSelection(form, this.#source, rejected) : null,
    }))
  }

  /**
   * Selects a schedule, and returns the kernel under it. Throws SptError `choose/…`, `bind/…` for data of statistics, `schedule/…` for an
   * illegal step.
   * @param found - Statistics measured by earlier runs, by name
   * @param passed - Schedule calls that the selection skips
   */
  select(found?: ReadonlyMap<string, number>, passed?: ReadonlySet<string>): Decided {
    const dispatch = this.#schedules
    invariant(dispatch.kind === 'dispatch', 'the auto-scheduler has no branches')
    const plain = dispatch.isDefault ? this.#withoutSchedule(dispatch) : null
    if (plain) return plain
    const model = modelFor(this.#on)
    const decisions = this.#decisions(dispatch, found, passed)
    const variantOf = (decision: Decision): Decided => {
      const { call, selection } = decision
      const schedule = scheduleOf(dispatch, call, selection.args)
      const { facts } = schedule instanceof CompiledCode ? schedule.program.plan : schedule.compilation.loops
      checkRequirements(dispatch, decision, facts, this.#facts.sizes)
      return { schedule, selection, text: selection.text }
    }
    const sparse = decisions.length > 1 && model ? (this.#structure ?? this.#sparse()) : {}
    const compares = Object.keys(sparse).length > 0
    const legal: Decided[] = []
    for (const decision of decisions) {
      const variant = resultOrError(() => variantOf(decision))
      if (variant instanceof SptError) continue
      if (!compares) return variant
      legal.push(variant)
    }
    // If none of the schedules is legal, report the error of the first.
    return legal.length < 2 ? (legal[0] ?? variantOf(decisions[0]!)) : this.#fastest(model!, sparse, legal)
  }

  /** The decisions of the first branch with a schedule that is not excluded. */
  #decisions(dispatch: Dispatch, found?: ReadonlyMap<string, number>, passed?: ReadonlySet<string>) {
    const excluded = new Map<string, string>()
    for (;;) {
      const decisions = decide(dispatch, this.#facts.lookup(found), passed, excluded)
      const before = excluded.size
      for (const { call, selection } of dispatch.deterministic ? decisions : []) {
        const schedule = resultOrError(() => scheduleOf(dispatch, call, selection.args))
        const reason = schedule instanceof SptError ? null : this.#exclusion(schedule)
        if (reason !== null) excluded.set(selection.text, reason)
      }
      if (excluded.size === before) return decisions
    }
  }

  /** The reason for which `deterministic` excludes a schedule; `null` if its sums have a fixed order, or if lowering rejects it. */
  #exclusion(schedule: Selected['schedule']): string | null {
    if (!this.#schedules.deterministic || schedule instanceof CompiledCode) return null
    const sums = resultOrError(() => sumsOf<AnyKernel>(schedule, this.#on as Device))
    return sums instanceof SptError || sums.length === 0 ? null : sumsText(sums)
  }

  /** True if another fill ratio may select another schedule, because a condition uses it. */
  isOpen({ values }: Selection): boolean {
    return [...this.live.keys()].some((name) => name in values)
  }

  /** True if each run selects a schedule, whatever the fill ratios are; 0 stands for them here. */
  get isOpenAlways(): boolean {
    if (this.live.size === 0) return false
    const variant = resultOrError(() => this.select(new Map([...this.live.keys()].map((name) => [name, 0]))))
    return !(variant instanceof SptError) && this.isOpen(variant.selection)
  }

  /** True if the device may measure the fill ratios first. */
  get isMeasuredFirst(): boolean {
    const tensors = Object.values(this.#inputs.tensors ?? {})
    const isGiven = [...this.live.keys()].some((name) => this.#facts.statistics.isGiven(name))
    return !isGiven && !tensors.some((t) => t instanceof DenseOnDevice)
  }

  /** Generates random tensors, so that they are identical for all schedules. */
  draw(): void {
    if (this.#inputs.seed === undefined) return
    const values = valuesIn(this.#source, { ...this.#inputs, statistics: {} })
    const { tensors } = randomInputs(this.#source, values, this.#used)
    this.#inputs = { ...this.#inputs, ...(tensors && { tensors }) }
  }

  /** The inputs of a schedule, without the lists and sets of other schedules' formats. Throws SptError `bind/unknown-name`. */
  inputsOf(kernel: Kernel1): RunInputs {
    const { tensors = {} } = this.#inputs
    if (this.#schedules.kind === 'automatic') return this.#inputs
    return { ...this.#inputs, tensors: formatInputsFor(kernel, tensors, this.#used) }
  }

  /** Checks names, ranks and shapes as binding does. Throws SptError `bind/…`. */
  check({ kernel, inputs }: Candidate): void {
    if (this.#schedules.kind === 'automatic') return
    const { tensors, params } = valuesIn(kernel, inputs())
    givenParams(kernel, Object.entries(params))
    checkDimensions(kernel, new Map(Object.entries(tensors)), this.#facts.sizes)
  }

  /** Returns the base kernel, which runs as `parallel()`, if the rule for software adapters applies; otherwise null. */
  #withoutSchedule({ schedules: base, choice, text: dispatch }: Dispatch): Decided | null {
    if (!('compilation' in base)) return null
    const reason = plainReason(this.#on, base, this.#facts.sizes, this.#sparse())
    if (reason === null) return null
    const form = { text: PLAIN, reason, milliseconds: null, costModel: null }
    const selection = { ...automaticSelection(form, this.#source, []), dispatch, span: choice.span }
    return { schedule: base, text: PLAIN, selection }
  }

  /** Returns the schedule with the shortest predicted time; the first if there are no predictions. */
  #fastest(model: CostModel, sparse: Readonly<Record<string, Tensor>>, legal: readonly Decided[]): Decided {
    const kernels = legal.map((v) => v.schedule.compilation)
    const beside = besideDeclared(this.#source, this.#inputs.tensors ?? {}, this.#used)
    const { sizes } = this.#facts
    const times = predictedTimes(model, kindOf(this.#on), this.#source, sparse, sizes, kernels, beside)
    const order = legal
      .map((v, k) => ({ ...v, milliseconds: times[k] ?? Number.POSITIVE_INFINITY }))
      .sort((a, b) => (a.milliseconds === b.milliseconds ? 0 : a.milliseconds - b.milliseconds))
    const { schedule, selection, text } = order[0]!
    const predictions = order.flatMap(({ selection: { text }, milliseconds }) =>
      Number.isFinite(milliseconds) ? [{ text, milliseconds }] : [],
    )
    const costModel = predictions.length > 0 ? model.chip : null
    return { schedule, text, selection: { ...selection, predictions, costModel } }
  }

  /** Returns the sparse tensors that are bound. */
  #sparse(): Record<string, Tensor> {
    const bound = declaredOf(this.#source, this.#inputs.tensors ?? {}, this.#used)
    return sparseTensors(this.#source, bound as Record<string, Tensor>)
  }
}
