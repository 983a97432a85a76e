/** Kernels of a program: their schedules, dispatches and search spaces by name, and their compilation. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { WORK_OPTIONS, Work } from '../../ast/work.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import type { Choice, Schedule } from '../../elaborate/index.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { Compilation } from '../../run/compile/compile.ts'
import type { Device } from '../../runtime/device.ts'
import type { FormatInput, UsedFormat } from '../../schedule/coordinates/as/format-inputs.ts'
import { formatInputsOfChoice, usedFormats } from '../../schedule/coordinates/as/format-inputs.ts'
import { type Step, stepsOf } from '../../schedule/steps/resolve.ts'
import type { SketchDevice } from '../../sketch/index.ts'
import type { ScheduleCandidate } from '../auto-schedule/schedule-candidates.ts'
import { fastestCandidates, isUnscheduled, scheduleCandidates } from '../auto-schedule/schedule-candidates.ts'
import { type BuildOptions, buildKernel } from '../built/build.ts'
import type { Built } from '../built/built.ts'
import { kindOf, type SelectionContext } from '../dispatch/device-facts.ts'
import { type DispatchCall, dispatchCall, type Selection } from '../dispatch/dispatch-conditions.ts'
import { KernelFamily } from '../dispatch/kernel-family.ts'
import type { KernelDispatch } from '../dispatch/schedules.ts'
import { Selector } from '../dispatch/selector.ts'
import { checkDevice, checkSizes, expectArgument, nameText } from '../inputs/argument-checks.ts'
import { declaredOf, type RunInputs, valuesIn } from '../inputs/bound-inputs.ts'
import { type Inputs, namedInputs, type SelectionOptions } from '../inputs/flat-inputs.ts'
import { formatInputsFor } from '../inputs/format-input-binding.ts'
import { calleeSteps } from './callee-steps.ts'
import { derivedKernel, type GradientOptions } from './derived-kernel.ts'
import { Inspection } from './inspection.ts'
import { allFormatInputsIn, formatInputsIn, type Surroundings } from './instruction-lookup.ts'
import { microTiles } from './micro-tiles.ts'
import type { TraceStep } from './nests.ts'
import { UnboundSpace } from './space.ts'
import { SteppedKernel } from './stepped-kernel.ts'

export type { TraceStep } from './nests.ts'

/** A dispatch of the program. */
type OpenDispatch = Omit<KernelDispatch, 'choice'> & DispatchCall<Choice>

/** A kernel under the selected schedule. */
export interface Variant {
  readonly kernel: Kernel
  readonly selection: Selection
}

/** Serialisable description of a kernel: its program, and the steps applied so far. */
export interface KernelOrigin extends Pick<Surroundings, 'sources'> {
  readonly name: string
  /** `false`: the program was loaded without device code (`instructions: false`). */
  readonly instructions: boolean
  readonly trace: readonly TraceStep[]
}

export class Kernel extends SteppedKernel<Kernel> {
  readonly #choice: DispatchCall<Choice> | null

  /** @internal */
  constructor(compilation: Compilation, around: Surroundings, dispatch: DispatchCall<Choice> | null = null) {
    super(compilation, around)
    this.#choice = dispatch
  }

  /** @internal */
  static of(kernel: Kernel1, around: Surroundings): Kernel {
    return new Kernel(Compilation.of(kernel, around.observer), around)
  }

