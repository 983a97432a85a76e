/** The schedules of a compiled kernel: a fixed one, or those of a dispatch or the auto-scheduler, compiled on first use. */
import { invariant, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { getOrAddPromise } from '../../ir/memoize.ts'
import { checkedPlan } from '../../plan/launch-plan.ts'
import type { PlanFamily } from '../../plan/schema.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { lanesOf, runOn } from '../../run/compile/compiled-program.ts'
import type { Device } from '../../runtime/device.ts'
import { closedBranches } from '../dispatch/closed-branches.ts'
import type { SelectionInputs } from '../dispatch/device-facts.ts'
import type { Selection } from '../dispatch/dispatch-conditions.ts'
import { closedKernels, familyPlan } from '../dispatch/family-plan.ts'
import type { OpenDispatch, Selectable, SelectedKernel } from '../dispatch/open-dispatch.ts'
import { Selector } from '../dispatch/selector.ts'
import { traceOf } from '../kernels/nests.ts'
import type { LoadedFamily } from '../plans/loaded-family.ts'
import { withPlace } from '../programs/error-sources.ts'
import { type Candidate, candidateOf } from './candidates.ts'
import { type CompiledCode, compileSteps } from './code.ts'

/** A kernel to which schedules can be applied. */
interface AnyKernel extends Selectable<AnyKernel> {}

export type AnySelector = Selector<AnyKernel>

export interface Schedules {
  /** The dispatch or the auto-scheduler that selects a schedule for each binding; absent: the schedule is fixed. */
  readonly open?: OpenDispatch<AnyKernel>
  /**
   * The fixed schedule. Of the auto-scheduler, the schedule without data: the first candidate on the CPU, `parallel()` on GPUs. It runs
   * data that no candidate accepts, such as ready-made parts of formats, and reports errors in the data.
   */
  readonly code?: CompiledCode
  /** The kernel under the schedule without data. */
  readonly kernel?: AnyKernel
  /** Plans from JSON, one of which is selected for each binding. */
  readonly loaded?: LoadedFamily
}

/** Key of the steps of a kernel. Kernels of different sizes often share them. */
const keyOf = ({ compilation }: { readonly compilation: Compilation }): string =>
  JSON.stringify(traceOf(compilation))

/** A kernel under a schedule, and the place of its selection. */
interface Compilable extends Pick<SelectedKernel<AnyKernel>, 'kernel'> {
  readonly selection: Pick<Selection, 'schedule' | 'span'> | null
}

export class Family {
  readonly open: OpenDispatch<AnyKernel> | null
  readonly code: CompiledCode | null
  readonly loaded: LoadedFamily | null
  /** Schedules selected so far, with all arguments; empty for the auto-scheduler. */
  readonly variants = new Set<string>()
  /** Schedules compiled so far. */
  readonly codes = new Set<CompiledCode>()
  readonly #device: Device
  /** Compiled schedules: of a dispatch by kernel, which `open-dispatch.ts` caches; of the auto-scheduler by steps. */
  readonly #compiled = new Map<unknown, Promise<CompiledCode>>()

  constructor(device: Device, { open, code, kernel, loaded }: Schedules) {
    this.#device = device
    this.open = open ?? null
    this.code = code ?? null
    this.loaded = loaded ?? null
    for (const c of [...(code ? [code] : []), ...(loaded?.codes ?? [])]) this.codes.add(c)
    if (code && kernel) this.#compiled.set(keyOf(kernel), Promise.resolve(code))
  }

  /** The kernel without steps. */
  get source(): Kernel1 {
    return this.open?.base.compilation.source ?? this.loaded?.family.kernel ?? this.code!.source
  }

  /** Name of the dispatch with its arguments; `null` without a dispatch. */
  get dispatch(): string | null {
    return this.loaded ? this.loaded.family.schedule : this.open?.choice ? this.open.text : null
  }

  /** Name of the kernel, with that of a dispatch. */
  get label(): string {
    return [this.source.name, this.open?.text ?? this.dispatch ?? []].flat().join('.')
  }

  selector(inputs: SelectionInputs): AnySelector | null {
    const { open } = this
    return open && this.#accepted(() => new Selector(open, this.#device, inputs))
  }

  /** The result of `work`. Null for an error of the auto-scheduler, whose schedule without data reports errors in the data. */
  #accepted<T>(work: () => T): T | null {
    const done = this.code ? resultOrError(work) : work()
    return done instanceof SptError ? null : done
  }

  /** True after a release of the schedule without data, which reports the error. */
  get isReleased(): boolean {
    return this.code?.program.live === false
  }

  /** Schedules for some inputs, the preferred one first. Throws SptError `choose/…`. */
  candidates(inputs: SelectionInputs, selector: AnySelector | null): readonly Candidate[] {
    if (this.loaded) {
      const candidate = this.loaded.candidate(inputs)
      this.variants.add(candidate.label)
      return [candidate]
    }
    const found =
      selector && !this.isReleased
        ? this.#accepted(() => selector.candidates().map((c) => this.candidate(selector, c)))
        : null
    return [...(found ?? []), ...(this.code ? [candidateOf(this.code, inputs, WITHOUT_DATA)] : [])]
  }

  candidate(selector: AnySelector, selected: SelectedKernel<AnyKernel>): Candidate {
    const { kernel, selection, text: label } = selected
    if (selection) {
      const { schedule, args, text } = selection
      this.variants.add(schedule === null ? text : appliedName(schedule, args))
    }
    const device = this.#device
    const stored = kernel.compilation.kernel
    return {
      selection,
      label,
      kernel: stored,
      device,
      inputs: () => selector.inputsOf(stored),
      plan: () => checkedPlan(runOn<AnyKernel>(kernel, device.kind).compilation.planFor(lanesOf(device))),
      compile: (other = device) =>
        other === device ? this.#compile(selected) : compileSteps<AnyKernel>(kernel, other),
    }
  }

  /**
   * Compiles the schedules that a dispatch may select, if they need no data. Throws SptError `schedule/…`, `device/compile` of any of
   * them.
   */
  async compileAll(): Promise<void> {
    const { open } = this
    if (!open?.choice) return
    const declared = { ...open, choice: open.choice }
    const closed = resultOrError(() => closedBranches(declared, this.#device))
    if (closed instanceof SptError) return
    for (const { call, kernel } of closedKernels(declared, this.#device, closed))
      await this.#compile({ kernel, selection: { schedule: call.schedule.name, span: call.span } })
  }

  /** Throws SptError as `familyPlan`, and `choose/open` without a dispatch. */
  get plan(): PlanFamily {
    const { open } = this
    invariant(open?.choice, 'the auto-scheduler has a schedule without data')
    return familyPlan({ ...open, choice: open.choice }, this.#device)
  }

  /** Compiles a schedule once. Errors name the selected branch. */
  #compile({ kernel, selection }: Compilable): Promise<CompiledCode> {
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
    for (const c of [this.code, ...(this.loaded?.codes ?? [])]) c?.release()
  }
}

/** Label of the schedule without data. */
const WITHOUT_DATA = 'the schedule without data'
