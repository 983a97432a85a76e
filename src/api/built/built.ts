/** Compiled kernels as functions: a family of schedules, one of which is selected for each binding, or a single one. */
import { failWith, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { WORK_OPTIONS, Work } from '../../ast/work.ts'
import type { Plan, PlanFamily } from '../../plan/schema.ts'
import type { Bound } from '../../run/bind/index.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { Program, Sources } from '../../run/compile/program.ts'
import type { UnorderedSum } from '../../run/verify/unordered-sums.ts'
import type { Device } from '../../runtime/device.ts'
import { DISPOSE } from '../../runtime/dispose.ts'
import type { Tensor } from '../../storage/tensor.ts'
import type { SelectionInputs } from '../dispatch/device-facts.ts'
import type { Selection } from '../dispatch/dispatch-conditions.ts'
import { Runs } from '../dispatch/runs.ts'
import { withRejected } from '../dispatch/schedules.ts'
import { Selector } from '../dispatch/selector.ts'
import { expectInputs, expectRecord, valuesIn } from '../inputs/bound-inputs.ts'
import { type BindOptions, type Inputs, namedInputs, type SelectionOptions } from '../inputs/flat-inputs.ts'
import { Callable } from '../programs/error-sources.ts'
import { Binding, createBinding } from './binding.ts'
import {
  bindCandidate,
  bindingSteps,
  type Candidate,
  candidateOf,
  firstAccepted,
  kernelOf,
} from './candidates.ts'
import { fittingBytes } from './check-binding.ts'
import type { CompiledCode } from './code.ts'
import { Family } from './schedule-family.ts'

/** A kernel compiled for a device. A call binds the inputs, runs, reads the outputs by name, and frees the memory. */
export class Built extends Callable<
  [inputs: Inputs, options?: BindOptions],
  Promise<Record<string, Tensor>>
> {
  readonly device: Device
  readonly sources: Sources
  /** Selected schedule and the reason; `null` if no dispatch selected a schedule when the kernel was built or chosen. */
  readonly selection: Selection | null
  readonly #family: Family

  /** @internal */
  constructor(family: Family, selection: Selection | null = null) {
    super(family.source.name)
    this.device = family.device
    this.sources = family.sources
    this.selection = selection
    this.#family = family
  }

  /** @internal Code with a fixed schedule. */
  static fixed(code: CompiledCode, selection: Selection | null = null): Built {
    return new Built(new Family(code.device, { kind: 'fixed', code }), selection)
  }

  /** Name of the dispatch, with arguments, that selects the schedule of each binding; `null` for a fixed schedule. */
  get dispatch(): string | null {
    return this.#family.dispatch
  }

  /** Schedules that the dispatch selected so far, with arguments. */
  get variants(): readonly string[] {
    return [...this.#family.variants]
  }

  /**
   * Floating-point sums by atomic updates, whose order varies, so that the last bits of results may differ from run to run. Under a
   * dispatch, sums of the schedules that were compiled so far.
   */
  get unorderedSums(): readonly UnorderedSum[] {
    return [...this.#family.codes].flatMap((c) => c.unorderedSums)
  }

  /** True if equal inputs give bitwise equal outputs in every run on this device, under every schedule that may be selected. */
  get deterministic(): boolean {
    if (this.device.kind === 'cpu') return true
    const { schedules } = this.#family
    return 'deterministic' in schedules
      ? schedules.deterministic === true
      : schedules.kind === 'fixed' && this.unorderedSums.length === 0
  }

  /**
   * Bytes of the buffers, computed from sizes; no data are created.
   * @throws SptError `bind/…`, `choose/…`, `plan/too-large`, `device/buffer-too-large`
   */
  estimateBytes(inputs: Inputs, options: BindOptions = {}): number {
    const given = namedInputs('estimateBytes', inputs, options)
    const { code } = this.#family
    const of = code ? candidateOf(code, given) : this.#selector(given).candidates()[0]!
    const kernel = kernelOf(of)
    return fittingBytes({ device: this.device, plan: of.plan() }, kernel, valuesIn(kernel, of.inputs()))
  }

  /**
   * The kernel under the schedule that runs on the inputs, with the reason. For data with errors, the auto-scheduler returns the schedule
   * without data, whose `bind` reports the errors.
   * @throws SptError `choose/…`, and `bind/…` for names, ranks and shapes that `bind` would reject
   */
  async choose(inputs: Inputs, options: SelectionOptions = {}): Promise<Built> {
    const given = namedInputs('choose', inputs, options, ['resident', ...WORK_OPTIONS])
    const work = new Work(options)
    if (this.#family.schedules.kind === 'fixed') return this
    work.begin('select', this.#family.label)
    const selector = this.#selector(given)
    const fetching = selector.fetch()
    if (fetching) await work.wait(fetching)
    return firstAccepted(selector.candidates(), async (candidate) => {
      selector.check(candidate)
      work.begin('compile', this.name)
      const code = await work.wait(candidate.compile())
      return Built.fixed(code, candidate.selection)
    })
  }

  /** Builds the formats of the inputs, and uploads the arrays. @throws SptError `bind/…`, `format/…`, `choose/…`, `device/…` */
  override async bind(inputs: Inputs, options: BindOptions = {}): Promise<Binding> {
    return this.#bind(namedInputs('bind', inputs, options, WORK_OPTIONS), new Work(options))
  }

  protected override async invoke(
    inputs: Inputs,
    options: BindOptions = {},
  ): Promise<Record<string, Tensor>> {
    const given = namedInputs(this.name, inputs, options, WORK_OPTIONS)
    const work = new Work(options)
    const binding = await this.#bind(given, work)
    try {
      work.begin('run')
      await work.wait(binding.run())
      return await binding.outputs()
    } finally {
      binding.free()
    }
  }

  async #bind(inputs: SelectionInputs, work: Work): Promise<Binding> {
    this.#checkBindable(inputs)
    if (this.#family.schedules.kind !== 'fixed') work.begin('select', this.#family.label)
    const selector = this.#selector(inputs)
    const fetching = selector.fetch()
    if (fetching) await work.wait(fetching)
    if (selector.isOpenAlways) return this.#selecting(selector)
    return firstAccepted(selector.candidates(), async (candidate, rejected) => {
      const { selection, label } = candidate
      if (selection?.alternatives || selector.isOpen(selection)) return this.#selecting(selector, candidate)
      const bound = await work.run(bindingSteps(candidate))
      const code = await work.wait(candidate.compile())
      return createBinding(code, bound, withRejected(selection, label, rejected, bound.kernel), {}, work)
    })
  }

  #selector(inputs: SelectionInputs): Selector {
    return new Selector(this.#family, inputs)
  }

  /** Throws SptError `api/unknown-option` for `resident` tensors, which only `choose` reads: they would be missing, or random. */
  #checkBindable(inputs: SelectionInputs): void {
    expectRecord(inputs)
    const { capability, processors, features, ...values } = inputs
    expectInputs(this.#family.dispatch === null ? inputs : values)
  }

  /** A binding whose runs select a schedule. */
  async #selecting(selector: Selector, first?: Candidate): Promise<Binding> {
    selector.draw()
    return new Binding(await Runs.create(selector, first))
  }

  /** Frees the code on the device; pending calls fail with `device/released-module`. */
  release(): void {
    this.#family.release()
  }

  [DISPOSE](): void {
    this.release()
  }

  /** @internal Code that needs no data. Throws SptError `choose/open` if there is none. */
  get code(): CompiledCode {
    return (
      this.#family.code ??
      failWith('choose/open', `${this.#family.label} is chosen when data are bound`, {
        expected: 'bind(inputs)',
        hint: 'const chosen = await fn.choose(inputs)',
      })
    )
  }

  /** @internal */
  get compilation(): Compilation {
    return this.code.compilation
  }

  /**
   * The plan as JSON, which `loadPlan` and other runtimes execute without the compiler. Of a dispatch, the family of its plans; for the
   * `sizes` of `build` if they were given.
   * @throws SptError `choose/open` if schedules of a dispatch depend on data, or if there are more than six
   */
  get plan(): Plan | PlanFamily {
    return this.#family.plan
  }

  /** @internal */
  get program(): Program {
    return this.code.program
  }

  /** @internal The host's part of `bind`. */
  bindOnHost(inputs: Inputs, options: BindOptions = {}): Bound {
    const given = namedInputs('bind', inputs, options)
    this.#checkBindable(given)
    const candidates = this.#selector(given).candidates()
    for (const candidate of candidates.slice(0, -1)) {
      const bound = resultOrError(() => bindCandidate(candidate))
      if (!(bound instanceof SptError)) return bound
    }
    return bindCandidate(candidates.at(-1)!)
  }

  /** @internal Uploads data that were bound for a fixed schedule. */
  upload(bound: Bound): Promise<Binding> {
    return createBinding(this.code, bound)
  }
}
