/** Schedules of a kernel, of which one is selected for each binding, and compiled on first use. */
import {
  failWith,
  invariant,
  resultOrError,
  SptError,
  valueOrError,
} from '../../ast/diagnostics/diagnostic.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import { type Coroutine, runSync, Work } from '../../ast/work.ts'
import { getOrAddPromise } from '../../ir/memoize.ts'
import { checkedPlan } from '../../plan/launch-plan.ts'
import type { Bound } from '../../run/bind/index.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { lanesOf, runOn, type Sources } from '../../run/compile/compiled-program.ts'
import type { UnorderedSum } from '../../run/verify/verify.ts'
import type { Device } from '../../runtime/device.ts'
import { Binding, createBinding } from '../built/binding.ts'
import type { Family } from '../built/built.ts'
import { bindWithin, fittingBytes } from '../built/check-binding.ts'
import { type CompiledCode, compileSteps, type SelectedCode } from '../built/code.ts'
import { expectInputs, expectRecord, valuesIn } from '../inputs/bound-inputs.ts'
import { traceOf } from '../kernels/nests.ts'
import { withPlace } from '../programs/error-sources.ts'
import type { Candidate } from './branches.ts'
import type { BindInputs, SelectionInputs } from './device-facts.ts'
import { Dispatcher } from './dispatcher.ts'
import type { RunTimeSelector } from './measurements.ts'
import { type OpenDispatch, type Selectable, type SelectedKernel, withRejected } from './open-dispatch.ts'
import { type BoundOption, bindFirst, failureText, firstAccepted, type Option, optionOf } from './options.ts'
import { Selector } from './selector.ts'

/** Key of the steps of a kernel. Kernels of different sizes often share them. */
const keyOf = ({ compilation }: { readonly compilation: Compilation }): string =>
  JSON.stringify(traceOf(compilation))

export class ScheduleFamily<K extends Selectable<K>> implements Family {
  readonly device: Device
  readonly #open: OpenDispatch<K>
  readonly #variants = new Set<string>()
  readonly #codes = new Set<CompiledCode>()
  /** Compiled schedules: of a dispatch by kernel, which `selector.ts` caches; of the auto-scheduler by steps. */
  readonly #compiled = new Map<unknown, Promise<CompiledCode>>()
  /** The schedule of bound data, and those that follow it. */
  readonly #bound = new WeakMap<Bound, BoundOption>()
  /**
   * Schedule of the auto-scheduler without data: the first candidate on the CPU, `parallel()` on GPUs; `null` for a dispatch. It runs
   * data that no candidate accepts, such as ready-made parts of formats, and reports errors in the data.
   */
  readonly #withoutData: CompiledCode | null

  constructor(
    open: OpenDispatch<K>,
    device: Device,
    withoutData?: { readonly kernel: K; readonly code: CompiledCode },
  ) {
    this.#open = open
    this.device = device
    this.#withoutData = withoutData?.code ?? null
    if (withoutData) this.#codes.add(withoutData.code)
    if (withoutData) this.#compiled.set(keyOf(withoutData.kernel), Promise.resolve(withoutData.code))
  }

  get sources(): Sources {
    return this.#open.base.sources
  }

