/** Kernels and schedules as values: every call gives a new kernel and leaves the old one as it was. */
import { fail, orRefused, SptError } from '../ast/diagnostic.ts'
import type { ModuleText } from '../backends/emit.ts'
import { DEVICE_KINDS } from '../backends/target.ts'
import { TARGET_NAMES } from '../backends/targets/index.ts'
import type { Choice, Schedule } from '../elaborate/index.ts'
import type { AnyFormat } from '../ir/format.ts'
import { print1 } from '../ir/print-stage1.ts'
import { print2 } from '../ir/print-stage2.ts'
import { print3 } from '../ir/print-stage3.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { Compilation, runOn, type StepOf } from '../run/compile.ts'
import { isRefusedByDevice } from '../run/device-limits.ts'
import { compileOn, lanesOf } from '../run/execute.ts'
import type { Device } from '../runtime/device.ts'
import type { CoordStep } from '../schedule/coords/steps.ts'
import type { LoopRef } from '../schedule/loop-ref.ts'
import { partsOf } from '../schedule/parts.ts'
import { mergeParts, type Step, stepsOf } from '../schedule/resolve.ts'
import { handle } from '../schedule/state.ts'
import type { LoopStep } from '../schedule/steps.ts'
import { bestGuess, type SketchDevice } from '../search/sketch/index.ts'
import {
  checkDevice,
  checkSizes,
  expectArgument,
  expectEach,
  expectName,
  isRecord,
  nameText,
} from './argument-checks.ts'
import { fastestForms } from './automatic-forms.ts'
import { valuesIn } from './bound-inputs.ts'
import { type ChoiceUse, choiceUse } from './choice-conditions.ts'
import {
  answer,
  broughtQuestion,
  type ChoiceInputs,
  type ChosenFor,
  type ChosenKernel,
  type OpenChoice,
} from './choose.ts'
import { type CompiledKernel, CompiledSchedule, type RunInputs } from './compiled.ts'
import { CompiledAutomatic } from './compiled-automatic.ts'
import { CompiledChoice } from './compiled-choice.ts'
import { refuseTextsOf } from './instruction-lookup.ts'
import { type Surroundings, withTexts } from './kernel-scope.ts'
import { type Nest, nestsOf } from './nests.ts'
import { Part } from './part.ts'
import { printedSteps, type TraceStep, traceOf } from './printed-trace.ts'
import { OpenSpace } from './space.ts'
import { Steps } from './steps.ts'

export type { TraceStep } from './printed-trace.ts'

/** Beyond which nests are too many to look at each: parts of a format by the hundred. */
const MOST_NESTS = 64

/** A kernel under the schedule that was chosen. */
export type Variant = ChosenKernel<Kernel>

export class Kernel extends Steps<Kernel> {
  readonly #compilation: Compilation
  readonly #around: Surroundings
  /** Decides the rest of its schedule when data are bound. */
  readonly #choice: ChoiceUse | null
  #onThreads: Kernel | undefined
  readonly #automatic = new Map<SketchDevice, Kernel>()

  constructor(compilation: Compilation, around: Surroundings, choice: ChoiceUse | null = null) {
    super()
    this.#compilation = compilation
    this.#around = around
    this.#choice = choice
  }

  get #c(): Compilation {
    if (this.#choice) stillOpen(this.#choice.choice)
    return this.#compilation
  }

  static of(kernel: Kernel1, around: Surroundings): Kernel {
    return new Kernel(Compilation.of(kernel, around.observer), around)
  }

  get name(): string {
    return this.source.name
  }

  /** The kernel as written, without steps. */
  get source(): Kernel1 {
    return this.#compilation.source
  }

  /** The compilation behind it: stages, plan, texts. */
  get compilation(): Compilation {
    return this.#c
  }

