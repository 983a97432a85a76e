/** A compiled kernel without a schedule: bound data determines the partition of its loops. */
import { byName } from '../../ast/by-name.ts'
import { resultOrError, SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import { bindPlan } from '../../run/bind/bind-plan.ts'
import { type Bound, bindInputs } from '../../run/bind/index.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { Device } from '../../runtime/device.ts'
import type { ResidentParts } from '../../storage/engines/device/index.ts'
import { CompiledSchedule, isBound, type PreparedKernel } from '../compiled/compiled.ts'
import { CompiledVariants } from '../compiled/compiled-variants.ts'
import { type RunInputs, valuesIn } from '../inputs/bound-inputs.ts'
import { traceOf } from '../kernels/nests.ts'
import { residentStructure } from '../resident/resident-binding.ts'
import type { AutoSchedulable } from './format-candidates.ts'
import { type AutoScheduleInputs, fastestCandidates, keepsDeclaredFormats } from './schedule-candidates.ts'

export interface AutoSchedulableKernel<K> extends AutoSchedulable<K> {
  compileSchedule(device: Device): Promise<CompiledSchedule>
}

/**
 * Without data, this is the first candidate on the CPU, and `parallel()` on GPUs. For data, the cost model selects the fastest candidate,
 * or the heuristic default without a model. Each candidate is compiled when it is first needed.
 */
export class CompiledAutoSchedule<K extends AutoSchedulableKernel<K>> extends CompiledSchedule {
  readonly #kernel: K
  readonly #early: CompiledSchedule
  /** Compiled candidates by their steps, which kernels of different sizes often share. */
  readonly #compiled = new CompiledVariants<string>()
  readonly #bound = new WeakMap<Bound, { readonly form: K; readonly inputs: RunInputs }>()

  #isReleased = false

  /** `early`: the kernel compiled without data. */
  constructor(kernel: K, early: CompiledSchedule) {
    super(early.compilation, early.program)
    this.#kernel = kernel
    this.#early = early
    this.#compiled.set(keyOf(early), early)
  }

  /** True if the kernel's formats take lists or sets, which the unscheduled kernel does not have. */
  get #takesData(): boolean {
    return bindPlan(this.compilation.kernel).operands.size > 0
  }

  override bind(inputs: RunInputs): Bound {
    if (this.#takesData) return super.bind(inputs)
    // Ready-made parts of formats cannot be bound to the unscheduled kernel; they use the version without data.
    const found = resultOrError(() => {
      const values = valuesIn(this.#kernel.compilation.source, inputs)
      return { values, forms: this.#formsFor(values) }
    })
    if (found instanceof SptError || found.forms.length === 0) return super.bind(inputs)
    const { values, forms } = found
    this.estimateBytes(inputs)
    const [first, declared] = forms
    // Another format may reject the data, because the candidate was selected from samples.
    const bound = declared ? resultOrError(() => this.#bind(first!, values, inputs)) : undefined
    return bound && !(bound instanceof SptError) ? bound : this.#bind(declared ?? first!, values, inputs)
  }

  #bind(form: K, values: ReturnType<typeof valuesIn>, inputs: RunInputs): Bound {
    const bound = bindInputs(form.compilation.kernel, values)
    this.#bound.set(bound, { form, inputs })
    return bound
  }

  override async prepare(inputs: RunInputs | Bound): Promise<PreparedKernel> {
    const bound = isBound(inputs) ? inputs : this.bind(inputs)
    const chosen = this.#bound.get(bound)
    // After release, the version without data reports the error.
    if (!chosen || this.#isReleased) return super.prepare(bound)
    const { form, inputs: given } = chosen
    const prepared = await valueOrError(async () => (await this.#compile(form)).prepare(bound))
    if (!(prepared instanceof SptError)) return prepared
    // If the device or lowering rejects the selected candidate, fall back to declared formats, then to the version without data.
    const values = valuesIn(this.#kernel.compilation.source, given)
    const declared = this.#formsFor(values).at(-1)
    return declared && declared !== form
      ? this.prepare(this.#bind(declared, values, given))
      : super.prepare(super.bind(given))
  }

  override async selectVariant(
    inputs: RunInputs,
    resident: Readonly<Record<string, ResidentParts>> = {},
  ): Promise<CompiledSchedule> {
    if (this.#isReleased || this.#takesData) return this.#early
    const found = await valueOrError(async () => {
      const tensors = byName(Object.entries(inputs.tensors ?? {}))
      for (const [name, parts] of Object.entries(resident)) tensors[name] = await residentStructure(parts)
      const forms = this.#formsFor(valuesIn(this.#kernel.compilation.source, { ...inputs, tensors }))
      return this.#compiledFirst(forms)
    })
    // As in `prepare`. Errors in the data are reported when it is bound.
    return found instanceof SptError ? this.#early : found
  }

  override release(): void {
    this.#isReleased = true
    this.#compiled.release()
    super.release()
  }

  /** Returns the fastest candidate, and the fastest one with declared formats as a fallback. */
  #formsFor(values: AutoScheduleInputs): readonly K[] {
    const forms = fastestCandidates(this.#kernel, this.device, values)
    const declared = forms.findIndex((f) => keepsDeclaredFormats(this.#kernel, f))
    return [...new Set([0, declared])].flatMap((k) => forms[k]?.kernel ?? [])
  }

  async #compiledFirst([first, declared]: readonly K[]): Promise<CompiledSchedule> {
    if (!first) return this.#early
    const compiled = declared ? await valueOrError(() => this.#compile(first)) : this.#compile(first)
    return compiled instanceof SptError ? this.#compile(declared!) : compiled
  }

  #compile(form: K): Promise<CompiledSchedule> {
    return this.#compiled.get(keyOf(form), () => form.compileSchedule(this.device))
  }
}

const keyOf = ({ compilation }: { readonly compilation: Compilation }): string =>
  JSON.stringify(traceOf(compilation))
