/** The schedules of a compiled kernel: a fixed one, or those of a dispatch or the auto-scheduler, compiled on first use. */
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import { getOrAddPromise } from '../../ir/memoize.ts'
import { checkedPlan } from '../../plan/launch-plan.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { lanesOf, runOn } from '../../run/compile/compiled-program.ts'
import type { Device } from '../../runtime/device.ts'
import type { SelectionInputs } from '../dispatch/device-facts.ts'
import type { OpenDispatch, Selectable, SelectedKernel } from '../dispatch/open-dispatch.ts'
import { Selector } from '../dispatch/selector.ts'
import { traceOf } from '../kernels/nests.ts'
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
}

/** Key of the steps of a kernel. Kernels of different sizes often share them. */
const keyOf = ({ compilation }: { readonly compilation: Compilation }): string =>
  JSON.stringify(traceOf(compilation))

export class Family {
  readonly open: OpenDispatch<AnyKernel> | null
  readonly code: CompiledCode | null
  /** Schedules selected so far, with all arguments; empty for the auto-scheduler. */
  readonly variants = new Set<string>()
  /** Schedules compiled so far. */
  readonly codes = new Set<CompiledCode>()
  readonly #device: Device
  /** Compiled schedules: of a dispatch by kernel, which `open-dispatch.ts` caches; of the auto-scheduler by steps. */
  readonly #compiled = new Map<unknown, Promise<CompiledCode>>()

  constructor(device: Device, { open, code, kernel }: Schedules) {
    this.#device = device
    this.open = open ?? null
    this.code = code ?? null
    if (code) this.codes.add(code)
    if (code && kernel) this.#compiled.set(keyOf(kernel), Promise.resolve(code))
  }

  /** Name of the kernel, with that of a dispatch. */
  get label(): string {
    const { name } = this.open?.base.compilation.source ?? this.code!.source
    return this.open ? `${name}.${this.open.text}` : name
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

  /** Compiles a schedule once. Errors name the selected branch. */
  #compile({ kernel, selection }: SelectedKernel<AnyKernel>): Promise<CompiledCode> {
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
    this.code?.release()
  }
}

/** Label of the schedule without data. */
const WITHOUT_DATA = 'the schedule without data'