  /** Stages and plan as data. @throws SptError `choose/open` if the schedule is selected when data are bound */
  override get compilation(): Compilation {
    if (this.#choice) stillOpen(this.#choice.choice)
    return super.compilation
  }

  /**
   * The kernel of gradients: it computes `d_X`, of the shape and structure of X, for each tensor or scalar parameter X of
   * `wrt`. If the output `by` is a scalar, the other outputs remain. Otherwise `d_by` is an input: the kernel is the
   * vector-Jacobian product. Formats and schedules are applied to the result.
   * @throws SptError `derive/…`, `api/…`
   */
  gradient(by: string, wrt: readonly string[], options: GradientOptions = {}): Kernel {
    const { coordSteps, onLoops } = super.compilation
    if (coordSteps.length > 0 || onLoops || this.#choice)
      failWith('derive/scheduled', `kernel ${this.name} has steps, and gradients are those of statements`, {
        expected: 'the kernel without steps',
        hint: "call gradient first, and then the steps: kernel.gradient('loss', ['W']).schedule(…)",
      })
    const derived = derivedKernel(this.source, by, wrt, options)
    const none = { schedules: new Map(), choices: new Map(), spaces: new Map() }
    return Kernel.of(derived, { ...this.surroundings, ...none, isDerived: true })
  }

  /** Names of the kernel's schedules in the program. */
  get schedules(): readonly string[] {
    return [...this.surroundings.schedules.keys()]
  }

  /** Formats with their arguments, in which schedules of the program store tensors of the kernel. */
  get usedFormats(): readonly UsedFormat[] {
    return usedFormats(this.surroundings.schedules.values(), this.surroundings.choices.values())
  }

  /**
   * Lists and sets required by the formats of its schedules and spaces, by the names under which they are bound. If you name a
   * dispatch: those of its schedules.
   */
  formatInputs(choice?: string): ReadonlyMap<string, FormatInput> {
    const one = choice === undefined ? undefined : this.surroundings.choices.get(choice)
    return one ? formatInputsOfChoice(one) : formatInputsIn(this.surroundings)
  }

  /** `formatInputs`, and the lists and sets of all formats of the program, by the names of their parameters. */
  get allFormatInputs(): ReadonlyMap<string, FormatInput> {
    return allFormatInputsIn(this.surroundings)
  }

  /** Description from which a worker thread rebuilds the kernel; `null` if its steps are observed, a dispatch is open, or it is a gradient from a call. */
  get origin(): KernelOrigin | null {
    const { sources, own, observer, isDerived } = this.surroundings
    if (observer || this.#choice || isDerived) return null
    return { name: this.name, sources, instructions: own === null, trace: this.toJSON() }
  }

  /** Names of its dispatches: schedules declared with `choose`. */
  get dispatches(): readonly string[] {
    return [...this.surroundings.choices.keys()]
  }

  /** @internal Its schedules with their steps. */
  get declaredSchedules(): ReadonlyMap<string, Schedule> {
    return this.surroundings.schedules
  }

  /** @internal Its dispatches with their branches. */
  get declaredDispatches(): ReadonlyMap<string, Choice> {
    return this.surroundings.choices
  }

  /** Names of its search spaces in the program. */
  get spaces(): readonly string[] {
    return [...this.surroundings.spaces.keys()]
  }

  /** A search space of the program. Arguments are positional; omitted ones take their defaults. @throws SptError `api/unknown-space` */
  space(name: string, ...args: (number | undefined)[]): UnboundSpace<Kernel> {
    const space =
      this.surroundings.spaces.get(name) ??
      failWith('api/unknown-space', `kernel ${this.name} has no space ${nameText(name)}`, {
        lookup: { name: nameText(name), candidates: this.spaces },
        expected: this.spaces.length > 0 ? `one of ${this.spaces.join(', ')}` : 'a kernel with spaces',
        hint: 'declare the space in the program, or make a space of a function',
      })
    return new UnboundSpace(space, new Kernel(this.compilation, this.surroundings), args)
  }

  /** Name of the open dispatch: the applied one, or `auto` for a kernel without steps; otherwise `null`. */
  get dispatch(): string | null {
    return (this.#choice?.choice ?? this.#usual)?.name ?? null
  }

  /** Analyses of the kernel: loop nests, permutable dimensions, sparsity propagation, micro-tiles, candidates of the auto-scheduler. */
  get inspect(): Inspection<Kernel> {
    const kernel = this
    return new Inspection<Kernel>({
      source: this.source,
      sources: this.sources,
      get compilation() {
        return kernel.compilation
      },
      microTiles: (tile) => microTiles(Kernel.of(this.source, this.surroundings), tile),
      candidates: (...on) => this.#forms(...on),
    })
  }

  /** Parameters of a schedule, dispatch or space in order; `required`: it has no default. @throws SptError `api/unknown-schedule` */
  parameters(name: string): readonly { readonly name: string; readonly required: boolean }[] {
    const { choices, spaces } = this.surroundings
    const { params } = choices.get(name) ?? spaces.get(name) ?? this.#schedule(name)
    return params.map((p) => ({ name: p.name, required: p.default === null }))
  }

  /**
   * Steps of a schedule of the program, or of a called kernel: `layer.gpu at encoder[3]`; without `at`, for all calls of the
   * kernel. Arguments are positional; omitted ones take their defaults.
   */
  steps(name: string, ...args: (number | undefined)[]): readonly Step[] {
    if (typeof name === 'string' && name.includes('.')) return calleeSteps(name, args, this.surroundings)
    return stepsOf(this.#schedule(name), args)
  }

  /**
   * Applies a schedule of the program: `apply(steps(name, …))`. A dispatch stays open until `build` or `choose`.
   * @throws SptError `api/unknown-schedule`, `schedule/…`
   */
  schedule(name: string, ...args: (number | undefined)[]): Kernel {
    const choice = this.surroundings.choices.get(name)
    if (!choice) return this.after(this.steps(name, ...args), name)
    return new Kernel(this.compilation, this.surroundings, dispatchCall(choice, args))
  }

  /**
   * Selects a schedule of the open dispatch for a device or a kind of device, and returns the kernel under it. On a device, the kernel may contain
   * several schedules, among which each run selects.
   * @throws SptError `choose/…`, `bind/…`
   */
  async choose(
    on: SelectionContext,
    inputs: Inputs,
    options: SelectionOptions & Pick<BuildOptions, 'deterministic'> = {},
  ): Promise<Variant> {
    const { open } = this
    if (!open)
      return failWith('choose/decided', `the schedule of ${this.name} has no open decisions`, {
        expected:
          this.dispatches.length > 0 ? `schedule('${this.dispatches[0]}')` : 'a kernel with a dispatch',
        hint: 'call build(device)',
      })
    kindOf(on)
    const { deterministic = false, ...others } = options
    const given = namedInputs('choose', inputs, others, ['resident', ...WORK_OPTIONS])
    const work = new Work(options)
    work.begin('select', `${this.name}.${open.text}`)
    const selector = new Selector(new KernelFamily(on as Device, { ...open, deterministic }), given)
    const fetching = selector.fetch()
    if (fetching) await work.wait(fetching)
    const isDevice = typeof on !== 'string' && 'compile' in on
    const { schedule, selection } = (isDevice && selector.onDevice()) || selector.select()
    return { kernel: schedule as Kernel, selection: selection! }
  }

  /**
   * The schedule of the auto-scheduler for a kernel without steps on loops: register accumulators on the CPU; elements, lanes or
   * work partitions over threads on GPUs. Returns the kernel itself if all candidates are rejected.
   * @param sizes - Sizes by name; the schedule may require them or their divisors
   * @param tensors - Data on which the cost model compares the candidates; default: the heuristic choice
   */
  autoSchedule(
    device: SketchDevice | Device,
    sizes?: Readonly<Record<string, number>>,
    tensors?: RunInputs['tensors'],
  ): Kernel {
    return this.#forms(device, sizes, tensors, 1)[0]?.kernel ?? this
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
      // Lists, sets and parts of formats do not affect the loop partition; unknown names are rejected.
      const used = this.formatInputs()
      const taken = formatInputsFor(this.compilation.kernel, tensors, used)
      const declared = declaredOf(this.source, taken, used)
      const values = valuesIn(this.source, { tensors: declared, ...(sizes && { params: sizes }) })
      return fastestCandidates<Kernel>(this, device, values)
    }
    checkSizes(this.source, sizes)
    return free ? scheduleCandidates<Kernel>(this, kind, sizes, most) : []
  }

  /**
   * Compiles for a device. If a dispatch is open, or no step was applied and the program has a dispatch `auto`, each binding
   * selects the schedule. A kernel without steps on loops runs under the auto-scheduler: on GPUs, the candidate is selected when data are
   * bound, and resident data run as `parallel()`. Steps that bind no threads run as `parallel()` on GPUs.
   * @throws SptError `device/compile`, `device/no-instruction`, `emit/…`, `plan/…`
   */
  async build(device: Device, options: BuildOptions = {}): Promise<Built> {
    checkDevice(device)
    return buildKernel(this, this.open, device, options)
  }

  /** Default dispatch of a kernel without steps. */
  get #usual(): Choice | undefined {
    const { coordSteps, onLoops } = super.compilation
    return coordSteps.length === 0 && !onLoops ? this.surroundings.choices.get('auto') : undefined
  }

  /** @internal The kernel with another dispatch, whose conditions need no parameters. */
  dispatching(choice: Choice): Kernel {
    return new Kernel(super.compilation, this.surroundings, dispatchCall(choice, []))
  }

  /** @internal The open dispatch; `null` if the schedule is decided. */
  get open(): OpenDispatch | null {
    const usual = this.#choice ? undefined : this.#usual
    const call = usual ? dispatchCall(usual, []) : this.#choice
    return (
      call && {
        kind: 'dispatch',
        ...call,
        source: this.source,
        base: usual ? this : new Kernel(super.compilation, this.surroundings),
        used: formatInputsOfChoice(call.choice),
        isDefault: usual !== undefined,
      }
    )
  }

  /** @internal A kernel with the steps of a compilation. */
  compiledAs(c: Compilation): Kernel {
    return this.with(c)
  }

  #schedule(name: string): Schedule {
    const choice = this.surroundings.choices.get(name)
    if (choice) stillOpen(choice)
    const all = [...this.schedules, ...this.dispatches]
    return (
      this.surroundings.schedules.get(name) ??
      failWith('api/unknown-schedule', `kernel ${this.name} has no schedule ${nameText(name)}`, {
        lookup: { name: nameText(name), candidates: all },
        expected: all.length > 0 ? `one of ${all.join(', ')}` : 'a kernel with schedules',
        hint: /^\w+\(/.test(nameText(name))
          ? `pass arguments after the name: schedule('${nameText(name).replace(/\(.*/s, '')}', 1)`
          : `leave it out to let the compiler select one, or declare \`schedule ${this.name}.NAME { … }\``,
      })
    )
  }

  protected with(c: Compilation): Kernel {
    return new Kernel(c, this.surroundings)
  }
}

function stillOpen({ kernel, name, branches }: Choice): never {
  return failWith('choose/open', `${kernel}.${name} is chosen when data are bound, and has no steps before`, {
    expected: 'build(device), or choose(device, inputs)',
    hint: `name a schedule of the kernel: ${[...new Set(branches.flatMap((b) => b.calls.map((c) => c.schedule.name)))].join(', ')}`,
  })
}

/** Throws SptError `api/argument` unless the argument is a kernel. */
export function expectKernel(kernel: unknown): Kernel {
  expectArgument(kernel instanceof Kernel, 'the kernel', kernel, "a kernel: program.kernel('name')")
  return kernel as Kernel
}
