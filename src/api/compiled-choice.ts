/** A kernel whose schedule each binding chooses: variants are compiled when they are chosen first, and kept. */
import { appliedName } from '../ast/applied-name.ts'
import { fail, orRefused, SptError } from '../ast/diagnostic.ts'
import { checkDimensions, givenParams } from '../run/bind/bound-sizes.ts'
import { type Bound, bindInputs } from '../run/bind/index.ts'
import { Executable } from '../run/execute.ts'
import type { Sources } from '../run/launch-spans.ts'
import type { Device } from '../runtime/device.ts'
import { usedByChoice } from '../schedule/used-data.ts'
import { DenseOnDevice } from '../storage/dense-on-device.ts'
import { expectInputs, type RunInputs, valuesIn } from './bound-inputs.ts'
import type { Chosen } from './choice-conditions.ts'
import {
  answer,
  broughtQuestion,
  type ChoiceInputs,
  type ChosenKernel,
  type OpenChoice,
  type Question,
  question,
  type Schedulable,
  withPlace,
} from './choose.ts'
import { CompiledKernel, type CompiledSchedule, isBound, PreparedKernel } from './compiled.ts'
import { CompiledVariants } from './compiled-variants.ts'
import { drawnInputs } from './drawn-inputs.ts'
import { takenBy } from './format-data.ts'
import { isOpen, liveOf, settled } from './selecting.ts'
import { Selection } from './selection.ts'
import type { Sourced } from './sourced.ts'

/** Compiled under the schedule that was chosen. */
export interface CompiledVariant {
  readonly kernel: CompiledSchedule
  readonly choice: Chosen
}

/** A kernel that can be compiled under other schedules than its own. */
interface Compilable extends Schedulable<Compilable>, Pick<Sourced, 'sources'> {
  compileAsIs(device: Device): Promise<CompiledSchedule>
}

export class CompiledChoice extends CompiledKernel {
  readonly device: Device
  readonly #open: OpenChoice<Compilable>
  /** That were chosen, by schedule and arguments. */
  readonly #chosen = new Set<string>()
  readonly #compiled = new CompiledVariants<Compilable>()
  readonly #bound = new WeakMap<
    Bound,
    { readonly variant: ChosenKernel<Compilable>; readonly asking: Question<Compilable> }
  >()

