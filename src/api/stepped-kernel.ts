/** A kernel as a value: every step gives a new one and leaves the old one as it was. What it is at each stage, as text. */
import { type PermutableDimensions, permutableDimensions } from '../analysis/permutable-dimensions.ts'
import { type SparsityAttributes, sparsityAttributes } from '../analysis/sparsity-attributes.ts'
import type { ModuleText } from '../backends/emit.ts'
import { TARGET_NAMES } from '../backends/targets/index.ts'
import type { AnyFormat } from '../ir/format.ts'
import { print1 } from '../ir/print-stage1.ts'
import { print2 } from '../ir/print-stage2.ts'
import { print3 } from '../ir/print-stage3.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import type { Compilation, StepOf } from '../run/compile.ts'
import type { Sources } from '../run/launch-spans.ts'
import type { CoordStep } from '../schedule/coords/steps.ts'
import type { LoopHandle, LoopRef } from '../schedule/loop-ref.ts'
import { mergeParts } from '../schedule/merge-parts.ts'
import { partsOf } from '../schedule/parts.ts'
import type { Step } from '../schedule/resolve.ts'
import { namedLoop } from '../schedule/state.ts'
import type { LoopStep } from '../schedule/steps.ts'
import { expectArgument, expectEach, expectName, isRecord } from './argument-checks.ts'
import { chooseFormat } from './choose-format.ts'
import { refuseTextsOf } from './instruction-lookup.ts'
import type { Surroundings } from './kernel-scope.ts'
import { currentHandle, handleOf, iteratorOf } from './loop-handles.ts'
import { type Nest, nestsOf } from './nests.ts'
import { Part } from './part.ts'
import { printedSteps, type TraceStep, traceOf } from './printed-trace.ts'
import { Steps } from './steps.ts'

export type {
  IterationAttributes,
  IterationMask,
  MaskedValue,
  SparsityAttributes,
  TensorAttributes,
  TensorMask,
} from '../analysis/sparsity-attributes.ts'

