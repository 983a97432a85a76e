/** Schedule selection: the schedules of a family for bound data. */

import { invariant, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { lazy } from '../../ast/lazy.ts'
import { sparseTensors } from '../../run/bind/binding-names.ts'
import { checkDimensions, givenParams } from '../../run/bind/sizes/bound-sizes.ts'
import { DenseOnDevice, type Tensor } from '../../storage/tensor.ts'
import { type Candidate, candidateOf, kernelOf, type Selected } from '../built/candidates.ts'
import { CompiledCode } from '../built/code.ts'
import type { Family } from '../built/schedule-family.ts'
import { declaredOf, type RunInputs, valuesIn } from '../inputs/bound-inputs.ts'
import { besideDeclared, type DeclaredInputs, formatInputsFor } from '../inputs/format-input-binding.ts'
import { randomInputs } from '../inputs/random-inputs.ts'
import { residentStructure } from '../resident/resident-structure.ts'
import type { AutomaticRules } from './automatic-rules.ts'
import { modelFor, type SelectionInputs } from './device-facts.ts'
import { type Decision, decide, type Known, type Selection } from './dispatch-conditions.ts'
import { equalRatios, type Facts, lookupIn } from './facts.ts'
import { inputFacts } from './input-facts.ts'
import { type LiveRatios, liveRatios } from './prepared-schedule.ts'
import { checkRequirements, type Dispatch } from './schedules.ts'

/** Label of the schedule without data. */
const WITHOUT_DATA = 'the schedule without data'

/** Selects schedules of a family for the inputs of one binding, by facts of three sources: sizes, statistics, and the last run. */
export class Selector {
  readonly #family: Family
  readonly #given: SelectionInputs
  readonly #used: DeclaredInputs
  /** Throws SptError `api/argument`, `choose/unknown-name`, `choose/unknown-feature`. */
  readonly #facts: () => ReturnType<typeof inputFacts>
  /** Sparse tensors, resident and bound, if schedules are compared on resident ones; otherwise undefined. */
  #structure: Record<string, Tensor> | undefined
  /** The inputs with random tensors, if these are generated for all schedules together. */
  #drawn: RunInputs | undefined
  /** Fill ratios that runs may measure, by name. */
  live: LiveRatios
  /** Rules for run-time zeros under the auto-scheduler. */
  #rules: AutomaticRules | null = null
  /** Why the schedules are not one plan, so that the host selects; undefined before `onDevice`, and if it returned a plan. */
  #hostSelection: string | undefined

  constructor(family: Family, given: SelectionInputs) {
    const { schedules, source, device } = family
    const dispatch = schedules.kind === 'dispatch' ? schedules : null
    this.#family = family
    this.#given = given
    this.#used = dispatch?.used ?? new Map()
    this.#facts = lazy(() => inputFacts(dispatch?.choice ?? null, source, device, given, this.#used))
    this.live = dispatch ? liveRatios(dispatch.choice) : new Map()
  }

  /** Names of the fill ratios that only runs can measure. */
  get unknown(): ReadonlySet<string> {
    return this.#facts().statistics.unknown
  }

  /** Downloads all data that the selection needs from a device; undefined if there are none. */
  fetch(): Promise<void> | undefined {
    const { schedules, source, device } = this.#family
    if (schedules.kind === 'automatic' && !this.#given.resident) return this.#fetchRules()
    if (schedules.kind === 'fixed' || !this.#given.resident) return undefined
    const facts = this.#accepted(() => this.#facts())
    const own = Object.entries(declaredOf(source, this.#given.resident, this.#used))
    if (own.length === 0) return undefined
    const branches = schedules.kind === 'dispatch' ? schedules.choice.branches : null
    return facts?.statistics.download().then(async () => {
      if (branches && !(branches.some((b) => b.calls.length > 1) && modelFor(device))) return
      this.#structure = this.#sparse()
      // Arrays of a format with several parts are not over the kernel's axes.
      for (const [name, t] of own)
        if (!branches || t.kind !== 'parts') this.#structure[name] = await residentStructure(t)
    })
  }

  /** Measures rules for run-time zeros on the first data of these sizes. */
  async #fetchRules(): Promise<void> {
    const facts = this.#family.device.isSoftware ? undefined : this.#accepted(() => this.#facts())
    if (!facts || !this.isMeasuredFirst) return
    const { values, inputs, sizes } = facts
    this.#rules = await this.#family.rulesFor(sizes.sizes, inputs, values.tensors)
    this.live = this.#rules?.live ?? this.live
  }

  /** The result of `work`. Undefined for an error of the auto-scheduler, whose schedule without data reports errors in the data. */
  #accepted<T>(work: () => T): T | undefined {
    const done = this.#family.code ? resultOrError(work) : work()
    return done instanceof SptError ? undefined : done
  }

  /** Schedules, the preferred one first; each later one runs if the data or the device reject those before it. Throws like `select`. */
  candidates(): readonly Candidate[] {
    const { schedules } = this.#family
    if (schedules.kind === 'dispatch') return [this.onDevice() ?? this.select()]
    const { code } = schedules
    const isSelecting = schedules.kind === 'automatic' && code.program.live
    const found = isSelecting ? this.#accepted(() => this.#automatic()) : undefined
    return [...(found ?? []), candidateOf(code, this.#given, WITHOUT_DATA)]
  }

  /** Candidates of the auto-scheduler; empty if none is legal. */
  #automatic(): readonly Candidate[] {
    const { tensors, params } = this.#facts().values
    const values = { tensors: { ...tensors, ...this.#structure }, params }
    return this.#family.automatic(values, this.#rules, () => this.#facts().inputs)
  }

  /**
   * Selects a schedule of a dispatch. Throws SptError `choose/…`, `bind/…` for data of statistics, `schedule/…` for an illegal step.
   * @param runs - Facts of runs, which replace others
   * @param passed - Schedule calls that the selection skips
   */
  select(runs: readonly Facts[] = [], passed?: ReadonlySet<string>): Candidate & Pick<Selected, 'selection'> {
    const { schedule, selection: selected } = this.#selected(runs, passed)
    const hostSelection = this.isOpen(selected) ? this.#hostSelection : undefined
    const selection = { ...selected, ...(hostSelection !== undefined && { hostSelection }) }
    const candidate = this.#family.candidate(schedule, selection, selection.text, () =>
      this.#inputsOf(candidate),
    )
    return { ...candidate, selection }
  }

  /**
   * The schedules among which each run selects on the device, in a single plan; null if a schedule is certain for the inputs, or if
   * the schedules cannot be combined.
   */
  onDevice(): Candidate | null {
    const { schedules: choice } = this.#family
    if (this.live.size === 0 || choice.kind !== 'dispatch' || this.#withoutSchedule()) return null
    const { statistics, sizes } = this.#facts()
    const look = lookupIn([statistics], sizes)
    const known: Known = (v) =>
      this.live.has(v.name) && !statistics.isGiven(v.name)
        ? undefined
        : (choice.values.get(v.name) ?? look(v))
    const made = resultOrError(() => this.#family.combined(known, (one) => this.#selectedIn(one, [])))
    if (made instanceof SptError || !made) return null
    if (typeof made === 'string') {
      this.#hostSelection = made
      return null
    }
    const { schedule, selection } = made
    const candidate = this.#family.candidate(schedule, selection, selection.text, () =>
      this.#inputsOf(candidate),
    )
    for (const s of selection.alternatives ?? []) this.#family.variants.add(s.text)
    return candidate
  }

  #selected(runs: readonly Facts[], passed?: ReadonlySet<string>): Selected {
    const { schedules: dispatch } = this.#family
    invariant(dispatch.kind === 'dispatch', 'other schedules have no branches')
    return this.#selectedIn(dispatch, runs, passed)
  }

  #selectedIn(dispatch: Dispatch, runs: readonly Facts[], passed?: ReadonlySet<string>): Selected {
    const { device, source } = this.#family
    const plain = this.#withoutSchedule()
    if (plain) return plain
    const decisions = this.#decisions(dispatch, runs, passed)
    const { sizes } = this.#facts().sizes
    const selectedBy = (decision: Decision): Selected => {
      const { call, selection } = decision
      const schedule = this.#family.scheduleOf(call, selection.args)
      const { facts } = schedule instanceof CompiledCode ? schedule.program.plan : schedule.compilation.loops
      checkRequirements(dispatch, decision, facts, sizes)
      return { schedule, selection }
    }
    const sparse = decisions.length > 1 && modelFor(device) ? (this.#structure ?? this.#sparse()) : {}
    const compares = Object.keys(sparse).length > 0
    const legal: Selected[] = []
    for (const decision of decisions) {
      const selected = resultOrError(() => selectedBy(decision))
      if (selected instanceof SptError) continue
      if (!compares) return selected
      legal.push(selected)
    }
    // If none of the schedules is legal, report the error of the first.
    if (legal.length < 2) return legal[0] ?? selectedBy(decisions[0]!)
    const beside = besideDeclared(source, this.#inputs.tensors ?? {}, this.#used)
    return this.#family.fastest(legal, { sparse, beside, sizes })
  }

  /** The decisions of the first branch with a schedule that is not excluded. */
  #decisions(dispatch: Dispatch, runs: readonly Facts[], passed?: ReadonlySet<string>) {
    const excluded = new Map<string, string>()
    const { statistics, sizes } = this.#facts()
    for (;;) {
      const decisions = decide(dispatch, lookupIn([...runs, statistics], sizes), passed, excluded)
      const before = excluded.size
      for (const { call, selection } of decisions) {
        const reason = this.#family.exclusionOf(call, selection.args)
        if (reason !== null) excluded.set(selection.text, reason)
      }
      if (excluded.size === before) return decisions
    }
  }

  /** True if another fill ratio may select another schedule, because a condition uses it. */
  isOpen(selection: Selection | null): boolean {
    return selection !== null && [...this.live.keys()].some((name) => name in selection.values)
  }

  /** True if each run selects a schedule, whatever the fill ratios are; 0 stands for them here. */
  get isOpenAlways(): boolean {
    if (this.live.size === 0 || this.#family.schedules.kind !== 'dispatch') return false
    const selected = resultOrError(() => this.#selected([equalRatios(this.live, 0)]))
    return !(selected instanceof SptError) && this.isOpen(selected.selection)
  }

  get #inputs(): RunInputs {
    return this.#drawn ?? this.#facts().inputs
  }

  /** True if the device may measure the fill ratios first. */
  get isMeasuredFirst(): boolean {
    const tensors = Object.values(this.#inputs.tensors ?? {})
    const isGiven = [...this.live.keys()].some((name) => this.#facts().statistics.isGiven(name))
    return !isGiven && !tensors.some((t) => t instanceof DenseOnDevice)
  }

  /** Generates random tensors, so that they are identical for all schedules. */
  draw(): void {
    if (this.#inputs.seed === undefined) return
    const { source } = this.#family
    const values = valuesIn(source, { ...this.#inputs, statistics: {} })
    const { tensors } = randomInputs(source, values, this.#used)
    this.#drawn = { ...this.#inputs, ...(tensors && { tensors }) }
  }

  /** The inputs of a schedule, without the lists and sets of other schedules' formats. Throws SptError `bind/unknown-name`. */
  #inputsOf(candidate: Candidate): RunInputs {
    const { tensors = {} } = this.#inputs
    return { ...this.#inputs, tensors: formatInputsFor(kernelOf(candidate), tensors, this.#used) }
  }

  /** Checks names, ranks and shapes as binding does. Throws SptError `bind/…`. */
  check(candidate: Candidate): void {
    if (this.#family.schedules.kind !== 'dispatch') return
    const kernel = kernelOf(candidate)
    const { tensors, params } = valuesIn(kernel, candidate.inputs())
    givenParams(kernel, Object.entries(params))
    checkDimensions(kernel, new Map(Object.entries(tensors)), this.#facts().sizes.sizes)
  }

  #withoutSchedule(): Selected | null {
    return this.#family.withoutSchedule(this.#facts().sizes.sizes, () => this.#sparse())
  }

  /** Returns the sparse tensors that are bound. */
  #sparse(): Record<string, Tensor> {
    const { source } = this.#family
    const bound = declaredOf(source, this.#inputs.tensors ?? {}, this.#used)
    return sparseTensors(source, bound as Record<string, Tensor>)
  }
}
