/** The schedules of a compiled kernel on a device: a single one, or those of a plan that was loaded. */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Plan, PlanFamily } from '../../plan/schema.ts'
import { writePlan } from '../../plan/write.ts'
import type { Sources } from '../../run/compile/program.ts'
import type { Device } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'
import type { AutoScheduleInputs } from '../auto-schedule/schedule-candidates.ts'
import type { AutomaticRules } from '../dispatch/automatic-rules.ts'
import type { BranchCall, Known, Selection } from '../dispatch/dispatch-conditions.ts'
import type { Dispatch, LoadedDispatch, Schedules } from '../dispatch/schedules.ts'
import type { RunInputs } from '../inputs/bound-inputs.ts'
import { type Candidate, candidateOf, type Selected } from './candidates.ts'
import { CompiledCode } from './code.ts'

/** The data by which times are predicted. */
export interface ComparedData {
  readonly sparse: Readonly<Record<string, Tensor>>
  /** List and set arguments of formats. */
  readonly beside: Readonly<Record<string, Tensor>>
  readonly sizes: ReadonlyMap<string, number>
}

/** Compiled schedules. `KernelFamily` overrides the methods that compile or compare schedules. */
export class Family {
  readonly device: Device
  readonly schedules: Schedules
  /** Schedules selected so far, with all arguments; empty for the auto-scheduler. */
  readonly variants = new Set<string>()
  /** Schedules compiled so far. */
  readonly codes: Set<CompiledCode>

  constructor(device: Device, schedules: Schedules) {
    this.device = device
    this.schedules = schedules
    this.codes = new Set(this.code ? [this.code] : this.#loaded?.codes.values())
  }

  /** Code that needs no data; `null` for a dispatch. */
  get code(): CompiledCode | null {
    return this.schedules.kind === 'dispatch' ? null : this.schedules.code
  }

  get #loaded(): LoadedDispatch | undefined {
    const { schedules } = this
    return schedules.kind === 'dispatch' && 'codes' in schedules ? schedules : undefined
  }

  /** The kernel without steps. */
  get source(): Kernel1 {
    return this.schedules.kind === 'fixed' ? this.schedules.code.source : this.schedules.source
  }

  /** Sources of the program; empty for plans that were loaded. */
  get sources(): Sources {
    return this.code?.sources ?? new Map()
  }

  /** Throws SptError `choose/open` if schedules of a dispatch depend on data, or if there are too many. */
  get plan(): Plan | PlanFamily {
    return this.#loaded?.loaded ?? writePlan(this.code!.program.plan)
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

  /** The schedule of a branch. Throws SptError `schedule/…` for an illegal step. */
  scheduleOf(call: BranchCall, _args: readonly number[]): Candidate['schedule'] {
    return this.#loaded!.codes.get(call)!
  }

  /** A selected schedule for some inputs. */
  candidate(
    schedule: Candidate['schedule'],
    selection: Selection | null,
    label: string,
    inputs: Candidate['inputs'],
  ): Candidate {
    invariant(schedule instanceof CompiledCode, 'a schedule that is not compiled')
    this.addVariant(selection)
    return { ...candidateOf(schedule, {}, label), selection, inputs }
  }

  protected addVariant(selection: Selection | null): void {
    if (!selection) return
    const { schedule, args, text } = selection
    this.variants.add(schedule === null ? text : appliedName(schedule, args))
  }

  // The methods below are documented in `KernelFamily`.

  exclusionOf(_call: BranchCall, _args: readonly number[]): string | null {
    return null
  }

  async rulesFor(
    _sizes: ReadonlyMap<string, number>,
    _inputs: RunInputs,
    _tensors: Readonly<Record<string, Tensor>>,
  ): Promise<AutomaticRules | null> {
    return null
  }

  automatic(
    _values: AutoScheduleInputs,
    _rules: AutomaticRules | null,
    _inputs: Candidate['inputs'],
  ): readonly Candidate[] {
    return []
  }

  withoutSchedule(
    _sizes: ReadonlyMap<string, number>,
    _sparse: () => ComparedData['sparse'],
  ): Selected | null {
    return null
  }

  combined(_known: Known, _selected: (dispatch: Dispatch) => Selected): Selected | string | null {
    return null
  }

  fastest(legal: readonly Selected[], _data: ComparedData): Selected {
    return legal[0]!
  }

  release(): void {
    for (const code of this.codes) code.release()
  }
}
