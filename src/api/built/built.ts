/** Compiled kernels as functions: under a fixed schedule, or with a schedule selected for each binding (`dispatch/family.ts`). */
import { WORK_OPTIONS, Work } from '../../ast/work.ts'
import type { Plan } from '../../plan/schema.ts'
import { writePlan } from '../../plan/write.ts'
import type { Bound } from '../../run/bind/index.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { Program, Sources } from '../../run/compile/compiled-program.ts'
import type { UnorderedSum } from '../../run/verify/verify.ts'
import type { Device } from '../../runtime/device.ts'
import { DISPOSE } from '../../runtime/dispose.ts'
import type { Tensor } from '../../storage/tensor.ts'
import type { SelectionInputs } from '../dispatch/device-facts.ts'
import type { Selection } from '../dispatch/dispatch-conditions.ts'
import { type BindOptions, type Inputs, namedInputs, type SelectionOptions } from '../inputs/flat-inputs.ts'
import { Callable } from '../programs/error-sources.ts'
import { type Binding, createBinding } from './binding.ts'
import { CompiledCode, type SelectedCode } from './code.ts'

/** Schedules of a kernel for a device. Each binding runs under a schedule. */
export interface Family {
  readonly name: string
  readonly device: Device
  readonly sources: Sources
  /** Name of the dispatch with arguments; `null` without a dispatch. */
  readonly dispatch: string | null
  /** Schedules that a dispatch selected so far, with arguments. */
  readonly variants: readonly string[]
  /** Code that needs no data. Throws SptError `choose/open` if there is none. */
  readonly code: CompiledCode
  readonly unorderedSums: readonly UnorderedSum[]
  readonly deterministic: boolean
  choose(inputs: SelectionInputs): Promise<SelectedCode>
  estimateBytes(inputs: SelectionInputs): number
  bindOnHost(inputs: SelectionInputs): Bound
  bind(inputs: SelectionInputs, work: Work): Promise<Binding>
  upload(bound: Bound): Promise<Binding>
  release(): void
}

/** A fixed schedule for every binding. */
class OneSchedule implements Family {
  readonly code: CompiledCode
  readonly dispatch = null
  readonly variants: readonly string[] = []

  constructor(code: CompiledCode) {
    this.code = code
  }

  get name(): string {
    return this.code.name
  }

  get device(): Device {
    return this.code.device
  }

  get sources(): Sources {
    return this.code.sources
  }

  get unorderedSums(): readonly UnorderedSum[] {
    return this.code.unorderedSums
  }

  get deterministic(): boolean {
    return this.unorderedSums.length === 0
  }

  async choose(_inputs: SelectionInputs): Promise<SelectedCode> {
    return { code: this.code, selection: null }
  }

  estimateBytes(inputs: SelectionInputs): number {
    return this.code.estimateBytes(inputs)
  }

  bindOnHost(inputs: SelectionInputs): Bound {
    return this.code.bindOnHost(inputs)
  }

  async bind(inputs: SelectionInputs, work: Work): Promise<Binding> {
    const bound = await work.run(this.code.bindingSteps(inputs))
    return createBinding(this.code, bound, null, {}, work)
  }

  upload(bound: Bound): Promise<Binding> {
    return createBinding(this.code, bound)
  }

  release(): void {
    this.code.release()
  }
}

/** A kernel compiled for a device. A call binds the inputs, runs, reads the outputs by name, and frees the memory. */
export class Built extends Callable<
  [inputs: Inputs, options?: BindOptions],
  Promise<Record<string, Tensor>>
> {
  readonly #family: Family
  /** Selected schedule and the reason; `null` if no dispatch selected a schedule when the kernel was built or chosen. */
  readonly selection: Selection | null

  constructor(of: Family | CompiledCode, selection: Selection | null = null) {
    super(of.name)
    this.#family = of instanceof CompiledCode ? new OneSchedule(of) : of
    this.selection = selection
  }

  get sources(): Sources {
    return this.#family.sources
  }

  get device(): Device {
    return this.#family.device
  }

  /** Name of the dispatch, with arguments, that selects the schedule of each binding; `null` for a fixed schedule. */
  get dispatch(): string | null {
    return this.#family.dispatch
  }

  /** Schedules that the dispatch selected so far, with arguments. */
  get variants(): readonly string[] {
    return this.#family.variants
  }

  /**
   * Floating-point sums by atomic updates, whose order varies, so that the last bits of results may differ from run to run. Under a
   * dispatch, sums of the schedules that were compiled so far.
   */
  get unorderedSums(): readonly UnorderedSum[] {
    return this.#family.unorderedSums
  }

  /** True if equal inputs give bitwise equal outputs in every run on this device, under every schedule that may be selected. */
  get deterministic(): boolean {
    return this.#family.deterministic
  }

  /**
   * Bytes of the buffers, computed from sizes; no data are created.
   * @throws SptError `bind/…`, `choose/…`, `plan/too-large`, `device/buffer-too-large`
   */
  estimateBytes(inputs: Inputs, options: BindOptions = {}): number {
    return this.#family.estimateBytes(namedInputs('estimateBytes', inputs, options))
  }

  /** The kernel under the schedule that runs on the inputs, with the reason. @throws SptError `choose/…`, `bind/…` */
  async choose(inputs: Inputs, options: SelectionOptions = {}): Promise<Built> {
    const { code, selection } = await this.#family.choose(
      namedInputs('choose', inputs, options, ['resident']),
    )
    return this.#family instanceof OneSchedule ? this : new Built(code, selection)
  }

  /** Builds the formats of the inputs, and uploads the arrays. @throws SptError `bind/…`, `format/…`, `choose/…`, `device/…` */
  override async bind(inputs: Inputs, options: BindOptions = {}): Promise<Binding> {
    const given = namedInputs('bind', inputs, options, WORK_OPTIONS)
    return this.#family.bind(given, new Work(options))
  }

  protected override async invoke(
    inputs: Inputs,
    options: BindOptions = {},
  ): Promise<Record<string, Tensor>> {
    const given = namedInputs(this.#family.name, inputs, options, WORK_OPTIONS)
    const work = new Work(options)
    const binding = await this.#family.bind(given, work)
    try {
      work.begin('run')
      await work.wait(binding.run())
      return await binding.outputs()
    } finally {
      binding.free()
    }
  }

  /** Frees the code on the device; pending calls fail with `device/released-module`. */
  release(): void {
    this.#family.release()
  }

  [DISPOSE](): void {
    this.release()
  }

  /** @internal Code of the schedule that needs no data. */
  get code(): CompiledCode {
    return this.#family.code
  }

  /** @internal */
  get compilation(): Compilation {
    return this.code.compilation
  }

  /** The plan as JSON, which `loadPlan` and other runtimes execute without the compiler. @throws SptError as `code` */
  get plan(): Plan {
    return writePlan(this.program.plan)
  }

  /** @internal */
  get program(): Program {
    return this.code.program
  }

  /** @internal The host's part of `bind`. */
  bindOnHost(inputs: Inputs, options: BindOptions = {}): Bound {
    return this.#family.bindOnHost(namedInputs('bind', inputs, options))
  }

  /** @internal The device's part of `bind`. */
  upload(bound: Bound): Promise<Binding> {
    return this.#family.upload(bound)
  }
}
