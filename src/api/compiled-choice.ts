/** A kernel whose schedule each binding chooses: variants are compiled when they are chosen first, and kept. */
import { appliedName } from '../ast/applied-name.ts'
import { fail } from '../ast/diagnostic.ts'
import { type Bound, bindInputs } from '../run/bind/index.ts'
import { Executable } from '../run/execute.ts'
import type { Device } from '../runtime/device.ts'
import { usedByChoice } from '../schedule/used-data.ts'
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
import { takenBy } from './format-data.ts'

/** Compiled under the schedule that was chosen. */
export interface CompiledVariant {
  readonly kernel: CompiledSchedule
  readonly choice: Chosen
}

/** A kernel that can be compiled under other schedules than its own. */
interface Compilable extends Schedulable<Compilable> {
  compileAsIs(device: Device): Promise<CompiledSchedule>
}

export class CompiledChoice extends CompiledKernel {
  readonly device: Device
  readonly #open: OpenChoice<Compilable>
  /** That were chosen, by schedule and arguments. */
  readonly #chosen = new Set<string>()
  readonly #compiled = new CompiledVariants<Compilable>()
  readonly #bound = new WeakMap<Bound, ChosenKernel<Compilable>>()

  constructor(open: OpenChoice<Compilable>, device: Device) {
    super()
    this.#open = open
    this.device = device
  }

  get compilation(): never {
    return this.#undecided()
  }

  get program(): never {
    return this.#undecided()
  }

  /** Schedules that have been chosen so far, with all their arguments. */
  get variants(): readonly string[] {
    return [...this.#chosen]
  }

  /**
   * The kernel for some inputs, compiled: for `convertFor` and `prepareResident`, and to look at.
   * @throws SptError `choose/…`
   */
  async choose(inputs: ChoiceInputs): Promise<CompiledVariant> {
    const variant = this.#answer(await broughtQuestion(this.#open, this.device, inputs))
    return { kernel: await this.#compile(variant), choice: variant.chosen }
  }

  /** Chooses, and binds data on the host. @throws SptError `choose/…`, `bind/…` */
  bind(inputs: RunInputs): Bound {
    const asking = question(this.#open, inputs)
    const variant = this.#answer(asking)
    const { kernel } = variant.kernel.compilation
    const { tensors, params, seed } = valuesIn(kernel, this.#takenBy(variant, asking))
    const bound = bindInputs(kernel, { tensors, params, ...(seed === undefined ? {} : { seed }) })
    this.#bound.set(bound, variant)
    return bound
  }

  estimate(): never {
    return this.#undecided()
  }

  async prepare(inputs: ChoiceInputs | Bound): Promise<PreparedKernel> {
    if (isBound(inputs)) {
      const variant = this.#bound.get(inputs)
      if (!variant)
        return fail({
          code: 'choose/other-binding',
          message: `these data were not bound for ${this.#name}`,
          expected: 'what its own `bind` gave',
          hint: 'bind them with this kernel, or prepare them with the one they were bound for',
        })
      return this.#prepared(await this.#compile(variant), inputs, variant.chosen)
    }
    const asking = await broughtQuestion(this.#open, this.device, inputs)
    const variant = this.#answer(asking)
    const compiled = await this.#compile(variant)
    return this.#prepared(compiled, compiled.bind(this.#takenBy(variant, asking)), variant.chosen)
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
    this.#chosen.add(appliedName(variant.chosen.schedule, variant.chosen.args))
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

  async #prepared(compiled: CompiledSchedule, bound: Bound, choice: Chosen): Promise<PreparedKernel> {
    const { source } = compiled.compilation
    return new PreparedKernel(compiled, await Executable.create(compiled.program, bound, { source }), choice)
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
