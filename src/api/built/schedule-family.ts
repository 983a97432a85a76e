/** The schedules of a compiled kernel on a device, compiled on first use. */
import { invariant, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import { releaseAll, type Work } from '../../ast/work.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { getOrAddPromise } from '../../ir/memoize.ts'
import type { Sources } from '../../run/compile/program.ts'
import type { Device } from '../../runtime/device.ts'
import type { AutomaticRules } from '../dispatch/automatic-rules.ts'
import type { Compiler } from '../dispatch/compiler.ts'
import type { Selection } from '../dispatch/dispatch-conditions.ts'
import type { AnyKernel, Schedules } from '../dispatch/schedules.ts'
import { withPlace } from '../programs/error-sources.ts'
import { type Candidate, candidateOf } from './candidates.ts'
import { CompiledCode } from './code.ts'

export class Family {
  readonly schedules: Schedules
  /** Schedules selected so far, with all arguments; empty for the auto-scheduler. */
  readonly variants = new Set<string>()
  /** Rules for run-time zeros that the auto-scheduler selected, by sizes. */
  readonly rules = new Map<string, Promise<AutomaticRules | null>>()
  /** Schedules compiled so far. */
  readonly codes = new Set<CompiledCode>()
  readonly device: Device
  /** Compiled schedules: of a dispatch by kernel, which `schedules.ts` caches; of the auto-scheduler by steps. */
  readonly #compiled = new Map<unknown, Promise<CompiledCode>>()

  readonly #compiler: Compiler | null

  /** `compiler`: `null` if all schedules are compiled. */
  constructor(device: Device, schedules: Schedules, compiler: Compiler | null) {
    this.device = device
    this.#compiler = compiler
    this.schedules = schedules
    const { code } = this
    if (code) this.codes.add(code)
    if (schedules.kind === 'automatic')
      this.#compiled.set(this.#keyOf(schedules.kernel), Promise.resolve(schedules.code))
    for (const loaded of this.#loaded) this.codes.add(loaded)
  }

  get compiler(): Compiler {
    invariant(this.#compiler, 'a schedule that is not compiled')
    return this.#compiler
  }

  /** Key of the steps of a kernel. Kernels of different sizes often share them. */
  #keyOf({ compilation }: AnyKernel): string {
    return JSON.stringify(this.compiler.traceOf(compilation))
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

  /** A selected schedule for some inputs. */
  candidate(
    schedule: Candidate['schedule'],
    selection: Selection | null,
    label: string,
    inputs: Candidate['inputs'],
  ): Candidate {
    if (selection) {
      const { schedule: name, args, text } = selection
      this.variants.add(name === null ? text : appliedName(name, args))
    }
    const { device } = this
    if (schedule instanceof CompiledCode) return { ...candidateOf(schedule, {}, label), selection, inputs }
    const compile = (other = device): Promise<CompiledCode> =>
      other === device
        ? this.#compile(schedule, selection)
        : this.compiler.compileSteps<AnyKernel>(schedule, other)
    return { schedule, selection, label, device, inputs, compile }
  }

  /**
   * Compiles the schedules that a dispatch may select, if they need no data, and are not more than a family has. Throws SptError
   * `schedule/…`, `device/compile` of any of them.
   */
  async compileAll(work?: Work): Promise<void> {
    const { schedules, compiler } = this
    const { closedBranches, closedSchedule, MOST_PLANS } = compiler
    if (schedules.kind !== 'dispatch') return
    const branches = resultOrError(() => closedBranches(schedules, this.device))
    if (branches instanceof SptError) return
    const closed = branches.map(({ calls }) => calls.filter((c) => !c.open))
    if (new Set(closed.flatMap((calls) => calls.map((c) => c.text))).size > MOST_PLANS) return
    for (const calls of closed)
      for (const own of calls) {
        const schedule = resultOrError(() => closedSchedule(schedules, this.device, own))
        // `fastest` skips illegal schedules.
        if (schedule instanceof SptError && calls.length === 1) throw schedule
        if (schedule && !(schedule instanceof SptError))
          await this.#compile(schedule, { schedule: own.call.schedule.name, span: own.call.span }, work)
      }
  }

  /** Compiles a schedule once. Errors name the selected branch. */
  #compile(
    kernel: AnyKernel,
    selection: Pick<Selection, 'schedule' | 'span' | 'alternatives'> | null,
    work?: Work,
  ): Promise<CompiledCode> {
    return getOrAddPromise(
      this.#compiled,
      selection?.schedule || selection?.alternatives ? kernel : this.#keyOf(kernel),
      async () => {
        try {
          const code = await this.compiler.compileSteps<AnyKernel>(kernel, this.device, work)
          this.codes.add(code)
          return code
        } catch (e) {
          throw selection ? withPlace(e, selection.span) : e
        }
      },
    )
  }

  /** Releases every compiled schedule. A dispatch compiles again for later selections. */
  release(): void {
    releaseAll(this.#compiled.values())
    this.#compiled.clear()
    for (const loaded of this.#loaded) loaded.release()
    this.code?.release()
  }
}
