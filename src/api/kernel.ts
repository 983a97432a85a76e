/** Kernels and schedules as values: what the program has for a kernel by name, and the kernel compiled. */
import { fail } from '../ast/diagnostic.ts'
import { DEVICE_KINDS } from '../backends/target.ts'
import type { Choice, Schedule } from '../elaborate/index.ts'
import { memoize } from '../ir/memoize.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { Compilation } from '../run/compile.ts'
import type { Device } from '../runtime/device.ts'
import { type Step, stepsOf } from '../schedule/resolve.ts'
import {
  type FormatInput,
  formatInputs,
  formatInputsOfChoice,
  inputsOfFormats,
} from '../schedule/used-data.ts'
import { type UsedFormat, usedFormats } from '../schedule/used-formats.ts'
import type { SketchDevice } from '../search/sketch/index.ts'
import { checkDevice, checkSizes, expectArgument, nameText } from './argument-checks.ts'
import {
  fastestCandidates,
  isUnscheduled,
  type ScheduleCandidate,
  scheduleCandidates,
} from './automatic-forms.ts'
import { valuesIn } from './bound-inputs.ts'
import { declaredOf } from './bound-values.ts'
import { type DispatchCall, dispatchCall } from './choice-conditions.ts'
import {
  fetchedRequest,
  type OpenDispatch,
  type SelectedKernel,
  type SelectionContext,
  type SelectionInputs,
  selectSchedule,
} from './choose.ts'
import { compileDefault, compileSchedule } from './compile-kernel.ts'
import type { CompiledKernel, CompiledSchedule, RunInputs } from './compiled.ts'
import { CompiledDispatch } from './compiled-choice.ts'
import { takenBy } from './format-data.ts'
import type { Surroundings } from './kernel-scope.ts'
import { type MicroTile, microTiles } from './micro-tiles.ts'
import type { TraceStep } from './printed-trace.ts'
import { UnboundSpace } from './space.ts'
import { SteppedKernel } from './stepped-kernel.ts'

export type { TraceStep } from './printed-trace.ts'

/** A kernel under the schedule that was chosen. */
export type Variant = SelectedKernel<Kernel>

/** A kernel of a program, and its steps. */
export interface KernelOrigin extends Pick<Surroundings, 'sources'> {
  readonly name: string
  /** `false`: its program was loaded without texts for targets. */
  readonly instructions: boolean
  readonly trace: readonly TraceStep[]
}

export class Kernel extends SteppedKernel<Kernel> {
  /** Decides the rest of its schedule when data are bound. */
  readonly #choice: DispatchCall | null

  constructor(compilation: Compilation, around: Surroundings, dispatch: DispatchCall | null = null) {
    super(compilation, around)
    this.#choice = dispatch
  }

  static of(kernel: Kernel1, around: Surroundings): Kernel {
    return new Kernel(Compilation.of(kernel, around.observer), around)
  }

