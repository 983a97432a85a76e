/** A kernel whose schedule is selected for each binding, and compiled on first use. */
import { failWith, resultOrError, SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import { getOrAddPromise } from '../../ir/memoize.ts'
import { bindPlan } from '../../run/bind/bind-plan.ts'
import type { Bound } from '../../run/bind/index.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { runOn, type Sources } from '../../run/compile/compiled-program.ts'
import { lanesOf, type Program } from '../../run/execution/execute.ts'
import type { UnorderedSum } from '../../run/verify/verify.ts'
import type { Device } from '../../runtime/device.ts'
import { isUnscheduled, scheduleCandidates } from '../auto-schedule/schedule-candidates.ts'
import { bindWithin } from '../compiled/check-prepared.ts'
import { CompiledKernel, type CompiledSchedule, type CompiledVariant } from '../compiled/compiled.ts'
import { PreparedKernel, preparedUnder } from '../compiled/prepared.ts'
import { expectInputs, expectRecord, isBound, type RunInputs } from '../inputs/bound-inputs.ts'
import { traceOf } from '../kernels/nests.ts'
import { withPlace } from '../programs/error-sources.ts'
import type { Candidate } from './branches.ts'
import type { BindInputs, SelectionInputs } from './device-facts.ts'
import { Dispatcher } from './dispatcher.ts'
import type { RunTimeSelector } from './measurements.ts'
import { type OpenDispatch, type Selectable, type SelectedKernel, Selector } from './selector.ts'

/** Key of the steps of a kernel. Kernels of different sizes often share them. */
const keyOf = ({ compilation }: { readonly compilation: Compilation }): string =>
  JSON.stringify(traceOf(compilation))

/** A schedule for some inputs. It runs if the data or the device reject those before it. */
interface Option extends Candidate {
  /** Compiles the schedule after a check of names, ranks and shapes. Throws SptError `bind/…`, and as `compile`. */
  checked(): Promise<CompiledSchedule>
  prepare(bound: Bound): Promise<PreparedKernel>
}

export class CompiledDispatch<K extends Selectable<K> = never> extends CompiledKernel {
  readonly device: Device
  readonly #open: OpenDispatch<K>
  readonly #variants = new Set<string>()
  /** Compiled schedules: of a dispatch by kernel, which `selector.ts` caches; of the auto-scheduler by steps. */
  readonly #compiled = new Map<unknown, Promise<CompiledSchedule>>()
  /** The schedule of bound data, and those that follow it. */
  readonly #bound = new WeakMap<Bound, readonly Option[]>()
  /**
   * Schedule of the auto-scheduler without data: the first candidate on the CPU, `parallel()` on GPUs; `null` for a dispatch. It runs
   * data that no candidate accepts, such as ready-made parts of formats, and reports errors in the data.
   */
  readonly #withoutData: CompiledSchedule | null

  constructor(
    open: OpenDispatch<K>,
    device: Device,
    withoutData?: { readonly kernel: K; readonly compiled: CompiledSchedule },
  ) {
    super()
    this.#open = open
    this.device = device
    this.#withoutData = withoutData?.compiled ?? null
    if (withoutData) this.#compiled.set(keyOf(withoutData.kernel), Promise.resolve(withoutData.compiled))
  }

  get sources(): Sources {
    return this.#open.base.sources
  }

  /** Name of the dispatch with its arguments; `null` for the auto-scheduler. */
  get dispatch(): string | null {
    return this.#open.choice && this.#open.text
  }

  /** Schedules selected so far, with all arguments; empty for the auto-scheduler. */
  get variants(): readonly string[] {
    return [...this.#variants]
  }

  get compilation(): Compilation {
    return this.#default.compilation
  }

  get program(): Program {
    return this.#default.program
  }

  get unorderedSums(): readonly UnorderedSum[] {
    return this.#default.unorderedSums
  }

  async compileFor(device: Device): Promise<CompiledSchedule> {
    return this.#default.compileFor(device)
  }

  estimateBytes(inputs: RunInputs): number {
    return this.#default.estimateBytes(inputs)
  }

  /**
   * Selects and compiles the schedule for some inputs. For data with errors, the auto-scheduler returns the schedule without data,
   * whose `bind` reports the errors.
   * @throws SptError `choose/…`, and `bind/…` for names, ranks and shapes that `prepare` would reject
   */
  async choose(inputs: SelectionInputs): Promise<CompiledVariant> {
    const selector = this.#selector(inputs)
    await selector?.fetch()
    return firstAccepted(this.#options(inputs, selector), async (option) => ({
      kernel: await option.checked(),
      selection: option.selection,
    }))
  }

  /** Selects a schedule, and binds data on the host. @throws SptError `choose/…`, `bind/…` */
  bind(inputs: BindInputs): Bound {
    this.#checkBindable(inputs)
    return this.#bindFirst(this.#options(inputs, this.#selector(inputs)))
  }

  async prepare(inputs: BindInputs | Bound): Promise<PreparedKernel> {
    if (isBound(inputs)) return this.#prepareBound(inputs)
    this.#checkBindable(inputs)
    const selector = this.#selector(inputs)
    const fetching = selector?.fetch()
    if (fetching) await fetching
    if (selector?.isOpenAlways) {
      const first = (): Candidate => this.#option(selector, selector.select())
      return this.#preparedForRuns(selector, first, selector.isMeasuredFirst)
    }
    return this.#prepareBound(this.#bindFirst(this.#options(inputs, selector)))
  }

  /** Throws SptError `api/unknown-option` for `resident` tensors, which only `choose` reads: they would be missing, or random. */
  #checkBindable(inputs: BindInputs): void {
    expectRecord(inputs)
    const { capability, processors, features, ...values } = inputs
    expectInputs(this.#open.choice ? values : inputs)
  }

  #bindFirst([first, ...others]: readonly Option[]): Bound {
    const bound = others.length > 0 ? resultOrError(() => first!.bind()) : first!.bind()
    if (bound instanceof SptError) return this.#bindFirst(others)
    this.#bound.set(bound, [first!, ...others])
    return bound
  }

  async #prepareBound(bound: Bound): Promise<PreparedKernel> {
    const known = this.#bound.get(bound)
    if (this.#withoutData && (!known || this.#isReleased)) return this.#withoutData.prepare(bound)
    if (!known)
      return failWith('choose/other-binding', `the data were not bound for ${this.#name}`, {
        expected: 'data that `bind` of this kernel returned',
        hint: 'bind the data with this kernel, or call prepare of the kernel that bound the data',
      })
    const [first, ...others] = known
    if (others.length === 0) return first!.prepare(bound)
    const prepared = await valueOrError(() => first!.prepare(bound))
    return prepared instanceof SptError ? this.#prepareBound(this.#bindFirst(others)) : prepared
  }

  /** Releases every compiled schedule. A dispatch compiles again for later selections. */
  release(): void {
    for (const pending of this.#compiled.values())
      void pending.then(
        (c) => c.release(),
        () => {},
      )
    this.#compiled.clear()
    this.#withoutData?.release()
  }

  /** True after a release of the auto-scheduler: the schedule without data reports the error. */
  get #isReleased(): boolean {
    return this.#withoutData?.program.live === false
  }

  get #default(): CompiledSchedule {
    return (
      this.#withoutData ??
      failWith('choose/open', `${this.#name} is chosen when data are bound`, {
        expected: 'prepare(inputs), whose result has the kernel that was chosen',
        hint: 'const { kernel } = await compiled.choose(inputs)',
      })
    )
  }

  get #name(): string {
    const { base, text } = this.#open
    return `${base.compilation.source.name}.${text}`
  }

  #selector(inputs: SelectionInputs): Selector<K> | null {
    return this.#accepted(() => new Selector(this.#open, this.device, inputs))
  }

  /** The result of `work`. Null for an error of the auto-scheduler, whose schedule without data reports errors in the data. */
  #accepted<T>(work: () => T): T | null {
    const done = this.#withoutData ? resultOrError(work) : work()
    return done instanceof SptError ? null : done
  }

  /** Schedules for some inputs, the preferred one first. Throws SptError `choose/…`. */
  #options(inputs: SelectionInputs, selector: Selector<K> | null): readonly Option[] {
    const compiled = this.#withoutData
    const found =
      selector && !this.#isReleased
        ? this.#accepted(() => selector.candidates().map((c) => this.#option(selector, c)))
        : null
    if (!compiled) return found!
    const compile = async (device?: Device) => (device ? compiled.compileFor(device) : compiled)
    const { compilation } = compiled
    const last: Option = {
      selection: null,
      compilation,
      compile,
      checked: compile,
      bind: () => compiled.bind(inputs),
      prepare: (bound) => compiled.prepare(bound),
    }
    return [...(found ?? []), last]
  }

  #option(selector: Selector<K>, selected: SelectedKernel<K>): Option {
    const { kernel, selection } = selected
    if (selection) {
      const { schedule, args, text } = selection
      this.#variants.add(schedule === null ? text : appliedName(schedule, args))
    }
    const { compilation } = kernel
    const { device } = this
    const compile = (other = device): Promise<CompiledSchedule> =>
      other === device ? this.#compile(selected) : kernel.compileSchedule(other)
    const option: Option = {
      selection,
      compilation,
      compile,
      async checked() {
        selector.check(selected)
        return compile()
      },
      bind() {
        // `compile` reports errors of lowering.
        const plan = resultOrError(() => runOn(kernel, device.kind).compilation.planFor(lanesOf(device)))
        const on = plan instanceof SptError ? null : { device, plan }
        return bindWithin(on, compilation.kernel, selector.inputsOf(selected))
      },
      prepare: async (bound) =>
        selection && selector.isOpen(selection)
          ? this.#preparedForRuns(selector, () => option, false)
          : preparedUnder(await compile(), bound, selection),
    }
    return option
  }

  #compile({ kernel, selection }: SelectedKernel<K>): Promise<CompiledSchedule> {
    return getOrAddPromise(this.#compiled, selection ? kernel : keyOf(kernel), () =>
      kernel.compileSchedule(this.device).catch((e: unknown) => {
        throw selection ? withPlace(e, selection.span) : e
      }),
    )
  }

  async #preparedForRuns(
    selector: Selector<K>,
    first: () => Candidate,
    isMeasuredFirst: boolean,
  ): Promise<PreparedKernel> {
    selector.draw()
    const { live, unknown } = selector
    const select: RunTimeSelector['select'] = (...facts) => this.#option(selector, selector.select(...facts))
    return new PreparedKernel(await Dispatcher.create({ live, unknown, select }, first, isMeasuredFirst))
  }
}

