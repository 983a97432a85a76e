/** Immutable kernels: each schedule step returns a new kernel. Text of a kernel at each stage. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { orList } from '../../ast/diagnostics/suggest.ts'
import { expectFields, FLAG } from '../../ast/diagnostics/value-kinds.ts'
import type { TextOptions } from '../../backends/target.ts'
import { LANGUAGES, TARGET_NAMES } from '../../backends/target.ts'
import type { ModuleText } from '../../backends/targets/index.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { AnyFormat } from '../../ir/formats/format.ts'
import { print1 } from '../../ir/print/print-stage1.ts'
import { print2, print3 } from '../../ir/print/print-stage2.ts'
import type { Compilation, StepOf } from '../../run/compile/compile.ts'
import type { Sources } from '../../run/compile/program.ts'
import type { CoordStep } from '../../schedule/coordinates/steps.ts'
import type { LoopHandle, LoopRef } from '../../schedule/names/kernel-names.ts'
import { partsOf } from '../../schedule/names/parts.ts'
import { namedLoop, type ScheduleState } from '../../schedule/state/state.ts'
import type { Step } from '../../schedule/steps/resolve.ts'
import { mergeParts } from '../../schedule/steps/resolve.ts'
import type { LoopStep } from '../../schedule/steps/step-data.ts'
import { expectArgument, expectEach, expectName, isRecord } from '../inputs/argument-checks.ts'
import { chooseFormat } from '../programs/format-lookup.ts'
import { refuseTextsOf, type Surroundings } from './instruction-lookup.ts'
import type { TraceStep } from './nests.ts'
import { currentHandle, handleOf, iteratorOf, Part, printedSteps, traceOf } from './nests.ts'
import { Steps } from './steps.ts'

/** `K`: the type of the concrete kernel class. */
export abstract class SteppedKernel<K extends SteppedKernel<K>> extends Steps<K> {
  readonly #compilation: Compilation
  protected readonly surroundings: Surroundings
  #onThreads: K | undefined
  #onOneThread: K | undefined

  constructor(compilation: Compilation, surroundings: Surroundings) {
    super()
    this.#compilation = compilation
    this.surroundings = surroundings
  }

  protected abstract with(compilation: Compilation): K

  get name(): string {
    return this.source.name
  }

  get sources(): Sources {
    return this.surroundings.sources
  }

  /** Stage I of the unscheduled kernel. */
  get source(): Kernel1 {
    return this.#compilation.source
  }

  /** Stages, plan and generated code as data. */
  get compilation(): Compilation {
    return this.#compilation
  }

  /** Formats that steps can name. */
  get formats(): ReadonlyMap<string, AnyFormat> {
    return this.surroundings.formats
  }

  apply(steps: readonly Step[]): K {
    const isStep = (s: unknown) => isRecord(s) && [1, 2, 'parts'].includes(s.stage as number)
    expectEach('the applied steps', steps, isStep, 'step', 'as steps() gives them')
    return this.after(steps)
  }

  /** @internal Applies steps on loops whose result is known. */
  repeated(repeat: (state: ScheduleState) => ScheduleState): K {
    return this.#changed(this.compilation.repeated(repeat))
  }

  /** Applies steps. `schedule`: name of the schedule that contains the steps. */
  protected after(steps: readonly Step[], schedule?: string): K {
    const which = (k: number): StepOf | undefined =>
      schedule === undefined ? undefined : { schedule, number: k + 1, of: steps.length }
    return this.#changed(steps.reduce((c, s, k) => c.step(s, which(k)), this.compilation))
  }

  /** `merge parts of A`: merges the loop nests of all parts into one launch for each iteration. */
  mergeParts(buffer: string): K {
    expectName('a buffer', buffer)
    const { kernel, loops } = this.compilation
    return this.apply(mergeParts({ buffer: { name: buffer } }, { kernel, loops }))
  }

  /** Parts of a tensor that a step stored in a composed format. @throws SptError `schedule/no-parts` */
  parts(buffer: string): readonly Part[] {
    expectName('a buffer', buffer)
    const { kernel } = this.compilation
    return partsOf(kernel, { name: buffer }).map((p) => new Part(kernel, p, this.sources))
  }