  /** @throws SptError `choose/open` where its schedule is chosen when data are bound */
  override get compilation(): Compilation {
    if (this.#choice) stillOpen(this.#choice.choice)
    return super.compilation
  }

  /** Names of the schedules that the program has for it. */
  get schedules(): readonly string[] {
    return [...this.surroundings.schedules.keys()]
  }

  /** Formats, with arguments, that the schedules which the program has for it store tensors in. */
  get usedFormats(): readonly UsedFormat[] {
    return usedFormats(this.surroundings.schedules.values(), this.surroundings.choices.values())
  }

  /**
   * Lists and sets that formats of its schedules and spaces take, by the names under which they are bound; with a name, those
   * of the schedules that this choice is among.
   */
  formatInputs(choice?: string): ReadonlyMap<string, FormatInput> {
    const one = choice === undefined ? undefined : this.surroundings.choices.get(choice)
    return one ? formatInputsOfChoice(one) : formatInputsIn(this.surroundings)
  }

  /** Those of all its schedules and spaces, and what any format of the program takes by the names of its parameters. */
  get allFormatInputs(): ReadonlyMap<string, FormatInput> {
    return allFormatInputsIn(this.surroundings)
  }

  /** What another thread makes it of again; `null` where its steps are observed, or still to be chosen. */
  get origin(): KernelOrigin | null {
    const { sources, own, observer } = this.surroundings
    if (observer || this.#choice) return null
    return { name: this.name, sources, instructions: own === null, trace: this.toJSON() }
  }

  /** Names of its schedules that are chosen when data are bound. */
  get dispatches(): readonly string[] {
    return [...this.surroundings.choices.keys()]
  }

  /** Names of the spaces of schedules that the program has for it. */
  get spaces(): readonly string[] {
    return [...this.surroundings.spaces.keys()]
  }

  /**
   * A space of the program; arguments by place, the rest take their defaults.
   * @throws SptError `api/unknown-space`
   */
  space(name: string, ...args: (number | undefined)[]): UnboundSpace<Kernel> {
    const space =
      this.surroundings.spaces.get(name) ??
      fail({
        code: 'api/unknown-space',
        message: `kernel ${this.name} has no space ${nameText(name)}`,
        lookup: { name: nameText(name), candidates: this.spaces },
        expected: this.spaces.length > 0 ? `one of ${this.spaces.join(', ')}` : 'a kernel with spaces',
        hint: 'declare it in the program, or make one',
      })
    return new UnboundSpace(space, new Kernel(this.compilation, this.surroundings), args)
  }

  /** The choice that is still open: of its schedule, or the one called `auto` of a kernel without one. */
  get dispatch(): string | null {
    return (this.#choice?.choice ?? this.#usual)?.name ?? null
  }

  /**
   * Formats that gather what a dense tensor of the kernel as written holds along each dimension that may be permuted.
   * @param tile - Of the dense tile, by the name of an axis; 32 where it is left out
   */
  microTiles(tile: Readonly<Record<string, number>> = {}): readonly MicroTile[] {
    return microTiles(Kernel.of(this.source, this.surroundings), tile)
  }

  /** The parameters of a schedule, or a space, of the program, in order; those without a default need an argument. */
  parameters(name: string): readonly { readonly name: string; readonly required: boolean }[] {
    const { choices, spaces } = this.surroundings
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
    const choice = this.surroundings.choices.get(name)
    if (!choice) return this.after(this.steps(name, ...args), name)
    return new Kernel(this.compilation, this.surroundings, dispatchCall(choice, args))
  }

  /**
   * Chooses its schedule for a device, or a kind of device: the kernel under it, and why.
   * @throws SptError `choose/…`
   */
  async choose(on: SelectionContext, inputs: SelectionInputs): Promise<Variant> {
    const open = this.#opened()
    if (!open)
      return fail({
        code: 'choose/decided',
        message: `the schedule of ${this.name} has no open decisions`,
        expected: this.dispatches.length > 0 ? `schedule('${this.dispatches[0]}')` : 'a kernel with a choice',
        hint: 'call compile(device)',
      })
    return selectSchedule(await fetchedRequest(open, on, inputs), on)
  }

  /**
   * Steps on loops from their shape alone, where it has none: running sums in registers on cpu, threads for elements, lanes or
   * shares elsewhere. The best guess of `sketches` (sparsetile/search); itself where a step of it is refused.
   * @param sizes - Those that it is for, by name: it may require them, or what they are multiples of
   * @param tensors - Of its forms (`SketchSpace.forms`) the one that the cost model expects to be the fastest on these, where
   *   there is a model: what runs where `compile` is not told more
   */
  autoSchedule(
    device: SketchDevice | Device,
    sizes?: Readonly<Record<string, number>>,
    tensors?: RunInputs['tensors'],
  ): Kernel {
    return this.#forms(device, sizes, tensors, 1)[0]?.kernel ?? this
  }

  /**
   * What `automatic` takes the first of, with what is expected of each; the others are those of its forms that were looked at.
   * None where it has steps on loops, and where all are refused.
   */
  scheduleCandidates(
    device: SketchDevice | Device,
    sizes?: Readonly<Record<string, number>>,
    tensors?: RunInputs['tensors'],
  ): readonly ScheduleCandidate<Kernel>[] {
    return this.#forms(device, sizes, tensors)
  }

  #forms(
    device: SketchDevice | Device,
    sizes?: Readonly<Record<string, number>>,
    tensors?: RunInputs['tensors'],
    most?: number,
  ): readonly ScheduleCandidate<Kernel>[] {
    const kind = typeof device === 'string' ? device : device?.kind
    expectArgument(DEVICE_KINDS.includes(kind), 'the kind of a device', kind, DEVICE_KINDS.join(', '))
    const free = isUnscheduled(this.compilation)
    if (free && tensors !== undefined) {
      // Lists, sets and parts of formats say nothing of loops; what is none of these is refused.
      const used = this.formatInputs()
      const taken = takenBy(this.compilation.kernel, tensors, used)
      const declared = declaredOf(this.source, taken, used)
      const values = valuesIn(this.source, { tensors: declared, ...(sizes ? { params: sizes } : {}) })
      return fastestCandidates<Kernel>(this, device, values)
    }
    checkSizes(this.source, sizes)
    return free ? scheduleCandidates<Kernel>(this, kind, sizes, most) : []
  }

  /**
   * Compiles for a device. One without steps on loops runs as `automatic` does, on devices with threads in the form that is
   * chosen when data are bound, and on what is resident there as `parallel()` does, as one whose steps bind no threads. Where a choice is open, or no
   * step has been applied and the program has a choice called `auto`, each binding chooses the schedule.
   */
  async compile(device: Device): Promise<CompiledKernel> {
    checkDevice(device)
    const open = this.#opened()
    return open ? new CompiledDispatch(open, device) : (await this.compileDefault(device)).compiled
  }

  /** What `compile` takes where no choice is open, as far as it is known without data, and the same compiled. */
  async compileDefault(
    device: Device,
  ): Promise<{ readonly kernel: Kernel; readonly compiled: CompiledSchedule }> {
    checkDevice(device)
    return compileDefault<Kernel>(this, device)
  }

  /** Compiles under the steps that it has; where the device does not take them on threads (`parallel`), without these. */
  async compileSchedule(device: Device): Promise<CompiledSchedule> {
    checkDevice(device)
    return compileSchedule<Kernel>(this, device)
  }

  /** What is chosen by where nothing else is said. */
  get #usual(): Choice | undefined {
    const { coordSteps, onLoops } = super.compilation
    return coordSteps.length === 0 && !onLoops ? this.surroundings.choices.get('auto') : undefined
  }

  #opened(): OpenDispatch<Kernel> | null {
    if (this.#choice) return { ...this.#choice, base: new Kernel(super.compilation, this.surroundings) }
    const usual = this.#usual
    return usual ? { ...dispatchCall(usual, []), base: this, isDefault: true } : null
  }

  #schedule(name: string): Schedule {
    const choice = this.surroundings.choices.get(name)
    if (choice) stillOpen(choice)
    return (
      this.surroundings.schedules.get(name) ??
      fail({
        code: 'api/unknown-schedule',
        message: `kernel ${this.name} has no schedule ${nameText(name)}`,
        lookup: { name: nameText(name), candidates: [...this.schedules, ...this.dispatches] },
        expected:
          this.schedules.length > 0 ? `one of ${this.schedules.join(', ')}` : 'a kernel with schedules',
        hint: `leave it out to let the compiler select one, or declare \`schedule ${this.name}.NAME { … }\``,
      })
    )
  }

  protected with(c: Compilation): Kernel {
    return new Kernel(c, this.surroundings)
  }
}

const formatInputsIn = memoize((s: Surroundings) =>
  formatInputs(s.schedules.values(), s.spaces.values(), s.choices.values()),
)

const allFormatInputsIn = memoize(
  (s: Surroundings): ReadonlyMap<string, FormatInput> =>
    new Map([...inputsOfFormats(s.formats.values()), ...formatInputsIn(s)]),
)

function stillOpen({ kernel, name, branches }: Choice): never {
  return fail({
    code: 'choose/open',
    message: `${kernel}.${name} is chosen when data are bound, and has no steps before`,
    expected: 'compile(device), or choose(device, inputs)',
    hint: `name one of its schedules: ${[...new Set(branches.flatMap((b) => b.calls.map((c) => c.schedule.name)))].join(', ')}`,
  })
}
