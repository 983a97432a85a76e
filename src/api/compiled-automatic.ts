/** A kernel without a schedule, compiled for a device with threads: what is bound says how its loops are dealt out. */
import { SptError } from '../ast/diagnostic.ts'
import { type Bound, bindInputs } from '../run/bind/index.ts'
import type { Compilation } from '../run/compile.ts'
import type { Program } from '../run/execute.ts'
import type { Device } from '../runtime/device.ts'
import { type Automatic, type AutomaticInputs, fastestForms } from './automatic-forms.ts'
import { type RunInputs, valuesIn } from './bound-inputs.ts'
import { CompiledSchedule, isBound, type PreparedKernel } from './compiled.ts'

/** A kernel that can be compiled under the form that was chosen. */
export interface AutomaticKernel<K> extends Automatic<K> {
  toJSON(): readonly object[]
  compileAsIs(device: Device): Promise<CompiledSchedule>
}

/**
 * By itself it is compiled as `parallel()` is, which takes no data and little time. Data that are bound on the host are run by
 * the form that the cost model expects to be the fastest on them, without a model by the best guess for their sizes; it is
 * compiled when it is needed first.
 */
export class CompiledAutomatic<K extends AutomaticKernel<K>> extends CompiledSchedule {
  readonly #kernel: K
  /** By steps: other sizes often give the same. */
  readonly #compiled = new Map<string, Promise<CompiledSchedule>>()
  readonly #bound = new WeakMap<Bound, { readonly form: K; readonly inputs: RunInputs }>()

  #isReleased = false

  constructor(kernel: K, compilation: Compilation, program: Program) {
    super(compilation, program)
    this.#kernel = kernel
  }

  override bind(inputs: RunInputs): Bound {
    const { source } = this.#kernel.compilation
    const values = valuesIn(source, inputs)
    const [form] = this.#forms(values)
    if (!form) return super.bind(inputs)
    this.estimate(inputs)
    const { tensors, params, seed } = values
    const bound = bindInputs(form.compilation.kernel, {
      tensors,
      params,
      ...(seed === undefined ? {} : { seed }),
    })
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
      return super.prepare(super.bind(chosen.inputs))
    }
  }

  override release(): void {
    this.#isReleased = true
    for (const pending of this.#compiled.values())
      void pending.then(
        (c) => c.release(),
        () => {},
      )
    this.#compiled.clear()
    super.release()
  }

  #forms(values: AutomaticInputs): readonly K[] {
    return fastestForms(this.#kernel, this.device, values)
  }

  #compile(form: K): Promise<CompiledSchedule> {
    const key = JSON.stringify(form.toJSON())
    const known = this.#compiled.get(key)
    if (known) return known
    const pending = form.compileAsIs(this.device)
    this.#compiled.set(key, pending)
    pending.catch(() => this.#compiled.delete(key))
    return pending
  }
}
