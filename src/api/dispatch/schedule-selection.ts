/** Schedule selection: evaluates the conditions of a dispatch on bound data and a device. */

import { brokenFact, factText } from '../../analysis/integers/facts.ts'
import { failAs, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import type { CostModel } from '../../cost-model/learned/trained-models.ts'
import { sparseTensors } from '../../cost-model/prediction.ts'
import type { Choice, ScheduleCall } from '../../elaborate/index.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { formatInputsOfChoice } from '../../schedule/coordinates/as/format-inputs.ts'
import type { ResidentTensor } from '../../storage/engines/device/index.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { predictedTimes } from '../auto-schedule/predicted-times.ts'
import { PLAIN, plainReason } from '../auto-schedule/software-adapter-schedule.ts'
import { expectArgument, isRecord } from '../inputs/argument-checks.ts'
import { declaredOf, expectInputs, type RunInputs, valuesIn } from '../inputs/bound-inputs.ts'
import { besideDeclared, type DeclaredInputs } from '../inputs/format-input-binding.ts'
import { withPlace } from '../programs/error-sources.ts'
import { residentStructure } from '../resident/resident-binding.ts'
import { checkResident } from '../resident/resident-check.ts'
import type { Decision, DispatchCall, Lookup, Selection } from './dispatch-conditions.ts'
import { decide } from './dispatch-conditions.ts'
import type { DeviceFacts, SelectionContext } from './selection-context.ts'
import { callerStatistics, checkDeviceFacts, deviceAnswer, kindOf, modelFor } from './selection-context.ts'
import { Statistics } from './statistics.ts'

export type { SelectionContext } from './selection-context.ts'

/** Inputs of a schedule selection: bound values, statistics, and properties of the device. */
export interface SelectionInputs extends RunInputs, DeviceFacts {
  /**
   * Tensors on the device, by name. Shapes are used, and the structure of those that are arrays over the kernel's axes; required
   * offsets are downloaded once.
   */
  readonly resident?: Readonly<Record<string, ResidentTensor>>
}

/** A kernel (`K`) to which schedules can be applied. */
export interface Schedulable<K> {
  readonly compilation: Compilation
  parallel(): K
  schedule(name: string, ...args: (number | undefined)[]): K
}

/** A dispatch, and the kernel to which its schedules are applied. */
export interface OpenDispatch<K extends Schedulable<K>> extends DispatchCall {
  readonly base: K
  /** The default dispatch `auto`, which the caller did not name. */
  readonly isDefault?: boolean | undefined
}

/** A kernel under the selected schedule. */
export interface SelectedKernel<K> {
  readonly kernel: K
  readonly selection: Selection
}

/** Facts about data and device that a dispatch uses. */
export type QueriedFacts = Pick<Choice, 'kernel' | 'name' | 'statistics' | 'device'>

/** Inputs of a selection with their statistics. */
export interface Facts {
  readonly statistics: Statistics
  readonly facts: DeviceFacts
  /** Values to bind; bare arrays have the shapes of their tensors. */
  readonly inputs: RunInputs
}

/** Returns checked inputs with their statistics. Throws SptError `api/argument`, `choose/unknown-name`, `choose/unknown-feature`. */
export function factsFor(
  asking: QueriedFacts,
  source: Compilation['source'],
  given: SelectionInputs,
  used: DeclaredInputs,
): Facts {
  expectArgument(isRecord(given), 'what is bound', given, '{ tensors, params, seed, statistics }')
  const { resident = {}, statistics = {}, capability, processors, features, ...inputs } = given
  expectInputs(inputs)
  const { tensors = {} } = inputs
  expectArgument(isRecord(tensors), 'tensors', tensors, 'tensors or values by name')
  expectArgument(isRecord(resident), 'resident', resident, 'resident tensors by name')
  for (const [name, t] of Object.entries(resident)) checkResident(t, `what is resident as ${name}`)
  const facts = { capability, processors, features }
  checkDeviceFacts(facts, asking.device.values())
  // Lists, sets and parts of formats are checked by the scheduled kernel.
  const values = valuesIn(source, { ...inputs, tensors: declaredOf(source, tensors, used) })
  return {
    facts,
    inputs: { ...inputs, tensors: { ...tensors, ...values.tensors } },
    statistics: new Statistics(source, {
      ...values,
      by: `${'conditions' in asking ? 'space' : 'schedule'} ${asking.name}`,
      resident: declaredOf(source, resident, used),
      statistics: callerStatistics(asking, statistics),
      beside: besideDeclared(source, tensors, used),
    }),
  }
}

/** Returns a function that looks up statistics, device properties and sizes. It throws SptError `choose/unknown-…` for unknown ones. */
export const lookupOf =
  (
    asking: QueriedFacts,
    { statistics, facts }: Facts,
    on: SelectionContext,
    found?: ReadonlyMap<string, number>,
  ): Lookup =>
  (variable) => {
    const told = found?.get(variable.name)
    if (told !== undefined) return told
    const property = asking.device.get(variable.name)
    if (property) return deviceAnswer(on, facts, property, variable)
    const statistic = asking.statistics.get(variable.name)
    return statistic ? statistics.of(statistic, variable) : statistics.size(variable.name)
  }

/** Selects schedules of an open dispatch for a device and inputs, by static facts, statistics of the data, and measurements of runs. */
export class Chooser<K extends Schedulable<K>> {
  readonly #open: OpenDispatch<K>
  readonly #on: SelectionContext
  readonly #source: Compilation['source']
  readonly #used: DeclaredInputs
  readonly #facts: Facts
  readonly #resident: NonNullable<SelectionInputs['resident']>
  /** Sparse tensors, resident and bound, if schedules are compared on resident ones; otherwise undefined. */
  #structure: Record<string, Tensor> | undefined
  /** Values to bind. */
  inputs: RunInputs

  /** Throws SptError `api/argument`, `choose/unknown-name`, `choose/unknown-feature`. */
  constructor(open: OpenDispatch<K>, on: SelectionContext, given: SelectionInputs) {
    this.#open = open
    this.#on = on
    this.#source = open.base.compilation.source
    this.#used = formatInputsOfChoice(open.choice)
    this.#facts = factsFor(open.choice, this.#source, given, this.#used)
    this.#resident = given.resident ?? {}
    this.inputs = this.#facts.inputs
  }

  get statistics(): Statistics {
    return this.#facts.statistics
  }

  /** Downloads all data that the selection needs from a device. */
  async fetch(): Promise<this> {
    const { statistics, branches } = this.#open.choice
    await this.statistics.download(statistics)
    const own = Object.entries(declaredOf(this.#source, this.#resident, this.#used))
    if (own.length === 0 || !branches.some((b) => b.calls.length > 1) || !modelFor(this.#on)) return this
    this.#structure = this.#sparse()
    // Arrays of a format with several parts are not over the kernel's axes.
    for (const [name, t] of own) if (t.kind !== 'parts') this.#structure[name] = await residentStructure(t)
    return this
  }

  /**
   * Selects a schedule, and returns the kernel under it. Throws SptError `choose/…`, `bind/…` for data of statistics, `schedule/…` for an
   * illegal step.
   * @param found - Statistics measured by earlier runs, by name
   * @param passed - Schedule calls that the selection skips
   */
  choose(found?: ReadonlyMap<string, number>, passed?: ReadonlySet<string>): SelectedKernel<K> {
    const open = this.#open
    const plain = open.isDefault ? this.#withoutSchedule() : null
    if (plain) return plain
    const model = modelFor(this.#on)
    const decisions = decide(open, lookupOf(open.choice, this.#facts, this.#on, found), passed)
    const made = (decision: Decision): SelectedKernel<K> => {
      const kernel = applied(open, decision)
      checkRequirements(open, decision, kernel.compilation, this.statistics.sizes)
      return { kernel, selection: decision.selection }
    }
    const sparse = decisions.length > 1 && model ? (this.#structure ?? this.#sparse()) : {}
    const compares = Object.keys(sparse).length > 0
    const legal: SelectedKernel<K>[] = []
    for (const decision of decisions) {
      const variant = resultOrError(() => made(decision))
      if (variant instanceof SptError) continue
      if (!compares) return variant
      legal.push(variant)
    }
    // If none of the schedules is legal, report the error of the first.
    return legal.length < 2 ? (legal[0] ?? made(decisions[0]!)) : this.#fastest(model!, sparse, legal)
  }

  /** Returns the base kernel, which runs as `parallel()`, if the rule for software adapters applies; otherwise null. */
  #withoutSchedule(): SelectedKernel<K> | null {
    const { base, choice, text: dispatch } = this.#open
    const reason = plainReason(this.#on, base, this.statistics.sizes, this.#sparse())
    if (reason === null) return null
    const none = { args: [], predictions: [], values: {}, rejectedBranches: [] }
    const unknown = { schedule: null, declaredBy: null, origin: null, costModel: null }
    const span = choice.span ?? this.#source.span
    return { kernel: base, selection: { ...none, ...unknown, dispatch, text: PLAIN, reason, span } }
  }

  /** Returns the schedule with the shortest predicted time; the first if there are no predictions. */
  #fastest(
    model: CostModel,
    sparse: Readonly<Record<string, Tensor>>,
    legal: readonly SelectedKernel<K>[],
  ): SelectedKernel<K> {
    const kernels = legal.map((v) => v.kernel.compilation)
    const beside = besideDeclared(this.#source, this.inputs.tensors ?? {}, this.#used)
    const { sizes } = this.statistics
    const times = predictedTimes(model, kindOf(this.#on), this.#source, sparse, sizes, kernels, beside)
    const order = legal
      .map((v, k) => ({ ...v, milliseconds: times[k] ?? Number.POSITIVE_INFINITY }))
      .sort((a, b) => (a.milliseconds === b.milliseconds ? 0 : a.milliseconds - b.milliseconds))
    const { kernel, selection } = order[0]!
    const predictions = order.flatMap(({ selection: { text }, milliseconds }) =>
      Number.isFinite(milliseconds) ? [{ text, milliseconds }] : [],
    )
    const costModel = predictions.length > 0 ? model.chip : null
    return { kernel, selection: { ...selection, predictions, costModel } }
  }

  /** Returns the sparse tensors that are bound. */
  #sparse(): Record<string, Tensor> {
    const bound = declaredOf(this.#source, this.inputs.tensors ?? {}, this.#used)
    return sparseTensors(this.#source, bound as Record<string, Tensor>)
  }
}

/** Cached kernels under schedules, by base kernel. */
const kernelsOf = new WeakMap<Compilation, Map<string, unknown>>()
/** Maximum number of cached kernels per base, because arguments may depend on data. */
const MOST_MADE = 256

function applied<K extends Schedulable<K>>({ base }: OpenDispatch<K>, { call, selection }: Decision): K {
  const { schedule, args } = selection
  const kernels = getOrAdd(kernelsOf, base.compilation, () => new Map()) as Map<string, K & object>
  const key = appliedName(schedule, args)
  if (!kernels.has(key) && kernels.size >= MOST_MADE) kernels.delete(kernels.keys().next().value!)
  return getOrAdd(kernels, key, () => chosenHere(call, () => base.schedule(schedule, ...args) as K & object))
}

function chosenHere<T>({ span }: ScheduleCall, work: () => T): T {
  try {
    return work()
  } catch (e) {
    throw withPlace(e, span)
  }
}

/** Throws SptError `choose/requirement` if the sizes violate a requirement of the schedule. */
function checkRequirements(
  { choice, text }: DispatchCall,
  { branch, call, selection }: Decision,
  compilation: Compilation,
  sizes: ReadonlyMap<string, number>,
): void {
  const broken = brokenFact(compilation.loops.facts, sizes)
  if (!broken) return
  failAs('choose/requirement', {
    message: `${choice.kernel}.${text} chooses ${selection.text}, which requires ${factText(broken)}, and ${broken.size} is ${sizes.get(broken.size)}`,
    span: call.span,
    ...(broken.span ? { labels: [{ span: broken.span, text: 'required here' }] } : {}),
    expected: 'a condition that implies the requirement of the schedule',
    hint: `when (${[...branch.conditions.map((c) => c.text), factText(broken)].join(' and ')})`,
  })
}