  /** Sums of the schedules that were compiled so far. */
  get unorderedSums(): readonly UnorderedSum[] {
    return [...this.#codes].flatMap((c) => c.unorderedSums)
  }

  get deterministic(): boolean {
    return this.device.kind === 'cpu' || this.#open.deterministic === true
  }

  /** Name of the dispatch with its arguments; `null` for the auto-scheduler. */
  get dispatch(): string | null {
    return this.#open.choice && this.#open.text
  }

  /** Schedules selected so far, with all arguments; empty for the auto-scheduler. */
  get variants(): readonly string[] {
    return [...this.#variants]
  }

  get name(): string {
    return this.#open.base.compilation.source.name
  }

  get code(): CompiledCode {
    return (
      this.#withoutData ??
      failWith('choose/open', `${this.#name} is chosen when data are bound`, {
        expected: 'bind(inputs)',
        hint: 'const chosen = await fn.choose(inputs)',
      })
    )
  }

  estimateBytes(inputs: SelectionInputs): number {
    if (this.#withoutData) return this.#withoutData.estimateBytes(inputs)
    const selector = new Selector(this.#open, this.device, inputs)
    const { kernel } = selector.select()
    const plan = this.#planOf(kernel)
    const stored = kernel.compilation.kernel
    return fittingBytes(
      { device: this.device, plan: checkedPlan(plan) },
      stored,
      valuesIn(stored, selector.inputsOf({ kernel })),
    )
  }

  #planOf(kernel: K) {
    return runOn<K>(kernel, this.device.kind).compilation.planFor(lanesOf(this.device))
  }

  /**
   * Selects and compiles the schedule for some inputs. For data with errors, the auto-scheduler returns the schedule without data,
   * whose `bind` reports the errors.
   * @throws SptError `choose/…`, and `bind/…` for names, ranks and shapes that `bind` would reject
   */
  async choose(inputs: SelectionInputs): Promise<SelectedCode> {
    const selector = this.#selector(inputs)
    await selector?.fetch()
    return firstAccepted(this.#options(inputs, selector), async (option) => ({
      code: await option.checked(),
      selection: option.selection,
    }))
  }

  /** Selects a schedule, and binds data on the host. @throws SptError `choose/…`, `bind/…` */
  bindOnHost(inputs: BindInputs): Bound {
    this.#checkBindable(inputs)
    return runSync(this.#bindFirst(this.#options(inputs, this.#selector(inputs))))
  }

  async bind(inputs: BindInputs, work: Work): Promise<Binding> {
    this.#checkBindable(inputs)
    work.begin('select', this.#name)
    const selector = this.#selector(inputs)
    const fetching = selector?.fetch()
    if (fetching) await fetching
    if (selector?.isOpenAlways) {
      const first = (): Candidate => this.#option(selector, selector.select())
      return this.#preparedForRuns(selector, first, selector.isMeasuredFirst)
    }
    return this.#upload(await work.run(this.#bindFirst(this.#options(inputs, selector))), work)
  }

  /** Throws SptError `api/unknown-option` for `resident` tensors, which only `choose` reads: they would be missing, or random. */
  #checkBindable(inputs: BindInputs): void {
    expectRecord(inputs)
    const { capability, processors, features, ...values } = inputs
    expectInputs(this.#open.choice ? values : inputs)
  }

  /** Binds the first schedule that accepts the data, and remembers those that follow. */
  *#bindFirst(options: readonly Option[], rejected: readonly string[] = []): Coroutine<Bound> {
    const found = yield* bindFirst(options, rejected)
    this.#bound.set(found.bound, found)
    return found.bound
  }

  upload(bound: Bound): Promise<Binding> {
    return this.#upload(bound, new Work())
  }

  async #upload(bound: Bound, work: Work): Promise<Binding> {
    const known = this.#bound.get(bound)
    if (this.#withoutData && (!known || this.#isReleased))
      return createBinding(this.#withoutData, bound, null, {}, work)
    invariant(known, 'only data that this family bound are uploaded')
    const { options, rejected } = known
    const [first, ...others] = options
    if (others.length === 0) return first!.prepare(bound, rejected, work)
    const binding = await valueOrError(() => first!.prepare(bound, rejected, work))
    if (!(binding instanceof SptError)) return binding
    const next = this.#bindFirst(others, [...rejected, failureText(first!, binding)])
    return this.#upload(await work.run(next), work)
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

  get #name(): string {
    return `${this.name}.${this.#open.text}`
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
    const reported = (rejected: readonly string[]) =>
      withRejected(null, WITHOUT_DATA, rejected, this.#open.base)
    return [...(found ?? []), optionOf(compiled, WITHOUT_DATA, inputs, reported)]
  }

  #option(selector: Selector<K>, selected: SelectedKernel<K>): Option {
    const { kernel, selection } = selected
    if (selection) {
      const { schedule, args, text } = selection
      this.#variants.add(schedule === null ? text : appliedName(schedule, args))
    }
    const { compilation } = kernel
    const { device } = this
    const compile = (other = device): Promise<CompiledCode> =>
      other === device ? this.#compile(selected) : compileSteps<K>(kernel, other)
    const planOf = (k: K) => this.#planOf(k)
    const option: Option = {
      selection,
      compilation,
      compile,
      async checked() {
        selector.check(selected)
        return compile()
      },
      bind: () => runSync(option.bindingSteps()),
      *bindingSteps() {
        // `build` reports errors of lowering.
        const plan = resultOrError(() => planOf(kernel))
        const on = plan instanceof SptError ? null : { device, plan: checkedPlan(plan) }
        return yield* bindWithin(on, compilation.kernel, selector.inputsOf(selected))
      },
      label: selected.text,
      prepare: async (bound, rejected, work) =>
        selection && selector.isOpen(selection)
          ? this.#preparedForRuns(selector, () => option, false)
          : createBinding(
              await work.wait(compile()),
              bound,
              withRejected(selection, selected.text, rejected, this.#open.base),
              {},
              work,
            ),
    }
    return option
  }

  /** Compiles a schedule once. Errors name the selected branch. */
  #compile({ kernel, selection }: SelectedKernel<K>): Promise<CompiledCode> {
    return getOrAddPromise(this.#compiled, selection?.schedule ? kernel : keyOf(kernel), async () => {
      try {
        const code = await compileSteps<K>(kernel, this.device)
        this.#codes.add(code)
        return code
      } catch (e) {
        throw selection ? withPlace(e, selection.span) : e
      }
    })
  }

  async #preparedForRuns(
    selector: Selector<K>,
    first: () => Candidate,
    isMeasuredFirst: boolean,
  ): Promise<Binding> {
    selector.draw()
    const { live, unknown } = selector
    const select: RunTimeSelector['select'] = (...facts) => this.#option(selector, selector.select(...facts))
    return new Binding(await Dispatcher.create({ live, unknown, select }, first, isMeasuredFirst))
  }
}

/** Label of the schedule of the auto-scheduler without data. */
const WITHOUT_DATA = 'the schedule without data'
