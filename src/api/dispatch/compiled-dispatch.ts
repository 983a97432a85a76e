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
import { withPlace } from '../programs/error-sources.ts'
import type { Compilable, SelectedVariant } from './dispatch-branch.ts'
import type { Selection } from './dispatch-conditions.ts'
import { fixedDispatcher, isOpen, liveOf } from './dispatcher.ts'
import { RunTimeDispatcher } from './run-time-dispatcher.ts'
import { Chooser, type OpenDispatch, type SelectionInputs } from './schedule-selection.ts'

/** The kernel compiled under the selected schedule. */
export interface CompiledVariant {
  readonly kernel: CompiledSchedule
  readonly selection: Selection
}

/** A schedule that was selected for some inputs. */
interface Selected {
  readonly chooser: Chooser<Compilable>
  readonly variant: SelectedVariant
}

export class CompiledDispatch extends CompiledKernel {
  readonly device: Device
  readonly #open: OpenDispatch<Compilable>
  readonly #chosen = new Set<string>()
  readonly #compiled = new CompiledVariants<Compilable>()
  readonly #bound = new WeakMap<Bound, Selected>()

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
    const chooser = await this.#chooser(inputs).fetch()
    const variant = this.#select(chooser)
    const { kernel } = variant.kernel.compilation
    const { tensors, params } = valuesIn(kernel, this.#inputsOf(variant, chooser))
    givenParams(kernel, Object.entries(params))
    checkDimensions(kernel, new Map(Object.entries(tensors)), chooser.statistics.sizes)
    return { kernel: await this.#compile(variant), selection: variant.selection }
  }

  /** Selects a schedule, and binds data on the host. @throws SptError `choose/…`, `bind/…` */
  bind(inputs: RunInputs): Bound {
    const chooser = this.#chooser(inputs)
    const variant = this.#select(chooser)
    const { kernel } = variant.kernel.compilation
    const bound = bindInputs(kernel, valuesIn(kernel, this.#inputsOf(variant, chooser)))
    this.#bound.set(bound, { chooser, variant })
    return bound
  }

  estimateBytes(): never {
    return this.#undecided()
  }

  async prepare(inputs: SelectionInputs | Bound): Promise<PreparedKernel> {
    if (isBound(inputs)) {
      const known = this.#bound.get(inputs)
      if (known) return this.#prepared(known, inputs)
      return failWith('choose/other-binding', `the data were not bound for ${this.#name}`, {
        expected: 'data that `bind` of this kernel returned',
        hint: 'bind the data with this kernel, or call prepare of the kernel that bound the data',
      })
    }
    const chooser = await this.#chooser(inputs).fetch()
    const live = liveOf(this.#open.choice.statistics).map(([name]) => name)
    const isSelectedInRuns = (): boolean => {
      // The fill ratios do not decide whether the schedule is selected in every run, so 0 stands for them here.
      const variant = resultOrError(() => chooser.choose(new Map(live.map((name) => [name, 0]))))
      return !(variant instanceof SptError) && this.#isOpen(variant)
    }
    if (live.length === 0 || !isSelectedInRuns())
      return this.#prepared({ chooser, variant: this.#select(chooser) })
    const there = Object.values(chooser.inputs.tensors ?? {}).some((t) => t instanceof DenseOnDevice)
    const isTold = live.some((name) => chooser.statistics.isTold(name))
    return this.#selecting(chooser, () => this.#select(chooser), !there && !isTold)
  }

  /** Releases every compiled schedule; later selections compile again. */
  release(): void {
    this.#compiled.release()
  }

  get #name(): string {
    const { choice, text } = this.#open
    return `${choice.kernel}.${text}`
  }

  #chooser(inputs: SelectionInputs): Chooser<Compilable> {
    return new Chooser(this.#open, this.device, inputs)
  }

  #select(
    chooser: Chooser<Compilable>,
    ...facts: Parameters<Chooser<Compilable>['choose']>
  ): SelectedVariant {
    const variant = chooser.choose(...facts)
    const { schedule, args, text } = variant.selection
    this.#chosen.add(schedule === null ? text : appliedName(schedule, args))
    return variant
  }

  #isOpen({ selection }: SelectedVariant): boolean {
    return isOpen(this.#open.choice.statistics, selection)
  }

  /** Returns the inputs of a schedule, without the lists and sets of other schedules' formats. */
  #inputsOf({ kernel }: SelectedVariant, { inputs }: Chooser<Compilable>): RunInputs {
    expectInputs(inputs)
    const { tensors = {} } = inputs
    const used = formatInputsOfChoice(this.#open.choice)
    return { ...inputs, tensors: formatInputsFor(kernel.compilation.kernel, tensors, used) }
  }

  #compile({ kernel, selection }: SelectedVariant): Promise<CompiledSchedule> {
    return this.#compiled.get(kernel, () =>
      kernel.compileSchedule(this.device).catch((e: unknown) => {
        throw withPlace(e, selection.span)
      }),
    )
  }

  async #prepared({ chooser, variant }: Selected, bound?: Bound): Promise<PreparedKernel> {
    if (this.#isOpen(variant)) return this.#selecting(chooser, () => variant, false)
    const compiled = await this.#compile(variant)
    const { source } = compiled.compilation
    const data = bound ?? compiled.bind(this.#inputsOf(variant, chooser))
    const executable = await Executable.create(compiled.program, data, { source })
    return new PreparedKernel(compiled, executable, fixedDispatcher(compiled, executable, variant.selection))
  }

  async #selecting(
    chooser: Chooser<Compilable>,
    first: () => SelectedVariant,
    isFound: boolean,
  ): Promise<PreparedKernel> {
    this.#draw(chooser)
    const dispatcher = await RunTimeDispatcher.create(
      {
        statistics: this.#open.choice.statistics,
        unknown: chooser.statistics.unknown,
        choose: (found, passed) => this.#select(chooser, found, passed),
        compile: (v, device) => (device ? v.kernel.compileSchedule(device) : this.#compile(v)),
        bind: (v, compiled) => compiled.bind(this.#inputsOf(v, chooser)),
      },
      first,
      isFound,
    )
    return new PreparedKernel(dispatcher.kernel, dispatcher.executable, dispatcher)
  }

  /** Generates random tensors, so that they are identical for all schedules. */
  #draw(chooser: Chooser<Compilable>): void {
    const { inputs } = chooser
    if (inputs.seed === undefined) return
    const { source } = this.#open.base.compilation
    const values = valuesIn(source, { ...inputs, statistics: {} })
    const { tensors } = randomInputs(source, values, formatInputsOfChoice(this.#open.choice))
    chooser.inputs = { ...inputs, ...(tensors && { tensors }) }
  }

  #undecided(): never {
    return failWith('choose/open', `${this.#name} is chosen when data are bound`, {
      expected: 'prepare(inputs), whose result has the kernel that was chosen',
      hint: 'const { kernel } = await compiled.choose(inputs)',
    })
  }
}