  /** Applies steps to each part of a tensor: `each('A', (k, p) => k.split(p.loop('io'), 8 / p.constants.width))`. */
  each(buffer: string, steps: (kernel: K, part: Part) => K): K {
    expectArgument(typeof steps === 'function', 'the callback of each', steps, '(kernel, part) => kernel')
    return this.parts(buffer).reduce<K>((k, p) => {
      const next: unknown = steps(k, p)
      const trace = next instanceof SteppedKernel ? next.trace : []
      const goesOn =
        next instanceof SteppedKernel &&
        next.compilation.source === k.compilation.source &&
        k.trace.every((step, at) => trace[at] === step)
      expectArgument(
        goesOn,
        `the result of the callback${p.label && ` for part ${p.label}`}`,
        next,
        'the kernel that is given, with further steps',
      )
      return next as K
    }, this.#self)
  }

  /** Binds the outermost spatial loops to threads if no thread is bound: the default on GPUs. */
  parallel(): K {
    this.#onThreads ??= this.#changed(this.compilation.parallel())
    return this.#onThreads
  }

  /** Default schedule for one thread: format builders keep their serial schedule, unless a step changed it. The default on CPUs. */
  sequential(): K {
    this.#onOneThread ??= this.#changed(this.compilation.sequential())
    return this.#onOneThread
  }

  /** The kernel without its last step. */
  undo(): K {
    return this.#changed(this.compilation.undo())
  }

  /** Handle of a loop, valid through later steps that rename or nest the loop. */
  loop(name: string): LoopRef {
    expectName('a loop', name)
    const { kernel, state } = this.compilation
    return handleOf(kernel, namedLoop(state, name))
  }

  /** Applied steps as `.spt` text. */
  get trace(): readonly string[] {
    return printedSteps(this.compilation)
  }

  /** Applied steps as JSON, for `replay`. */
  toJSON(): TraceStep[] {
    return traceOf(this.compilation)
  }

  /** Applies a trace from `toJSON`. @throws SptError `schedule/…` */
  replay(trace: readonly TraceStep[]): K {
    expectEach('a trace', trace, isRecord, 'step', 'as toJSON gives them')
    return trace.reduce<K>((k, s) => {
      expectArgument(
        s.kind === 'as' || s.kind === 'coords' || s.kind === 'loops',
        'the kind of a step in a trace',
        s.kind,
        'as, coords or loops',
      )
      if (s.kind === 'as') {
        const { args = [] } = s as Partial<typeof s>
        expectArgument(Array.isArray(args), 'the argument list of a format in a trace', args, 'a list')
        return k.onCoord({ ...s, ...chooseFormat(s.format, args, this.surroundings.formats) })
      }
      return s.kind === 'coords' ? k.onCoord(s.step as never) : k.onLoop(s.step)
    }, this.#self)
  }

  /** Text of a stage: 1 (coordinates), 2 (positions) or 3 (memory). */
  show(stage: 1 | 2 | 3): string {
    expectArgument([1, 2, 3].includes(stage), 'the stage', stage, '1, 2 or 3')
    return stage === 1
      ? print1(this.compilation.kernel)
      : stage === 2
        ? print2(this.compilation.loops)
        : print3(this.compilation.plan)
  }

  /**
   * Generated code for a target, one module for each launch. `wide`: with indices of 64 bits, as in runs with more than
   * 2^31 - 1 elements or iterations. @throws SptError `emit/…`, `plan/…`, `api/…`
   */
  emit(target: ModuleText['target'], options: Pick<TextOptions, 'wide'> = {}): readonly ModuleText[] {
    expectFields('emit', options, { wide: FLAG })
    const { wide = false } = options
    expectArgument(TARGET_NAMES.includes(target), 'the target', target, TARGET_NAMES.join(', '))
    if (wide && !LANGUAGES[target].wideIndices)
      failWith('emit/index-width', `${target} has no 64-bit indices`, {
        expected: orList(TARGET_NAMES.filter((t) => LANGUAGES[t].wideIndices)),
        hint: 'emit 32-bit indices, or choose another target',
      })
    return this.compilation.texts(target, wide ? { wide } : {})
  }

  protected get onCoordinates(): boolean {
    return this.compilation.onCoordinates
  }

  protected current(loop: LoopHandle, asIterator: boolean): LoopRef {
    return (asIterator ? iteratorOf : currentHandle)(loop, this.compilation)
  }

  protected onCoord(step: CoordStep): K {
    return this.#changed(this.compilation.onCoords(step))
  }

  protected onLoop(step: LoopStep): K {
    return this.#changed(this.compilation.onLoop(step))
  }

  get #self(): K {
    return this as unknown as K
  }

  #changed(c: Compilation): K {
    if (c === this.compilation) return this.#self
    if (this.surroundings.own) refuseTextsOf(c.loopSteps, this.surroundings.own)
    return this.with(c)
  }
}
