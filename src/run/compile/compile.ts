/**
 * The driver of a compilation: steps on coordinates, Stage I → II, steps on loops, Stage II → III. Objects are immutable; each lowering
 * runs lazily, once.
 */

import { inPass, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { type Coroutine, runSync } from '../../ast/work.ts'
import type { TextOptions } from '../../backends/target.ts'
import { emit, type ModuleText, TARGETS } from '../../backends/targets/index.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { getOrAdd, memoize } from '../../ir/memoize.ts'
import { sharedLoops } from '../../ir/statements/clone-loops.ts'
import type { Kernel2, Kernel3 } from '../../ir/statements/loops.ts'
import { type LowerOptions, PASSES, POSITIONS } from '../../lower/passes.ts'
import {
  checkLowering,
  loweringSteps,
  lowerToMemory,
  lowerToPositions,
  type Observer,
} from '../../lower/pipeline.ts'
import type { CoordStep } from '../../schedule/coordinates/steps.ts'
import { applyNextStep, isLoopStep, isOfOtherAxes, refuseLate } from '../../schedule/coordinates/steps.ts'
import { alone, automatic } from '../../schedule/default-schedule.ts'
import { withApart } from '../../schedule/legality/nest-dependence.ts'
import { stepInCalls } from '../../schedule/names/call-names.ts'
import { checkNewNames } from '../../schedule/names/kernel-names.ts'
import { endsCoordinates } from '../../schedule/primitives.ts'
import { apply, printTrace, type ScheduleState, start, undo } from '../../schedule/state/state.ts'
import type { Step } from '../../schedule/steps/resolve.ts'
import { type LoopStep, printStep } from '../../schedule/steps/step-data.ts'
import { withParameters } from '../../schedule/steps/step-fields.ts'
import type { DeviceProperties } from './device-limits.ts'
import { lanesOf } from './lowering-options.ts'

/** A point in a compilation at which an observer is called. */
export interface CompilationStage {
  readonly kernel: string
  /** Name of the program's schedule whose steps are applied, or of the dispatch among whose schedules runs select; `null` if there is none. */
  readonly schedule: string | null
  /** The step or pass that was applied last; `null`: the kernel as written. */
  readonly after: {
    readonly what: 'step' | 'pass'
    readonly name: string
    /** Number of the step in the schedule, or of the pass from Stage I to III, from 1. */
    readonly number: number
    /** Total number of steps or passes; `null` for a step outside of a schedule. */
    readonly of: number | null
  } | null
}

/** Callback for the kernel as written and after every step and pass. */
export type StageObserver = (program: Kernel1 | Kernel2 | Kernel3, at: CompilationStage) => void

/** Properties that steps do not change, except the name of the schedule. */
interface Origin {
  /** The kernel as written, which the reference runs. */
  readonly source: Kernel1
  readonly observer: StageObserver | null
  readonly schedule: string | null
  /** Combines the plans of alternatives, one of which the device selects in each run; undefined for a single schedule. */
  readonly combine?: ((options: LowerOptions) => Kernel3) | undefined
}

export interface StepOf {
  readonly schedule: string
  /** Number of the step, from 1. */
  readonly number: number
  readonly of: number
}

interface EarlyStep {
  readonly step: LoopStep
  /** Number of steps on coordinates before this step. */
  readonly after: number
}

/** A kernel with its schedule steps, and lazily its lowered stages. */
export class Compilation {
  readonly coordSteps: readonly CoordStep[]
  readonly #origin: Origin
  readonly #kernels: readonly Kernel1[]
  /** Stage II with the steps on loops; `null` if no step was applied since the last one on coordinates. */
  readonly #loops: ScheduleState | null
  /** Steps on loops that steps on coordinates may follow (`require`), applied again after each of these. */
  readonly #early: readonly EarlyStep[]
  #lowered: ScheduleState | undefined
  // Lazy, because most compilations are intermediate and their plans are never needed.
  #plans: Map<string, Kernel3> | undefined
  #texts: Map<string, ModuleText[]> | undefined

  private constructor(
    origin: Origin,
    coordSteps: readonly CoordStep[],
    kernels: readonly Kernel1[],
    loops: ScheduleState | null,
    early: readonly EarlyStep[] = [],
  ) {
    this.#origin = origin
    this.coordSteps = coordSteps
    this.#kernels = kernels
    this.#loops = loops
    this.#early = early
  }

  static of(kernel: Kernel1, observer: StageObserver | null = null): Compilation {
    const c = new Compilation({ source: kernel, observer, schedule: null }, [], [kernel], null)
    c.#observed(kernel, null)
    return c
  }

  /**
   * Alternatives of one kernel in one plan (`lower/launches/alternatives.ts`). Stages I and II are those of the first alternative, with the loop nests
   * of all in Stage II. `schedule`: the call of the dispatch.
   */
  static combined(
    schedule: string,
    alternatives: readonly Compilation[],
    combine: (options: LowerOptions) => Kernel3,
  ): Compilation {
    const [first] = alternatives as [Compilation, ...Compilation[]]
    const body = alternatives.flatMap((c) => c.loops.body)
    const loops = { ...first.state, kernel: { ...first.loops, body } }
    return new Compilation({ ...first.#origin, schedule, combine }, first.coordSteps, first.#kernels, loops)
  }

  /** The kernel as written, which the reference runs. */
  get source(): Kernel1 {
    return this.#origin.source
  }

  get place(): Omit<CompilationStage, 'after'> {
    return { kernel: this.source.name, schedule: this.#origin.schedule }
  }

  get onLoops(): boolean {
    return this.#count > 0
  }

  /** True if steps on coordinates may still be applied. Until then `reorder` and `fuse` act on coordinates. */
  get onCoordinates(): boolean {
    return this.#count === this.#early.length
  }

  get #count(): number {
    return this.#loops?.steps ?? this.#early.length
  }

  /** The kernel in Stage I (coordinates), after all steps on coordinates. */
  get kernel(): Kernel1 {
    return this.#kernels[this.#kernels.length - 1]!
  }

  get state(): ScheduleState {
    this.#lowered ??= this.#loops ?? this.#atPositions()
    return this.#lowered
  }

  /** The kernel in Stage II (loops over positions), before the steps on loops. */
  get positions(): Kernel2 {
    return positionsOf(this.source)(this.kernel)
  }

  #atPositions(): ScheduleState {
    const state = start(this.positions, this.coordSteps.length)
    this.#tell(POSITIONS, state.kernel)
    return this.#early.reduce((was, { step: s }) => inPass(`step ${s.kind}`, () => apply(was, s)), state)
  }

  /** The kernel in Stage II (loops over positions), after all steps. */
  get loops(): Kernel2 {
    return this.state.kernel
  }

  /** The plan (Stage III: launches) without target properties. */
  get plan(): Kernel3 {
    return this.planFor({})
  }

  /** Returns the plan (Stage III: launches) for a target; lowered once per target. */
  planFor(options: LowerOptions): Kernel3 {
    return runSync(this.planningSteps(options))
  }

  /** Returns the plan for a device. */
  planOn(device: DeviceProperties): Kernel3 {
    return this.planFor(lanesOf(device))
  }

  /** `planFor`, with a step for each pass. */
  *planningSteps(options: LowerOptions): Coroutine<Kernel3> {
    this.#plans ??= new Map()
    const known = this.#plans.get(planKey(options))
    if (known) return known
    const { observer, combine } = this.#origin
    const plan = combine
      ? combine(options)
      : yield* loweringSteps(this.loops, observer ? this.#tell : undefined, options)
    this.#plans.set(planKey(options), plan)
    return plan
  }

  /** Stores a plan for a target that was lowered elsewhere, such as in another thread. */
  adopt(plan: Kernel3, options: LowerOptions): void {
    this.#plans ??= new Map()
    this.#plans.set(planKey(options), plan)
  }

  /** Throws SptError if the kernel is not legal for a target. With an observer, all passes run. */
  checkFor(options: LowerOptions): void {
    if (this.#origin.observer) this.planFor(options)
    else checkLowering(this.loops, options)
  }

  /** Steps on loops. Does not lower, so that it works for kernels that cannot be lowered. */
  get loopSteps(): readonly LoopStep[] {
    return this.#loops?.trace ?? this.#early.map((e) => e.step)
  }

  get printedLoopSteps(): readonly string[] {
    return this.#loops ? printTrace(this.#loops) : this.#early.map((e) => printStep(e.step))
  }

  /** Merges one item per step on coordinates and one per step on loops, in the order of the steps. */
  inOrder<T>(coords: readonly T[], loops: readonly T[]): T[] {
    const out: T[] = []
    let done = 0
    for (const [k, { after }] of this.#early.entries()) {
      out.push(...coords.slice(done, after), loops[k]!)
      done = after
    }
    return [...out, ...coords.slice(done), ...loops.slice(this.#early.length)]
  }

  /** Stage III; calls `observer` after every pass. */
  observe(observer: Observer, options: LowerOptions = {}): Kernel3 {
    const both: Observer = (pass, result) => {
      this.#tell(pass, result)
      observer(pass, result)
    }
    return lowerToMemory(this.loops, both, options)
  }

  texts(target: ModuleText['target'], options: TextOptions = {}): ModuleText[] {
    this.#texts ??= new Map()
    return getOrAdd(this.#texts, JSON.stringify([target, options]), () => {
      const plan = this.planFor(TARGETS[target].lowering)
      return inPass(`printing ${this.source.name} as ${target}`, () => emit(plan, target, options))
    })
  }

  /** Applies a step. Throws SptError `schedule/…` if it is illegal. */
  step(s: Step, which?: StepOf): Compilation {
    if (s.stage === 'parts') return s.steps(this).reduce<Compilation>((c, part) => c.step(part, which), this)
    const make = () => (s.stage === 1 ? this.onCoords(s.step, which) : this.onLoop(s.step, which))
    return withParameters(s.where, make)
  }

  onCoords(given: CoordStep, which?: StepOf): Compilation {
    const s = stepInCalls(given, this)
    if (!this.onCoordinates) return isLoopStep(s) ? this.onLoop(s, which) : refuseLate(s.kind, s)
    checkNewNames(s)
    // Untyped callers may pass values that are not steps; the checks of steps reject them.
    const next = resultOrError(() =>
      inPass(`step ${s?.kind}`, () => applyNextStep(this.#kernels, this.coordSteps, s)),
    )
    if (next instanceof SptError) {
      const fused = isOfOtherAxes(next) && isLoopStep(s) ? resultOrError(() => this.onLoop(s, which)) : next
      if (fused instanceof SptError) throw next
      return fused
    }
    const steps = [...this.coordSteps, s]
    const made = new Compilation(this.#after(which), steps, [...this.#kernels, next], null, this.#early)
    made.#tellStep(next, s, which)
    return made
  }

  onLoop(given: LoopStep, which?: StepOf): Compilation {
    const s = stepInCalls(given, this)
    const { state } = this
    const next = inPass(`step ${s?.kind}`, () => apply(state, s))
    const isLate = !this.onCoordinates || endsCoordinates(s.kind)
    const early = isLate ? this.#early : [...this.#early, { step: s, after: this.coordSteps.length }]
    const made = new Compilation(this.#after(which), this.coordSteps, this.#kernels, next, early)
    made.#tellStep(next.kernel, s, which)
    return made
  }

  #after(which: StepOf | undefined): Origin {
    return which ? { ...this.#origin, schedule: which.schedule } : this.#origin
  }

  #tellStep(kernel: Kernel1 | Kernel2, { kind }: CoordStep | LoopStep, which: StepOf | undefined): void {
    const { number, of } = which ?? { number: this.coordSteps.length + this.#count, of: null }
    this.#observed(kernel, { what: 'step', name: kind, number, of })
  }

  readonly #tell: Observer = (name, result) =>
    this.#observed(result, { what: 'pass', name, number: PASSES.indexOf(name) + 1, of: PASSES.length })

  #observed(program: Kernel1 | Kernel2 | Kernel3, after: CompilationStage['after']): void {
    this.#origin.observer?.(program, { ...this.place, after })
  }

  /** The compilation without its last step; itself if there are no steps. */
  undo(): Compilation {
    const isEarly = this.onCoordinates && this.#early.at(-1)?.after === this.coordSteps.length
    if (isEarly || !this.onCoordinates) {
      const before = this.#loops && undo(this.#loops)
      const early = isEarly ? this.#early.slice(0, -1) : this.#early
      const loops = before && before.steps > 0 ? before : null
      return new Compilation(this.#origin, this.coordSteps, this.#kernels, loops, early)
    }
    if (this.coordSteps.length === 0) return this
    const [steps, kernels] = [this.coordSteps.slice(0, -1), this.#kernels.slice(0, -1)]
    return new Compilation(this.#origin, steps, kernels, null, this.#early)
  }

  /** Binds loop nests without thread axes to threads: the default for GPUs. */
  parallel(): Compilation {
    return this.#origin.combine ? this : this.#defaulted(automatic(this.state), 'parallel')
  }

  /** Applies the default steps of nests for one thread: the default for CPUs. */
  sequential(): Compilation {
    return this.#origin.combine ? this : this.#defaulted(alone(this.state), 'sequential')
  }

  /** Applies steps on loops whose result is known, one by one if an observer needs each of them. */
  repeated(repeat: (state: ScheduleState) => ScheduleState): Compilation {
    const next = repeat(this.state)
    if (!this.#origin.observer)
      return new Compilation(this.#origin, this.coordSteps, this.#kernels, next, this.#early)
    return next.trace.slice(this.state.steps).reduce<Compilation>((c, s) => c.onLoop(s), this)
  }

  #defaulted(next: ScheduleState, name: string): Compilation {
    if (next === this.state) return this
    const made = new Compilation(this.#origin, this.coordSteps, this.#kernels, next, this.#early)
    made.#observed(next.kernel, { what: 'step', name, number: next.steps, of: null })
    return made
  }
}

/** Lowers Stage I → II; cached per source and kernel. */
const positionsOf = memoize((source: Kernel1) =>
  memoize((kernel: Kernel1) => sharedLoops(source, withApart(lowerToPositions(kernel), kernel))),
)

const planKey = ({ lanes = 1, together = false, promote = false }: LowerOptions): string =>
  `${lanes} ${together} ${promote}`