/** Result for the first item that is not rejected with a user error. Throws the error of the last. */
async function firstAccepted<T, R>(
  [first, ...others]: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<R> {
  if (others.length === 0) return work(first!)
  const done = await valueOrError(() => work(first!))
  return done instanceof SptError ? firstAccepted(others, work) : done
}

/** Compiles a kernel; if it has no schedule, as far as possible without data. Returns also the kernel under that schedule. */
export async function compileDefault<K extends Selectable<K>>(
  kernel: K,
  device: Device,
): Promise<{ readonly kernel: K; readonly compiled: CompiledKernel }> {
  const compiledWith = async (k: K) => ({ kernel: k, compiled: await k.compileSchedule(device) })
  if (!isUnscheduled(kernel.compilation)) return compiledWith(kernel)
  // On GPUs, candidates are compiled once sizes are known, because code for unknown sizes has a version per remainder.
  const guess = device.kind === 'cpu' ? scheduleCandidates(kernel, 'cpu', undefined, 1)[0] : undefined
  // Lowering may reject the candidate, but accept the unscheduled kernel.
  const early = await firstAccepted(guess ? [guess.kernel, kernel] : [kernel], compiledWith)
  // Lists and sets of formats are not inputs of the kernel as declared, on which candidates are compared.
  if (bindPlan(kernel.compilation.kernel).operands.size > 0) return early
  const open = { base: kernel, choice: null, values: new Map(), text: 'auto' }
  return { kernel: early.kernel, compiled: new CompiledDispatch<K>(open, device, early) }
}