  /** Names of the schedules that the program has for it. */
  get schedules(): readonly string[] {
    return [...this.#around.schedules.keys()]
  }

  /** Formats that its steps can name. */
  get formats(): ReadonlyMap<string, AnyFormat> {
    return this.#around.formats
  }

  /** Names of its schedules that are chosen when data are bound. */
  get choices(): readonly string[] {
    return [...this.#around.choices.keys()]
  }

  /** Names of the spaces of schedules that the program has for it. */
  get spaces(): readonly string[] {
    return [...this.#around.spaces.keys()]
  }

  /**
   * A space of the program; arguments by place, the rest take their defaults.
   * @throws SptError `api/unknown-space`
   */
  space(name: string, ...args: (number | undefined)[]): OpenSpace<Kernel> {
    const space =
      this.#around.spaces.get(name) ??
      fail({
        code: 'api/unknown-space',
        message: `kernel ${this.name} has no space ${nameText(name)}`,
        lookup: { name: nameText(name), candidates: this.spaces },
        expected: this.spaces.length > 0 ? `one of ${this.spaces.join(', ')}` : 'a kernel with spaces',
        hint: 'declare it in the program, or make one',
      })
    return new OpenSpace(space, new Kernel(this.#c, this.#around), args, this.#around)
  }

  /** The choice that is still open: of its schedule, or the one called `auto` of a kernel without one. */
  get choice(): string | null {
    return (this.#choice?.choice ?? this.#usual)?.name ?? null
  }

  /** The parameters of a schedule, or a space, of the program, in order; those without a default need an argument. */
  parameters(name: string): readonly { readonly name: string; readonly required: boolean }[] {
    const { choices, spaces } = this.#around
    const { params } = choices.get(name) ?? spaces.get(name) ?? this.#schedule(name)
    return params.map((p) => ({ name: p.name, required: p.default === null }))
  }

  /** The steps of a schedule of the program; arguments by place, the rest take their defaults. */
  steps(name: string, ...args: (number | undefined)[]): readonly Step[] {
    return stepsOf(this.#schedule(name), args)
  }

  /**
   * Applies a schedule of the program: `apply(steps(name, …))`. Of one that is chosen when data are bound, `compile`
   * and `choose` make a kernel.
   */
  schedule(name: string, ...args: (number | undefined)[]): Kernel {
    const choice = this.#around.choices.get(name)
    if (!choice) return this.#after(this.steps(name, ...args), name)
    return new Kernel(this.#c, this.#around, choiceUse(choice, args))
  }

  /**
   * Chooses its schedule for a device, or a kind of device: the kernel under it, and why.
   * @throws SptError `choose/…`
   */
  async choose(on: ChosenFor, inputs: ChoiceInputs): Promise<Variant> {
    const open = this.#opened()
    if (!open)
      return fail({
        code: 'choose/decided',
        message: `nothing is left to choose of the schedule of ${this.name}`,
        expected: this.choices.length > 0 ? `schedule('${this.choices[0]}')` : 'a kernel with a choice',
        hint: 'compile it as it is',
      })
    return withTexts(this.#around, async () => answer(await broughtQuestion(open, on, inputs), on))
  }

  apply(steps: readonly Step[]): Kernel {
    const isStep = (s: unknown) => isRecord(s) && [1, 2, 'parts'].includes(s.stage as number)
    expectEach('what is applied', steps, isStep, 'step', 'as steps() gives them')
    return this.#after(steps)
  }

  /** `schedule`: the one that the steps are those of. */
  #after(steps: readonly Step[], schedule?: string): Kernel {
    const which = (k: number): StepOf | undefined =>
      schedule === undefined ? undefined : { schedule, number: k + 1, of: steps.length }
    return this.#with(steps.reduce((c, s, k) => c.step(s, which(k)), this.#c))
  }

  /** `merge parts of A`: one launch for each iteration over the parts. */
  mergeParts(buffer: string): Kernel {
    expectName('a buffer', buffer)
    const { kernel, loops } = this.#c
    return this.apply(mergeParts({ buffer: { name: buffer } }, { kernel, loops }))
  }

  /**
   * The parts that a step stored a tensor in, by the tensor's name.
   * @throws SptError `schedule/no-parts`
   */
  parts(buffer: string): readonly Part[] {
    expectName('a buffer', buffer)
    const { kernel } = this.#c
    return partsOf(kernel, { name: buffer }).map((p) => new Part(kernel, p))
  }

  /** Steps for each part of a tensor: `each('A', (k, p) => k.split(p.loop('io'), 8 / p.constants.width))`. */
  each(buffer: string, steps: (kernel: Kernel, part: Part) => Kernel): Kernel {
    expectArgument(
      typeof steps === 'function',
      'what is done for each part',
      steps,
      '(kernel, part) => kernel',
    )
    return this.parts(buffer).reduce<Kernel>((k, p) => {
      const next: unknown = steps(k, p)
      expectArgument(next instanceof Kernel, `what is done for part ${p.label}`, next, 'a kernel')
      return next as Kernel
    }, this)
  }

  /** Outermost spatial loops over threads where nothing is bound: what a GPU runs when no schedule says better. */
  parallel(): Kernel {
    this.#onThreads ??= this.#with(this.#c.parallel())
    return this.#onThreads
  }

  /**
   * Steps on loops from their shape alone, where it has none: running sums in registers on cpu, threads for elements, lanes or
   * shares elsewhere. The best guess of `sketches` (sparsetile/search); itself where a step of it is refused.
   * @param sizes - Those that it is for, by name: it may require them, or what they are multiples of
   * @param tensors - Of its forms (`SketchSpace.forms`) the one that the cost model expects to be the fastest on these, where
   *   there is a model: what runs where `compile` is not told more
   */
  automatic(
    device: SketchDevice | Device,
    sizes?: Readonly<Record<string, number>>,
    tensors?: RunInputs['tensors'],
  ): Kernel {
    const kind = typeof device === 'string' ? device : device?.kind
    expectArgument(DEVICE_KINDS.includes(kind), 'the kind of a device', kind, DEVICE_KINDS.join(', '))
    if (tensors !== undefined && this.#isFree) {
      const values = valuesIn(this.source, { tensors, ...(sizes ? { params: sizes } : {}) })
      return fastestForms<Kernel>(this, device, values)[0] ?? this
    }
    checkSizes(this.source, sizes)
    const known = sizes ? undefined : this.#automatic.get(kind)
    if (known) return known
    const made = this.#isFree ? orRefused(() => bestGuess<Kernel>(this, { device: kind, sizes })) : this
    const kernel = made instanceof SptError ? this : made
    if (!sizes) this.#automatic.set(kind, kernel)
    return kernel
  }

  /** Whether its loops have no steps, and are not too many to be looked at. */
  get #isFree(): boolean {
    const { onLoops, loops } = this.#c
    return !onLoops && loops.body.length <= MOST_NESTS
  }

  /** Without the latest step. */
  undo(): Kernel {
    return this.#with(this.#c.undo())
  }

  /** A loop by name, good through later steps that rename or nest it. */
  loop(name: string): LoopRef {
    expectName('a loop', name)
    return handle(this.#c.state, name)
  }

  /** Its nests of loops as they are now, with what each loop is to the result. */
  get nests(): readonly Nest[] {
    return nestsOf(this.#c.loops)
  }

  /** The steps so far, as the language writes them. */
  get trace(): readonly string[] {
    return printedSteps(this.#c)
  }

  /** The steps so far as JSON; `replay` takes them back. */
  toJSON(): TraceStep[] {
    return traceOf(this.#c)
  }

  /** Applies a trace that `toJSON` gave. */
  replay(trace: readonly TraceStep[]): Kernel {
    expectEach('a trace', trace, isRecord, 'step', 'as toJSON gives them')
    return trace.reduce<Kernel>((k, s) => {
      expectArgument(
        s.kind === 'as' || s.kind === 'coords' || s.kind === 'loops',
        'the kind of a step in a trace',
        s.kind,
        'as, coords or loops',
      )
      if (s.kind === 'as') return k.as(s.buffer, s.format, ...(Array.isArray(s.args) ? s.args : []))
      return s.kind === 'coords' ? k.onCoord(s.step as never) : k.onLoop(s.step)
    }, this)
  }

  /** The kernel as it is now, at a stage: 1 coordinates, 2 positions, 3 memory. */
  show(stage: 1 | 2 | 3): string {
    expectArgument([1, 2, 3].includes(stage), 'the stage', stage, '1, 2 or 3')
    return stage === 1 ? print1(this.#c.kernel) : stage === 2 ? print2(this.#c.loops) : print3(this.#c.plan)
  }

  /** The texts of its launches for a target. */
  emit(target: ModuleText['target']): readonly ModuleText[] {
    expectArgument(TARGET_NAMES.includes(target), 'the target', target, TARGET_NAMES.join(', '))
    return this.#c.texts(target)
  }

  /**
   * Compiles for a device. One without steps on loops runs as `automatic` does, on devices with threads in the form that is
   * chosen when data are bound, and on what is resident there as `parallel()` does, as one whose steps bind no threads. Where a choice is open, or no
   * step has been applied and the program has a choice called `auto`, each binding chooses the schedule.
   */
  async compile(device: Device): Promise<CompiledKernel> {
    checkDevice(device)
    const open = this.#opened()
    return open ? new CompiledChoice(open, device) : (await this.compileUnasked(device)).compiled
  }

  /** What `compile` takes where no choice is open, as far as it is known without data, and the same compiled. */
  async compileUnasked(
    device: Device,
  ): Promise<{ readonly kernel: Kernel; readonly compiled: CompiledSchedule }> {
    checkDevice(device)
    const of = async (kernel: Kernel) => ({ kernel, compiled: await kernel.compileAsIs(device) })
    if (device.kind !== 'cpu') {
      const made = await of(this)
      if (!this.#isFree) return made
      // Forms are made and compiled once there are sizes: without them they are longer by a version for each remainder.
      const { compilation, program } = made.compiled
      return { kernel: this, compiled: new CompiledAutomatic(this, compilation, program) }
    }
    const guess = this.automatic('cpu')
    if (guess === this) return of(this)
    try {
      return await of(guess)
    } catch (why) {
      // What only lowering refuses: the kernel as it is has less to refuse.
      if (!(why instanceof SptError)) throw why
      return of(this)
    }
  }

  /** Compiles under the steps that it has; where the device does not take them on threads (`parallel`), without these. */
  async compileAsIs(device: Device): Promise<CompiledSchedule> {
    checkDevice(device)
    const compiled = async (k: Kernel): Promise<CompiledSchedule> =>
      new CompiledSchedule(k.#c, await compileOn(device, k.#c.planFor(lanesOf(device)), this.#around.sources))
    const k = runOn<Kernel>(this, device.kind)
    if (k === this) return compiled(this)
    try {
      return await compiled(k)
    } catch (why) {
      if (!isRefusedByDevice(why)) throw why
      return compiled(this)
    }
  }

  /** What is chosen by where nothing else is said. */
  get #usual(): Choice | undefined {
    const { coordSteps, onLoops } = this.#compilation
    return coordSteps.length === 0 && !onLoops ? this.#around.choices.get('auto') : undefined
  }

  #opened(): OpenChoice<Kernel> | null {
    if (this.#choice) return { ...this.#choice, base: new Kernel(this.#compilation, this.#around) }
    const usual = this.#usual
    return usual ? { ...choiceUse(usual, []), base: this } : null
  }

  #schedule(name: string): Schedule {
    const choice = this.#around.choices.get(name)
    if (choice) stillOpen(choice)
    return (
      this.#around.schedules.get(name) ??
      fail({
        code: 'api/unknown-schedule',
        message: `kernel ${this.name} has no schedule ${nameText(name)}`,
        lookup: { name: nameText(name), candidates: [...this.schedules, ...this.choices] },
        expected:
          this.schedules.length > 0 ? `one of ${this.schedules.join(', ')}` : 'a kernel with schedules',
        hint: 'declare it in the program, or apply steps',
      })
    )
  }

  protected get surroundings(): Surroundings {
    return this.#around
  }

  protected get onLoops(): boolean {
    return this.#c.onLoops
  }

  protected onCoord(step: CoordStep): Kernel {
    return this.#with(this.#c.onCoords(step))
  }

  protected onLoop(step: LoopStep): Kernel {
    return this.#with(this.#c.onLoop(step))
  }

  #with(c: Compilation): Kernel {
    if (c === this.#c) return this
    if (!this.#around.instructions) refuseTextsOf(c.loopSteps)
    return new Kernel(c, this.#around)
  }
}

function stillOpen({ kernel, name, branches }: Choice): never {
  return fail({
    code: 'choose/open',
    message: `${kernel}.${name} is chosen when data are bound, and has no steps before`,
    expected: 'compile(device), or choose(device, inputs)',
    hint: `name one of its schedules: ${[...new Set(branches.flatMap((b) => b.calls.map((c) => c.schedule.name)))].join(', ')}`,
  })
}