/** `K`: the kernel itself. */
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

  /** The same program's kernel under other steps. */
  protected abstract with(compilation: Compilation): K

  get name(): string {
    return this.source.name
  }

  get sources(): Sources {
    return this.surroundings.sources
  }

  /** The kernel as written, without steps. */
  get source(): Kernel1 {
    return this.#compilation.source
  }

  /** The compilation behind it: stages, plan, texts. */
  get compilation(): Compilation {
    return this.#compilation
  }

  /** Formats that its steps can name. */
  get formats(): ReadonlyMap<string, AnyFormat> {
    return this.surroundings.formats
  }

  apply(steps: readonly Step[]): K {
    const isStep = (s: unknown) => isRecord(s) && [1, 2, 'parts'].includes(s.stage as number)
    expectEach('what is applied', steps, isStep, 'step', 'as steps() gives them')
    return this.after(steps)
  }

  /** `schedule`: the one that the steps are those of. */
  protected after(steps: readonly Step[], schedule?: string): K {
    const which = (k: number): StepOf | undefined =>
      schedule === undefined ? undefined : { schedule, number: k + 1, of: steps.length }
    return this.#changed(steps.reduce((c, s, k) => c.step(s, which(k)), this.compilation))
  }

  /** `merge parts of A`: one launch for each iteration over the parts. */
  mergeParts(buffer: string): K {
    expectName('a buffer', buffer)
    const { kernel, loops } = this.compilation
    return this.apply(mergeParts({ buffer: { name: buffer } }, { kernel, loops }))
  }

  /**
   * The parts that a step stored a tensor in, by the tensor's name.
   * @throws SptError `schedule/no-parts`
   */
  parts(buffer: string): readonly Part[] {
    expectName('a buffer', buffer)
    const { kernel } = this.compilation
    return partsOf(kernel, { name: buffer }).map((p) => new Part(kernel, p, this.sources))
  }

  /** Steps for each part of a tensor: `each('A', (k, p) => k.split(p.loop('io'), 8 / p.constants.width))`. */
  each(buffer: string, steps: (kernel: K, part: Part) => K): K {
    expectArgument(
      typeof steps === 'function',
      'what is done for each part',
      steps,
      '(kernel, part) => kernel',
    )
    return this.parts(buffer).reduce<K>((k, p) => {
      const next: unknown = steps(k, p)
      const trace = next instanceof SteppedKernel ? next.trace : []
      const goesOn =
        next instanceof SteppedKernel &&
        next.compilation.source === k.compilation.source &&
        k.trace.every((step, at) => trace[at] === step)
      expectArgument(
        goesOn,
        `what is done for part ${p.label}`,
        next,
        'the kernel that is given, with further steps',
      )
      return next as K
    }, this.#self)
  }

  /** Outermost spatial loops over threads where nothing is bound: what a GPU runs when no schedule says better. */
  parallel(): K {
    this.#onThreads ??= this.#changed(this.compilation.parallel())
    return this.#onThreads
  }

  /** Nests that bring a schedule for one thread under it where no step has changed them: what a CPU runs. */
  sequential(): K {
    this.#onOneThread ??= this.#changed(this.compilation.sequential())
    return this.#onOneThread
  }

  /** Without the latest step. */
  undo(): K {
    return this.#changed(this.compilation.undo())
  }

  /** A loop by name, good through later steps that rename or nest it. */
  loop(name: string): LoopRef {
    expectName('a loop', name)
    const { kernel, state } = this.compilation
    return handleOf(kernel, namedLoop(state, name))
  }

  /** Its nests of loops as they are now, with what each loop is to the result. */
  get nests(): readonly Nest[] {
    const { kernel, loops } = this.compilation
    return nestsOf(loops, (l) => handleOf(kernel, l))
  }

  /** Which dimensions of its tensors may be permuted, in the kernel as written, and what that does to results. */
  get permutable(): PermutableDimensions {
    return permutableDimensions(this.source)
  }

  /** What is zero or constant in the kernel as written, where, and what nobody needs: by what its iterations may be masked. */
  get attributes(): SparsityAttributes {
    return sparsityAttributes(this.source)
  }

  /** The steps so far, as the language writes them. */
  get trace(): readonly string[] {
    return printedSteps(this.compilation)
  }

  /** The steps so far as JSON; `replay` takes them back. */
  toJSON(): TraceStep[] {
    return traceOf(this.compilation)
  }

  /** Applies a trace that `toJSON` gave. */
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
        expectArgument(Array.isArray(args), 'what a format is given in a trace', args, 'a list')
        return k.onCoord({ ...s, ...chooseFormat(s.format, args, this.surroundings.formats) })
      }
      return s.kind === 'coords' ? k.onCoord(s.step as never) : k.onLoop(s.step)
    }, this.#self)
  }

  /** The kernel as it is now, at a stage: 1 coordinates, 2 positions, 3 memory. */
  show(stage: 1 | 2 | 3): string {
    expectArgument([1, 2, 3].includes(stage), 'the stage', stage, '1, 2 or 3')
    return stage === 1
      ? print1(this.compilation.kernel)
      : stage === 2
        ? print2(this.compilation.loops)
        : print3(this.compilation.plan)
  }

  /** The texts of its launches for a target. */
  emit(target: ModuleText['target']): readonly ModuleText[] {
    expectArgument(TARGET_NAMES.includes(target), 'the target', target, TARGET_NAMES.join(', '))
    return this.compilation.texts(target)
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

  /** What `K` is. */
  get #self(): K {
    return this as unknown as K
  }

  #changed(c: Compilation): K {
    if (c === this.compilation) return this.#self
    if (this.surroundings.own) refuseTextsOf(c.loopSteps, this.surroundings.own)
    return this.with(c)
  }
}
