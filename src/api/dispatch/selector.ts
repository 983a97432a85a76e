/** Schedule selection: evaluates the conditions of a dispatch on bound data and a device. */

import { invariant, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { CostModel } from '../../cost-model/learned/trained-models.ts'
import { sparseTensors } from '../../cost-model/prediction.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { checkDimensions, givenParams } from '../../run/bind/sizes/bound-sizes.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { Device } from '../../runtime/device.ts'
import { formatInputsOfChoice } from '../../schedule/coordinates/as/format-inputs.ts'
import { DenseOnDevice, type Tensor } from '../../storage/tensor.ts'
import { predictedTimes } from '../auto-schedule/predicted-times.ts'
import { fastestCandidates, keepsDeclaredFormats } from '../auto-schedule/schedule-candidates.ts'
import { PLAIN, plainReason } from '../auto-schedule/software-adapter-schedule.ts'
import type { Candidate } from '../built/candidates.ts'
import { sumsOf, sumsText } from '../built/unordered-sums.ts'
import { declaredOf, type RunInputs, valuesIn } from '../inputs/bound-inputs.ts'
import { besideDeclared, type DeclaredInputs, formatInputsFor } from '../inputs/format-input-binding.ts'
import { randomInputs } from '../inputs/small-data.ts'
import { residentStructure } from '../resident/resident-binding.ts'
import type { LiveRatios } from './branches.ts'
import { kindOf, modelFor, type SelectionContext, type SelectionInputs } from './device-facts.ts'
import { type Decision, type DispatchCall, decide, type Selection } from './dispatch-conditions.ts'
import { Facts } from './facts.ts'
import {
  applied,
  automaticSelection,
  checkRequirements,
  type OpenDispatch,
  type Selectable,
  type SelectedKernel,
} from './open-dispatch.ts'

type Decided<K> = SelectedKernel<K> & { readonly selection: Selection }

/** Selects schedules of an open dispatch for a device and the inputs of one binding. */
export class Selector<K extends Selectable<K>> {
  readonly #open: OpenDispatch<K>
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
  constructor(open: OpenDispatch<K>, on: SelectionContext, given: SelectionInputs) {
    this.#open = open
    this.#on = on
    this.#source = open.base.compilation.source
    this.#used = open.choice ? formatInputsOfChoice(open.choice) : new Map()
    this.#facts = new Facts(open.choice, this.#source, on, given, this.#used)
    this.#resident = given.resident ?? {}
    this.#inputs = this.#facts.inputs
    this.live = new Map(
      [...(open.choice?.statistics ?? [])].flatMap(([name, s]) =>
        s.kind === 'fill_ratio' && s.live ? [[name, s]] : [],
      ),
    )
  }

  get unknown(): ReadonlySet<string> {
    return this.#facts.statistics.unknown
  }

  /** Downloads all data that the selection needs from a device; undefined if there are none. */
  fetch(): Promise<void> | undefined {
    const { statistics, branches } = this.#open.choice ?? { statistics: new Map(), branches: null }
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
  candidates(): readonly SelectedKernel<K>[] {
    const { base, choice } = this.#open
    if (choice) return [this.select()]
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
      kernel: form.kernel,
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
  select(found?: ReadonlyMap<string, number>, passed?: ReadonlySet<string>): Decided<K> {
    const open = this.#dispatch
    const plain = open.isDefault ? this.#withoutSchedule() : null
    if (plain) return plain
    const model = modelFor(this.#on)
    const decisions = this.#decisions(open, found, passed)
    const variantOf = (decision: Decision): Decided<K> => {
      const kernel = applied(open, decision)
      checkRequirements(open, decision, kernel.compilation, this.#facts.sizes)
      return { kernel, selection: decision.selection, text: decision.selection.text }
    }
    const sparse = decisions.length > 1 && model ? (this.#structure ?? this.#sparse()) : {}
    const compares = Object.keys(sparse).length > 0
    const legal: Decided<K>[] = []
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
  #decisions(
    open: OpenDispatch<K> & DispatchCall,
    found?: ReadonlyMap<string, number>,
    passed?: ReadonlySet<string>,
  ) {
    const excluded = new Map<string, string>()
    for (;;) {
      const decisions = decide(open, this.#facts.lookup(found), passed, excluded)
      const before = excluded.size
      if (open.deterministic)
        for (const decision of decisions) {
          const kernel = resultOrError(() => applied(open, decision))
          const reason = kernel instanceof SptError ? null : this.#exclusion(kernel)
          if (reason !== null) excluded.set(decision.selection.text, reason)
        }
      if (excluded.size === before) return decisions
    }
  }

  /** The reason for which `deterministic` excludes a schedule; `null` if its sums have a fixed order, or if lowering rejects it. */
  #exclusion(kernel: K): string | null {
    if (!this.#open.deterministic) return null
    const sums = resultOrError(() => sumsOf<K>(kernel, this.#on as Device))
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
    if (!this.#open.choice) return this.#inputs
    return { ...this.#inputs, tensors: formatInputsFor(kernel, tensors, this.#used) }
  }

  /** Checks names, ranks and shapes as binding does. Throws SptError `bind/…`. */
  check({ kernel, inputs }: Candidate): void {
    if (!this.#open.choice) return
    const { tensors, params } = valuesIn(kernel, inputs())
    givenParams(kernel, Object.entries(params))
    checkDimensions(kernel, new Map(Object.entries(tensors)), this.#facts.sizes)
  }

  /** Returns the base kernel, which runs as `parallel()`, if the rule for software adapters applies; otherwise null. */
  #withoutSchedule(): Decided<K> | null {
    const { base, choice, text: dispatch } = this.#dispatch
    const reason = plainReason(this.#on, base, this.#facts.sizes, this.#sparse())
    if (reason === null) return null
    const none = { args: [], predictions: [], values: {}, rejectedBranches: [] }
    const unknown = { schedule: null, declaredBy: null, origin: null, costModel: null }
    const span = choice.span ?? this.#source.span
    return {
      kernel: base,
      text: PLAIN,
      selection: { ...none, ...unknown, dispatch, text: PLAIN, reason, span },
    }
  }

  /** Returns the schedule with the shortest predicted time; the first if there are no predictions. */
  #fastest(
    model: CostModel,
    sparse: Readonly<Record<string, Tensor>>,
    legal: readonly Decided<K>[],
  ): Decided<K> {
    const kernels = legal.map((v) => v.kernel.compilation)
    const beside = besideDeclared(this.#source, this.#inputs.tensors ?? {}, this.#used)
    const { sizes } = this.#facts
    const times = predictedTimes(model, kindOf(this.#on), this.#source, sparse, sizes, kernels, beside)
    const order = legal
      .map((v, k) => ({ ...v, milliseconds: times[k] ?? Number.POSITIVE_INFINITY }))
      .sort((a, b) => (a.milliseconds === b.milliseconds ? 0 : a.milliseconds - b.milliseconds))
    const { kernel, selection, text } = order[0]!
    const predictions = order.flatMap(({ selection: { text }, milliseconds }) =>
      Number.isFinite(milliseconds) ? [{ text, milliseconds }] : [],
    )
    const costModel = predictions.length > 0 ? model.chip : null
    return { kernel, text, selection: { ...selection, predictions, costModel } }
  }

  get #dispatch(): OpenDispatch<K> & DispatchCall {
    const { choice, ...call } = this.#open
    invariant(choice, 'the auto-scheduler has no branches')
    return { ...call, choice }
  }

  /** Returns the sparse tensors that are bound. */
  #sparse(): Record<string, Tensor> {
    const bound = declaredOf(this.#source, this.#inputs.tensors ?? {}, this.#used)
    return sparseTensors(this.#source, bound as Record<string, Tensor>)
  }
}
