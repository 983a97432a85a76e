/**
 * The driver: interleaves steps and lowering. Steps on coordinates, Stage I → II, steps on loops, Stage II → III.
 * Values are immutable; lowering is done when somebody asks for what it gives, once.
 */
import { fail, inPass } from '../ast/diagnostic.ts'
import { emit, type ModuleText } from '../backends/emit.ts'
import { TARGETS } from '../backends/targets/index.ts'
import type { Kernel2, Plan } from '../ir/loops.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { type LowerOptions, lowerToMemory, lowerToPositions, type Observer } from '../lower/pipeline.ts'
import { applyCoordStep, type CoordStep } from '../schedule/coords/steps.ts'
import { automatic } from '../schedule/default-schedule.ts'
import { checkNewNames } from '../schedule/fresh-names.ts'
import { withApart } from '../schedule/nest-dependence.ts'
import type { Step } from '../schedule/resolve.ts'
import { apply, printTrace, type ScheduleState, start, undo } from '../schedule/state.ts'
import type { LoopStep } from '../schedule/steps.ts'

/** A kernel under a schedule. */
export class Compilation {
  /** The kernel as written: what the reference runs. */
  readonly source: Kernel1
  readonly coordSteps: readonly CoordStep[]
  readonly #kernels: readonly Kernel1[]
  readonly #loops: ScheduleState | null
  #lowered: ScheduleState | undefined
  readonly #plans = new Map<string, Plan>()
  readonly #texts = new Map<ModuleText['target'], ModuleText[]>()

  private constructor(
    source: Kernel1,
    coordSteps: readonly CoordStep[],
    kernels: readonly Kernel1[],
    loops: ScheduleState | null,
  ) {
    this.source = source
    this.coordSteps = coordSteps
    this.#kernels = kernels
    this.#loops = loops
  }

  static of(kernel: Kernel1): Compilation {
    return new Compilation(kernel, [], [kernel], null)
  }

  /** Whether a step on loops has been applied: `reorder` and `fuse` act on loops from then on. */
  get onLoops(): boolean {
    return this.#loops !== null
  }

  /** Stage I, with all steps on coordinates applied. */
  get kernel(): Kernel1 {
    return this.#kernels[this.#kernels.length - 1]!
  }

  get state(): ScheduleState {
    this.#lowered ??= this.#loops ?? start(withApart(lowerToPositions(this.kernel), this.kernel))
    return this.#lowered
  }

  /** Stage II, with all steps applied. */
  get loops(): Kernel2 {
    return this.state.kernel
  }

  /** Stage III. */
  get plan(): Plan {
    return this.planFor({})
  }

  /** Stage III for a target. */
  planFor(options: LowerOptions): Plan {
    const key = `${options.lanes ?? 1} ${options.together ?? false} ${options.promote ?? false}`
    let plan = this.#plans.get(key)
    if (!plan) {
      plan = lowerToMemory(this.loops, undefined, options)
      this.#plans.set(key, plan)
    }
    return plan
  }

  /** Asked without lowering: a kernel that cannot be lowered tells how it was made, too. */
  get loopSteps(): readonly LoopStep[] {
    return this.#loops?.trace ?? []
  }

  /** The same as the language writes them. */
  get printedLoopSteps(): readonly string[] {
    return this.#loops ? printTrace(this.#loops) : []
  }

  /** Stage III, with every pass reported. */
  observe(observer: Observer, options: LowerOptions = {}): Plan {
    return lowerToMemory(this.loops, observer, options)
  }

  texts(target: ModuleText['target']): ModuleText[] {
    let known = this.#texts.get(target)
    if (!known) {
      const plan = this.planFor(TARGETS[target].lowering)
      known = inPass(`printing ${this.source.name} as ${target}`, () => emit(plan, target))
      this.#texts.set(target, known)
    }
    return known
  }

  /** @throws SptError `schedule/…` where the step is not legal */
  step(s: Step): Compilation {
    if (s.stage === 'parts') return s.steps(this).reduce<Compilation>((c, part) => c.step(part), this)
    return s.stage === 1 ? this.onCoords(s.step) : this.onLoop(s.step)
  }

  onCoords(s: CoordStep): Compilation {
    // The loops would have to be made anew, and the steps on them would be lost.
    if (this.#loops)
      fail({
        code: 'schedule/too-late',
        message: `${s.kind} acts on coordinates and comes after a step on loops`,
        ...(s.span ? { span: s.span } : {}),
        expected: `${s.kind} before the first step on loops`,
        hint: 'move it to the front',
      })
    checkNewNames(s)
    return new Compilation(
      this.source,
      [...this.coordSteps, s],
      [...this.#kernels, inPass(placeOf(s), () => applyCoordStep(this.kernel, s))],
      null,
    )
  }

  onLoop(s: LoopStep): Compilation {
    const { state } = this
    const next = inPass(placeOf(s), () => apply(state, s))
    return new Compilation(this.source, this.coordSteps, this.#kernels, next)
  }

  /** Without the latest step; itself where there is none. */
  undo(): Compilation {
    if (this.#loops && this.#loops.trace.length > 0) {
      const before = undo(this.#loops)
      return new Compilation(
        this.source,
        this.coordSteps,
        this.#kernels,
        before.trace.length > 0 ? before : null,
      )
    }
    if (this.coordSteps.length === 0) return this
    return new Compilation(this.source, this.coordSteps.slice(0, -1), this.#kernels.slice(0, -1), null)
  }

  /** With nests bound to threads that bind nothing yet: what a GPU runs when no schedule says better. */
  parallel(): Compilation {
    const next = automatic(this.state)
    if (next === this.state) return this
    return new Compilation(this.source, this.coordSteps, this.#kernels, next)
  }
}

/** Callers without types may give what is no step, which is refused where steps are checked. */
const placeOf = (step: CoordStep | LoopStep | null | undefined): string => `step ${step?.kind}`
