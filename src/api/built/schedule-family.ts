/** The schedules of a compiled kernel on a device, compiled on first use. */
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { getOrAddPromise } from '../../ir/memoize.ts'
import { checkedPlan } from '../../plan/launch-plan.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { lanesOf, runOn, type Sources } from '../../run/compile/compiled-program.ts'
import type { Device } from '../../runtime/device.ts'
import type { SelectionInputs } from '../dispatch/device-facts.ts'
import type { Selection } from '../dispatch/dispatch-conditions.ts'
import { closedBranches, closedSchedule, MOST_PLANS } from '../dispatch/family-plan.ts'
import type { AnyKernel, Schedules, Selected } from '../dispatch/schedules.ts'
import { Selector } from '../dispatch/selector.ts'
import { traceOf } from '../kernels/nests.ts'
import { withPlace } from '../programs/error-sources.ts'
import { type Candidate, candidateOf } from './candidates.ts'
import { CompiledCode, compileSteps } from './code.ts'

/** Key of the steps of a kernel. Kernels of different sizes often share them. */
const keyOf = ({ compilation }: { readonly compilation: Compilation }): string =>
  JSON.stringify(traceOf(compilation))

export class Family {
  readonly schedules: Schedules
  /** Schedules selected so far, with all arguments; empty for the auto-scheduler. */
  readonly variants = new Set<string>()
  /** Schedules compiled so far. */
  readonly codes = new Set<CompiledCode>()
  readonly #device: Device
  /** Compiled schedules: of a dispatch by kernel, which `schedules.ts` caches; of the auto-scheduler by steps. */
  readonly #compiled = new Map<unknown, Promise<CompiledCode>>()

  constructor(device: Device, schedules: Schedules) {
    this.#device = device
    this.schedules = schedules
    const { code } = this
    if (code) this.codes.add(code)
    if (schedules.kind === 'automatic')
      this.#compiled.set(keyOf(schedules.kernel), Promise.resolve(schedules.code))
    for (const loaded of this.#loaded) this.codes.add(loaded)
  }

  /** Code that needs no data; `null` for a dispatch. */
  get code(): CompiledCode | null {
    return this.schedules.kind === 'dispatch' ? null : this.schedules.code
  }

  /** Compiled plans of a dispatch that was loaded. */
  get #loaded(): Iterable<CompiledCode> {
    const { schedules } = this
    return schedules.kind === 'dispatch' && !('compilation' in schedules.schedules)
      ? schedules.schedules.values()
      : []
  }

  /** The kernel without steps. */
  get source(): Kernel1 {
    return this.schedules.kind === 'fixed' ? this.schedules.code.source : this.schedules.source
  }

  /** Sources of the program; empty for plans that were loaded. */
  get sources(): Sources {
    const { schedules } = this
    if (schedules.kind !== 'dispatch') return schedules.code.sources
    return 'compilation' in schedules.schedules ? schedules.schedules.sources : new Map()
  }

  /** Name of the dispatch with its arguments; `null` without a dispatch. */
  get dispatch(): string | null {
    return this.schedules.kind === 'dispatch' ? this.schedules.text : null
  }

  /** Name of the kernel, with that of a dispatch. */
  get label(): string {
    const { kind } = this.schedules
    return kind === 'fixed' ? this.source.name : `${this.source.name}.${this.dispatch ?? 'auto'}`
  }

  /** `null` for a fixed schedule, and for inputs that the auto-scheduler rejects: the schedule without data reports errors in the data. */
  selector(inputs: SelectionInputs): Selector | null {
    const { schedules } = this
    return schedules.kind === 'fixed'
      ? null
      : this.#accepted(() => new Selector(schedules, this.#device, inputs))
  }

  #accepted<T>(work: () => T): T | null {
    const done = this.code ? resultOrError(work) : work()
    return done instanceof SptError ? null : done
  }

  /** True after a release of the schedule without data, which reports the error. */
  get isReleased(): boolean {
    return this.code?.program.live === false
  }

  /** Schedules for some inputs, the preferred one first. Throws SptError `choose/…`. */
  candidates(inputs: SelectionInputs, selector: Selector | null): readonly Candidate[] {
    const found =
      selector && !this.isReleased
        ? this.#accepted(() => selector.candidates().map((c) => this.candidate(selector, c)))
        : null
    return [...(found ?? []), ...(this.code ? [candidateOf(this.code, inputs, WITHOUT_DATA)] : [])]
  }

  candidate(selector: Selector, { schedule, selection, text: label }: Selected): Candidate {
    if (selection) {
      const { schedule: name, args, text } = selection
      this.variants.add(name === null ? text : appliedName(name, args))
    }
    const device = this.#device
    if (schedule instanceof CompiledCode) {
      const { binding: kernel } = schedule.program.plan
      return { ...candidateOf(schedule, {}, label), selection, inputs: () => selector.inputsOf(kernel) }
    }
    const { kernel } = schedule.compilation
    return {
      selection,
      label,
      kernel,
      device,
      inputs: () => selector.inputsOf(kernel),
      plan: () => checkedPlan(runOn<AnyKernel>(schedule, device.kind).compilation.planFor(lanesOf(device))),
      compile: (other = device) =>
        other === device ? this.#compile(schedule, selection) : compileSteps<AnyKernel>(schedule, other),
    }
  }

  /**
   * Compiles the schedules that a dispatch may select, if they need no data, and are not more than a family has. Throws SptError
   * `schedule/…`, `device/compile` of any of them.
   */
  async compileAll(): Promise<void> {
    const { schedules } = this
    if (schedules.kind !== 'dispatch') return
    const branches = resultOrError(() => closedBranches(schedules, this.#device))
    if (branches instanceof SptError) return
    const closed = branches.map(({ calls }) => calls.filter((c) => !c.open))
    if (new Set(closed.flatMap((calls) => calls.map((c) => c.text))).size > MOST_PLANS) return
    for (const calls of closed)
      for (const own of calls) {
        const schedule = resultOrError(() => closedSchedule(schedules, this.#device, own))
        // `fastest` skips illegal schedules.
        if (schedule instanceof SptError && calls.length === 1) throw schedule
        if (schedule && !(schedule instanceof SptError) && !(schedule instanceof CompiledCode))
          await this.#compile(schedule, { schedule: own.call.schedule.name, span: own.call.span })
      }
  }

  /** Compiles a schedule once. Errors name the selected branch. */
  #compile(kernel: AnyKernel, selection: Pick<Selection, 'schedule' | 'span'> | null): Promise<CompiledCode> {
    return getOrAddPromise(this.#compiled, selection?.schedule ? kernel : keyOf(kernel), async () => {
      try {
        const code = await compileSteps<AnyKernel>(kernel, this.#device)
        this.codes.add(code)
        return code
      } catch (e) {
        throw selection ? withPlace(e, selection.span) : e
      }
    })
  }

  /** Releases every compiled schedule. A dispatch compiles again for later selections. */
  release(): void {
    for (const pending of this.#compiled.values())
      void pending.then(
        (c) => c.release(),
        () => {},
      )
    this.#compiled.clear()
    for (const loaded of this.#loaded) loaded.release()
    this.code?.release()
  }
}

/** Label of the schedule without data. */
const WITHOUT_DATA = 'the schedule without data'
