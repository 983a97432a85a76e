/** A kernel under a dispatch: each binding selects a schedule, and schedules are compiled on first use. */

import { failWith, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import { type Bound, bindInputs } from '../../run/bind/index.ts'
import { checkDimensions, givenParams } from '../../run/bind/sizes/bound-sizes.ts'
import type { Sources } from '../../run/compile/compiled-program.ts'
import { Executable } from '../../run/execution/execute.ts'
import type { Device } from '../../runtime/device.ts'
import { formatInputsOfChoice } from '../../schedule/coordinates/as/format-inputs.ts'
import { DenseOnDevice } from '../../storage/tensor.ts'
import { CompiledKernel, type CompiledSchedule, isBound, PreparedKernel } from '../compiled/compiled.ts'
import { CompiledVariants } from '../compiled/compiled-variants.ts'
import { expectInputs, type RunInputs, valuesIn } from '../inputs/bound-inputs.ts'
import { formatInputsFor } from '../inputs/format-input-binding.ts'
import { randomInputs } from '../inputs/small-data.ts'
import type { ErrorSources } from '../programs/error-sources.ts'
import { withPlace } from '../programs/error-sources.ts'
import type { Selection } from './dispatch-conditions.ts'
import { fixedDispatcher, isOpen, liveOf } from './dispatcher.ts'
import { RunTimeDispatcher } from './run-time-dispatcher.ts'
import {
  fetchedRequest,
  type OpenDispatch,
  type Schedulable,
  type SelectedKernel,
  type SelectionInputs,
  type SelectionRequest,
  selectionRequest,
  selectSchedule,
} from './schedule-selection.ts'

/** The kernel compiled under the selected schedule. */
export interface CompiledVariant {
  readonly kernel: CompiledSchedule
  readonly selection: Selection
}

interface Compilable extends Schedulable<Compilable>, Pick<ErrorSources, 'sources'> {
  compileSchedule(device: Device): Promise<CompiledSchedule>
}

export class CompiledDispatch extends CompiledKernel {
  readonly device: Device
  readonly #open: OpenDispatch<Compilable>
  readonly #chosen = new Set<string>()
  readonly #compiled = new CompiledVariants<Compilable>()
  readonly #bound = new WeakMap<
    Bound,
    { readonly variant: SelectedKernel<Compilable>; readonly asking: SelectionRequest<Compilable> }
  >()

  constructor(open: OpenDispatch<Compilable>, device: Device) {
    super()
    this.#open = open
    this.device = device
  }

  get sources(): Sources {
    return this.#open.base.sources
  }

  get compilation(): never {
    return this.#undecided()
  }

  get program(): never {
    return this.#undecided()
  }

  get unorderedSums(): never {
    return this.#undecided()
  }

  /** Schedules selected so far, with all arguments. */
  get variants(): readonly string[] {
    return [...this.#chosen]
  }

  /**
   * Selects and compiles the kernel for some inputs, for `convertForKernel` and `prepareResident`, or for inspection.
   * @throws SptError `choose/…`, and `bind/…` for names, ranks and shapes that `prepare` would reject
   */
  async choose(inputs: SelectionInputs): Promise<CompiledVariant> {
    const asking = await fetchedRequest(this.#open, this.device, inputs)
    const variant = this.#answer(asking)
    const { kernel } = variant.kernel.compilation
    const { tensors, params } = valuesIn(kernel, this.#takenBy(variant, asking))
    givenParams(kernel, Object.entries(params))
    checkDimensions(kernel, new Map(Object.entries(tensors)), asking.statistics.sizes)
    return { kernel: await this.#compile(variant), selection: variant.selection }
  }

  /** Selects a schedule, and binds data on the host. @throws SptError `choose/…`, `bind/…` */
  bind(inputs: RunInputs): Bound {
    const asking = selectionRequest(this.#open, inputs)
    const variant = this.#answer(asking)
    const { kernel } = variant.kernel.compilation
    const { tensors, params, seed } = valuesIn(kernel, this.#takenBy(variant, asking))
    const bound = bindInputs(kernel, { tensors, params, ...(seed === undefined ? {} : { seed }) })
    this.#bound.set(bound, { variant, asking })
    return bound
  }

  estimateBytes(): never {
    return this.#undecided()
  }

  async prepare(inputs: SelectionInputs | Bound): Promise<PreparedKernel> {
    if (isBound(inputs)) {
      const known = this.#bound.get(inputs)
      if (!known)
        return failWith('choose/other-binding', `the data were not bound for ${this.#name}`, {
          expected: 'data that `bind` of this kernel returned',
          hint: 'bind the data with this kernel, or call prepare of the kernel that bound the data',
        })
      return this.#prepared(known.variant, known.asking, inputs)
    }
    const asking = await fetchedRequest(this.#open, this.device, inputs)
    // The fill ratios do not decide whether the schedule is selected in every run, so 0 stands for them here.
    const found = new Map(liveOf(this.#open.choice.statistics).map(([name]) => [name, 0]))
    const nothing =
      found.size > 0 ? resultOrError(() => selectSchedule({ ...asking, found }, this.device)) : null
    if (
      nothing === null ||
      nothing instanceof SptError ||
      !isOpen(this.#open.choice.statistics, nothing.selection)
    )
      return this.#prepared(this.#answer(asking), asking)
    const there = Object.values(asking.inputs.tensors ?? {}).some((t) => t instanceof DenseOnDevice)
    const isTold = [...found.keys()].some((name) => asking.statistics.isTold(name))
    return this.#selected(asking, () => this.#answer(asking), !there && !isTold)
  }

  /** Releases every compiled schedule; later selections compile again. */
  release(): void {
    this.#compiled.release()
  }

  get #name(): string {
    const { choice, text } = this.#open
    return `${choice.kernel}.${text}`
  }

  #answer(asking: SelectionRequest<Compilable>): SelectedKernel<Compilable> {
    const variant = selectSchedule(asking, this.device)
    const { schedule, args, text } = variant.selection
    this.#chosen.add(schedule === null ? text : appliedName(schedule, args))
    return variant
  }

  /** Returns the inputs of a schedule, without the lists and sets of other schedules' formats. */
  #takenBy({ kernel }: SelectedKernel<Compilable>, { inputs }: SelectionRequest<Compilable>): RunInputs {
    expectInputs(inputs)
    const { tensors = {} } = inputs
    const used = formatInputsOfChoice(this.#open.choice)
    return { ...inputs, tensors: formatInputsFor(kernel.compilation.kernel, tensors, used) }
  }

  #compile({ kernel, selection }: SelectedKernel<Compilable>): Promise<CompiledSchedule> {
    return this.#compiled.get(kernel, () =>
      kernel.compileSchedule(this.device).catch((e: unknown) => {
        throw withPlace(e, selection.span)
      }),
    )
  }

  async #prepared(
    variant: SelectedKernel<Compilable>,
    asked: SelectionRequest<Compilable>,
    bound?: Bound,
  ): Promise<PreparedKernel> {
    const { statistics } = this.#open.choice
    if (isOpen(statistics, variant.selection)) return this.#selected(asked, () => variant, false)
    const compiled = await this.#compile(variant)
    const { source } = compiled.compilation
    const data = bound ?? compiled.bind(this.#takenBy(variant, asked))
    const executable = await Executable.create(compiled.program, data, { source })
    return new PreparedKernel(compiled, executable, fixedDispatcher(compiled, executable, variant.selection))
  }

  async #selected(
    asked: SelectionRequest<Compilable>,
    first: () => SelectedKernel<Compilable>,
    isFound: boolean,
  ): Promise<PreparedKernel> {
    const asking = this.#drawn(asked)
    const selection = await RunTimeDispatcher.create<SelectedKernel<Compilable>>(
      {
        statistics: this.#open.choice.statistics,
        unknown: asking.statistics.unknown,
        choose: (found, passed) => this.#answer({ ...asking, found, passed }),
        found: ({ kernel }) => kernel.compilation.kernel.runtimeLists ?? [],
        chosen: ({ selection: chosen }) => chosen,
        compile: (v, device) => (device ? v.kernel.compileSchedule(device) : this.#compile(v)),
        bind: (v, compiled) => compiled.bind(this.#takenBy(v, asking)),
      },
      first,
      isFound,
    )
    return new PreparedKernel(selection.kernel, selection.executable, selection)
  }

  /** Returns the request with random tensors generated, so that they are identical for all schedules. */
  #drawn(asking: SelectionRequest<Compilable>): SelectionRequest<Compilable> {
    const { choice, base } = this.#open
    const { seed } = asking.inputs
    if (seed === undefined) return asking
    const used = formatInputsOfChoice(choice)
    const values = valuesIn(base.compilation.source, { ...asking.inputs, statistics: {} })
    const { tensors } = randomInputs(base.compilation.source, { ...values, seed }, used)
    return { ...asking, inputs: { ...asking.inputs, ...(tensors && { tensors }) } }
  }

  #undecided(): never {
    return failWith('choose/open', `${this.#name} is chosen when data are bound`, {
      expected: 'prepare(inputs), whose result has the kernel that was chosen',
      hint: 'const { kernel } = await compiled.choose(inputs)',
    })
  }
}