  constructor(open: OpenChoice<Compilable>, device: Device) {
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

  /** Schedules that have been chosen so far, with all their arguments. */
  get variants(): readonly string[] {
    return [...this.#chosen]
  }

  /**
   * The kernel for some inputs, compiled: for `convertFor` and `prepareResident`, and to look at.
   * @throws SptError `choose/…`, `bind/…` of what `prepare` would refuse for its name, rank or shape
   */
  async choose(inputs: ChoiceInputs): Promise<CompiledVariant> {
    const asking = await broughtQuestion(this.#open, this.device, inputs)
    const variant = this.#answer(asking)
    const { kernel } = variant.kernel.compilation
    const { tensors, params } = valuesIn(kernel, this.#takenBy(variant, asking))
    givenParams(kernel, Object.entries(params))
    checkDimensions(kernel, new Map(Object.entries(tensors)), asking.statistics.sizes)
    return { kernel: await this.#compile(variant), choice: variant.chosen }
  }

  /** Chooses, and binds data on the host. @throws SptError `choose/…`, `bind/…` */
  bind(inputs: RunInputs): Bound {
    const asking = question(this.#open, inputs)
    const variant = this.#answer(asking)
    const { kernel } = variant.kernel.compilation
    const { tensors, params, seed } = valuesIn(kernel, this.#takenBy(variant, asking))
    const bound = bindInputs(kernel, { tensors, params, ...(seed === undefined ? {} : { seed }) })
    this.#bound.set(bound, { variant, asking })
    return bound
  }

  estimate(): never {
    return this.#undecided()
  }

  async prepare(inputs: ChoiceInputs | Bound): Promise<PreparedKernel> {
    if (isBound(inputs)) {
      const known = this.#bound.get(inputs)
      if (!known)
        return fail({
          code: 'choose/other-binding',
          message: `these data were not bound for ${this.#name}`,
          expected: 'data that `bind` of this kernel returned',
          hint: 'bind them with this kernel, or prepare them with the one they were bound for',
        })
      return this.#prepared(known.variant, known.asking, inputs)
    }
    const asking = await broughtQuestion(this.#open, this.device, inputs)
    // Whether runs choose is the same whatever they find.
    const found = new Map(liveOf(this.#open.choice.statistics).map(([name]) => [name, 0]))
    const nothing = found.size > 0 ? orRefused(() => answer({ ...asking, found }, this.device)) : null
    if (
      nothing === null ||
      nothing instanceof SptError ||
      !isOpen(this.#open.choice.statistics, nothing.chosen)
    )
      return this.#prepared(this.#answer(asking), asking)
    const there = Object.values(asking.inputs.tensors ?? {}).some((t) => t instanceof DenseOnDevice)
    const isTold = [...found.keys()].some((name) => asking.statistics.isTold(name))
    return this.#selected(asking, () => this.#answer(asking), !there && !isTold)
  }

  /** Releases every variant; those that are chosen later are compiled anew. */
  release(): void {
    this.#compiled.release()
  }

  get #name(): string {
    const { choice, text } = this.#open
    return `${choice.kernel}.${text}`
  }

  #answer(asking: Question<Compilable>): ChosenKernel<Compilable> {
    const variant = answer(asking, this.device)
    const { schedule, args, text } = variant.chosen
    this.#chosen.add(schedule === null ? text : appliedName(schedule, args))
    return variant
  }

  /** Formats of the schedules that were not chosen may take lists and sets beside. */
  #takenBy({ kernel }: ChosenKernel<Compilable>, { inputs }: Question<Compilable>): RunInputs {
    expectInputs(inputs)
    const { tensors = {} } = inputs
    const used = usedByChoice(this.#open.choice)
    return { ...inputs, tensors: takenBy(kernel.compilation.kernel, tensors, used) }
  }

  #compile({ kernel, chosen }: ChosenKernel<Compilable>): Promise<CompiledSchedule> {
    return this.#compiled.get(kernel, () =>
      kernel.compileAsIs(this.device).catch((e: unknown) => {
        throw withPlace(e, chosen.span)
      }),
    )
  }

  async #prepared(
    variant: ChosenKernel<Compilable>,
    asked: Question<Compilable>,
    bound?: Bound,
  ): Promise<PreparedKernel> {
    const { statistics } = this.#open.choice
    if (isOpen(statistics, variant.chosen)) return this.#selected(asked, () => variant, false)
    const compiled = await this.#compile(variant)
    const { source } = compiled.compilation
    const data = bound ?? compiled.bind(this.#takenBy(variant, asked))
    const executable = await Executable.create(compiled.program, data, { source })
    return new PreparedKernel(compiled, executable, settled(compiled, executable, variant.chosen))
  }

  async #selected(
    asked: Question<Compilable>,
    first: () => ChosenKernel<Compilable>,
    isFound: boolean,
  ): Promise<PreparedKernel> {
    const asking = this.#drawn(asked)
    const selection = await Selection.create<ChosenKernel<Compilable>>(
      {
        statistics: this.#open.choice.statistics,
        unknown: asking.statistics.unknown,
        choose: (found, passed) => this.#answer({ ...asking, found, passed }),
        found: ({ kernel }) => kernel.compilation.kernel.found ?? [],
        chosen: ({ chosen }) => chosen,
        compile: (v, device) => (device ? v.kernel.compileAsIs(device) : this.#compile(v)),
        bind: (v, compiled) => compiled.bind(this.#takenBy(v, asking)),
      },
      first,
      isFound,
    )
    return new PreparedKernel(selection.kernel, selection.executable, selection)
  }

  /** Random tensors are the same under all schedules. */
  #drawn(asking: Question<Compilable>): Question<Compilable> {
    const { choice, base } = this.#open
    const { seed } = asking.inputs
    if (seed === undefined) return asking
    const used = usedByChoice(choice)
    const values = valuesIn(base.compilation.source, { ...asking.inputs, statistics: {} })
    const { tensors } = drawnInputs(base.compilation.source, { ...values, seed }, used)
    return { ...asking, inputs: { ...asking.inputs, ...(tensors && { tensors }) } }
  }

  #undecided(): never {
    return fail({
      code: 'choose/open',
      message: `${this.#name} is chosen when data are bound`,
      expected: 'prepare(inputs), whose result has the kernel that was chosen',
      hint: 'const { kernel } = await compiled.choose(inputs)',
    })
  }
}
