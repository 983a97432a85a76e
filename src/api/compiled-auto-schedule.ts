/** A kernel without a schedule, compiled: what is bound says how its loops are dealt out, however it is bound. */
import { byName } from '../ast/by-name.ts'
import { orRefused, SptError } from '../ast/diagnostic.ts'
import { givenOf } from '../run/bind/caller-tensors.ts'
import { type Bound, bindInputs } from '../run/bind/index.ts'
import type { Compilation } from '../run/compile.ts'
import type { Device } from '../runtime/device.ts'
import type { ResidentParts } from '../storage/engines/device/index.ts'
import { type RunInputs, valuesIn } from './bound-inputs.ts'
import { CompiledSchedule, isBound, type PreparedKernel } from './compiled.ts'
import { CompiledVariants } from './compiled-variants.ts'
import type { AutoSchedulable } from './format-candidates.ts'
import { residentStructure } from './resident-structure.ts'
import { type AutoScheduleInputs, fastestCandidates, keepsDeclaredFormats } from './schedule-candidates.ts'
import { traceOf } from './trace-text.ts'

/** A kernel that can be compiled under the form that was chosen. */
export interface AutoSchedulableKernel<K> extends AutoSchedulable<K> {
  compileSchedule(device: Device): Promise<CompiledSchedule>
}

/**
 * By itself it is what takes no data and little time: on cpu the best guess, on others `parallel()`. Data are run by the form
 * that the cost model expects to be the fastest on them, without a model by the best guess for their sizes; it is compiled when
 * it is needed first.
 */
export class CompiledAutoSchedule<K extends AutoSchedulableKernel<K>> extends CompiledSchedule {
  readonly #kernel: K
  readonly #early: CompiledSchedule
  /** By their steps: kernels of other sizes often have the same. */
  readonly #compiled = new CompiledVariants<string>()
  readonly #bound = new WeakMap<Bound, { readonly form: K; readonly inputs: RunInputs }>()

  #isReleased = false

  /** `early`: what it is without data. */
  constructor(kernel: K, early: CompiledSchedule) {
    super(early.compilation, early.program)
    this.#kernel = kernel
    this.#early = early
    this.#compiled.set(keyOf(early), early)
  }

  /** Lists and sets of its formats are none of the kernel as written, whatever that calls so. */
  get #takesData(): boolean {
    return givenOf(this.compilation.kernel).size > 0
  }

  override bind(inputs: RunInputs): Bound {
    if (this.#takesData) return super.bind(inputs)
    // Ready-made parts of formats are none of the kernel as it is declared: then, and where nothing fits, as without data.
    const found = orRefused(() => {
      const values = valuesIn(this.#kernel.compilation.source, inputs)
      return { values, forms: this.#formsFor(values) }
    })
    if (found instanceof SptError || found.forms.length === 0) return super.bind(inputs)
    const { values, forms } = found
    this.estimateBytes(inputs)
    const [first, declared] = forms
    // What another format than the declared one does not take, of which samples alone have been looked at.
    const bound = declared ? orRefused(() => this.#bind(first!, values, inputs)) : undefined
    return bound && !(bound instanceof SptError) ? bound : this.#bind(declared ?? first!, values, inputs)
  }

  #bind(form: K, { tensors, params, seed }: ReturnType<typeof valuesIn>, inputs: RunInputs): Bound {
    const { kernel } = form.compilation
    const bound = bindInputs(kernel, { tensors, params, ...(seed === undefined ? {} : { seed }) })
    this.#bound.set(bound, { form, inputs })
    return bound
  }

  override async prepare(inputs: RunInputs | Bound): Promise<PreparedKernel> {
    const bound = isBound(inputs) ? inputs : this.bind(inputs)
    const chosen = this.#bound.get(bound)
    // Once it is released, what it was compiled as refuses.
    if (!chosen || this.#isReleased) return super.prepare(bound)
    try {
      return await (await this.#compile(chosen.form)).prepare(bound)
    } catch (why) {
      // What the device or lowering refuses of a form nobody asked for: what it is compiled as has been taken.
      if (!(why instanceof SptError)) throw why
      const values = valuesIn(this.#kernel.compilation.source, chosen.inputs)
      const declared = this.#formsFor(values).at(-1)
      if (declared && declared !== chosen.form)
        return this.prepare(this.#bind(declared, values, chosen.inputs))
      return super.prepare(super.bind(chosen.inputs))
    }
  }

  override async selectVariant(
    inputs: RunInputs,
    resident: Readonly<Record<string, ResidentParts>> = {},
  ): Promise<CompiledSchedule> {
    if (this.#isReleased || this.#takesData) return this.#early
    try {
      const tensors = byName(Object.entries(inputs.tensors ?? {}))
      for (const [name, parts] of Object.entries(resident)) tensors[name] = await residentStructure(parts)
      const forms = this.#formsFor(valuesIn(this.#kernel.compilation.source, { ...inputs, tensors }))
      return await this.#compiledFirst(forms)
    } catch (why) {
      // As in `prepare`; what is wrong with what is bound is said when it is.
      if (!(why instanceof SptError)) throw why
      return this.#early
    }
  }

  override release(): void {
    this.#isReleased = true
    this.#compiled.release()
    super.release()
  }

  /** What runs, and what does where that is in another format and is refused. */
  #formsFor(values: AutoScheduleInputs): readonly K[] {
    const forms = fastestCandidates(this.#kernel, this.device, values)
    const declared = forms.findIndex((f) => keepsDeclaredFormats(this.#kernel, f))
    return [...new Set([0, declared])].flatMap((k) => forms[k]?.kernel ?? [])
  }

  async #compiledFirst([first, declared]: readonly K[]): Promise<CompiledSchedule> {
    if (!first) return this.#early
    if (!declared) return this.#compile(first)
    try {
      return await this.#compile(first)
    } catch (why) {
      if (!(why instanceof SptError)) throw why
      return this.#compile(declared)
    }
  }

  #compile(form: K): Promise<CompiledSchedule> {
    return this.#compiled.get(keyOf(form), () => form.compileSchedule(this.device))
  }
}

const keyOf = ({ compilation }: { readonly compilation: Compilation }): string =>
  JSON.stringify(traceOf(compilation))
