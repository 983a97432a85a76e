/** Kernels and schedules as values: every call gives a new kernel and leaves the old one as it was. */
import { fail } from '../ast/diagnostic.ts'
import type { ModuleText } from '../backends/module.ts'
import { Compilation } from '../compile.ts'
import { compileOn, lanesOf } from '../execute.ts'
import type { Choice, Schedule } from '../ir/elaborate/index.ts'
import type { ThreadAxis } from '../ir/expr.ts'
import type { AnyFormat } from '../ir/format.ts'
import type { Instr, Memory } from '../ir/instr.ts'
import { print1 } from '../ir/print1.ts'
import { print2 } from '../ir/print2.ts'
import { print3 } from '../ir/print3.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import type { Sources } from '../places.ts'
import type { Device } from '../runtime/device.ts'
import { partsOf } from '../schedule/parts.ts'
import { mergeParts, type Step, stepsOf } from '../schedule/resolve.ts'
import { handle } from '../schedule/state.ts'
import type { CacheScope, CopyLayout, LoopRef, LoopStep } from '../schedule/steps.ts'
import { expectArgument, isRecord } from './check.ts'
import {
  answer,
  type ChoiceInputs,
  type ChosenFor,
  type OpenChoice,
  question,
  type Variant,
} from './choose.ts'
import { type CompiledKernel, CompiledSchedule } from './compiled.ts'
import { CompiledChoice } from './compiled-choice.ts'
import { type Declarations, instrOf, placeOf } from './declared.ts'
import { chooseFormat } from './format.ts'
import { Part } from './part.ts'
import { printedSteps, type TraceStep, traceOf } from './trace.ts'

export type { TraceStep } from './trace.ts'

/** What a kernel can name: formats, schedules, memories and instructions of its program. */
export interface Surroundings extends Declarations {
  readonly formats: ReadonlyMap<string, AnyFormat>
  readonly schedules: ReadonlyMap<string, Schedule>
  /** Schedules that are decided when data are bound. */
  readonly choices: ReadonlyMap<string, Choice>
  /** Texts by name, for the lines of its kernels. */
  readonly sources: Sources
}

type Factor = number

export class Kernel {
  readonly #compilation: Compilation
  readonly #around: Surroundings
  /** Decides the rest of its schedule when data are bound. */
  readonly #choice: Choice | null

  constructor(compilation: Compilation, around: Surroundings, choice: Choice | null = null) {
    this.#compilation = compilation
    this.#around = around
    this.#choice = choice
  }

  get #c(): Compilation {
    if (this.#choice) stillOpen(this.#choice)
    return this.#compilation
  }

  static of(kernel: Kernel1, around: Surroundings): Kernel {
    return new Kernel(Compilation.of(kernel), around)
  }

  get name(): string {
    return this.#compilation.source.name
  }

  /** The compilation behind it: stages, plan, texts. */
  get compilation(): Compilation {
    return this.#c
  }

  /** Names of the schedules that the program has for it. */
  get schedules(): readonly string[] {
    return [...this.#around.schedules.keys()]
  }

  /** Names of its schedules that are chosen when data are bound. */
  get choices(): readonly string[] {
    return [...this.#around.choices.keys()]
  }

  /** The choice that is still open: of its schedule, or the one called `auto` of a kernel without one. */
  get choice(): string | null {
    return this.#opened()?.choice.name ?? null
  }

  /** The parameters of a schedule of the program, in order; those without a default need an argument. */
  parameters(schedule: string): readonly { readonly name: string; readonly required: boolean }[] {
    return this.#schedule(schedule).params.map((p) => ({ name: p.name, required: p.default === null }))
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
    if (!choice) return this.apply(this.steps(name, ...args))
    if (args.length > 0)
      fail({
        code: 'schedule/arguments',
        message: `schedule ${name} is chosen when data are bound, and takes no arguments`,
        expected: name,
        hint: 'name one of the schedules that it chooses from',
      })
    return new Kernel(this.#c, this.#around, choice)
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
    const asked = question(open, inputs)
    await asked.statistics.download(open.choice.statistics.values())
    return answer(asked, on)
  }

  apply(steps: readonly Step[]): Kernel {
    expectArgument(
      Array.isArray(steps) &&
        steps.every((s) => isRecord(s) && (s.stage === 1 || s.stage === 2 || s.stage === 'parts')),
      'what is applied',
      steps,
      'a list of steps, as steps() gives them',
    )
    return this.#with(steps.reduce((c, s) => c.step(s), this.#c))
  }

  /**
   * Stores `buffer` (and what shares its structure) in a format: by name (`as('A', 'blocks', 16)`), as a schedule
   * writes it (`as('A', 'blocks(16) where (density(16) >= 0.5) + rows')`), or one of another program's. Arguments are
   * numbers, and names of lists and sets among the data.
   *
   * @throws SptError `api/unknown-format`, `parse/…`, `check/…`
   */
  as(buffer: string, format: string | AnyFormat, ...args: readonly (number | string)[]): Kernel {
    const chosen = chooseFormat(format, args, this.#around.formats)
    return this.#with(this.#c.onCoords({ kind: 'as', buffer, ...chosen }))
  }

  /** Stage I until the first step on loops, Stage II after it. */
  reorder(...loops: LoopRef[]): Kernel {
    if (this.#c.onLoops) return this.#loop({ kind: 'reorder', loops })
    return this.#with(this.#c.onCoords({ kind: 'reorder', loops: names(loops) }))
  }

  fuse(loops: readonly LoopRef[], into?: string): Kernel {
    const named = into === undefined ? {} : { into }
    if (this.#c.onLoops) return this.#loop({ kind: 'fuse', loops, ...named })
    return this.#with(this.#c.onCoords({ kind: 'fuse', loops: names(loops), ...named }))
  }

  attach(loop: string, to: string): Kernel {
    return this.#with(this.#c.onCoords({ kind: 'attach', loop, to }))
  }

  split(loop: LoopRef, by: Factor, into?: readonly [string, string]): Kernel {
    return this.#loop({ kind: 'split', loop, by, ...(into ? { into } : {}) })
  }

  tile(loops: readonly LoopRef[], by: readonly Factor[], into?: readonly string[]): Kernel {
    return this.#loop({ kind: 'tile', loops, by, ...(into ? { into } : {}) })
  }

  /** `bind({ io: 'block.x', ii: 'thread.x' })`, or pairs where loops are handles. */
  bind(loops: Readonly<Record<string, ThreadAxis>> | readonly (readonly [LoopRef, ThreadAxis])[]): Kernel {
    const pairs: readonly (readonly [LoopRef, ThreadAxis])[] = Array.isArray(loops)
      ? loops
      : isRecord(loops)
        ? Object.entries(loops as Record<string, ThreadAxis>)
        : []
    expectArgument(
      pairs.length > 0 && pairs.every((p) => Array.isArray(p)),
      'what is bound',
      loops,
      "loops with thread axes: { io: 'block.x', ii: 'thread.x' }",
    )
    return this.#loop({ kind: 'bind', bindings: pairs.map(([loop, to]) => ({ loop, to })) })
  }

  /** `{ predicated: true }`: the last round runs whole, and changes nothing beyond the end. */
  unroll(loop: LoopRef, by?: Factor, options: { readonly predicated?: boolean } = {}): Kernel {
    const predicated = options.predicated ? { predicated: true } : {}
    return this.#loop({ kind: 'unroll', loop, ...(by === undefined ? {} : { by }), ...predicated })
  }

  vectorize(loop: LoopRef): Kernel {
    return this.#loop({ kind: 'vectorize', loop })
  }

  /** `require('d', { multiple: 4 })` or `require('d', { equal: 128 })`: later steps and lowering rely on it. */
  require(size: string, what: { readonly multiple: number } | { readonly equal: number }): Kernel {
    const relation = 'equal' in what ? 'equal' : 'multiple'
    return this.#loop({ kind: 'require', size, relation, by: 'equal' in what ? what.equal : what.multiple })
  }

  /** `place`: `shared`, `register`, or a declared memory, by name or as another program has it. */
  cache_read(
    buffer: string,
    at: LoopRef,
    place: CacheScope | string | Memory,
    into?: string,
    layout: CopyLayout = {},
  ): Kernel {
    const name = into === undefined ? {} : { into }
    return this.#loop({ kind: 'cache_read', buffer, at, ...placeOf(place, this.#around), ...layout, ...name })
  }

  /** What neighbouring iterations of a loop combine into one element of the buffer is combined in registers. */
  accumulate(
    buffer: string,
    over: LoopRef,
    by?: Factor,
    more: { readonly within?: LoopRef; readonly into?: string } = {},
  ): Kernel {
    return this.#loop({
      kind: 'accumulate',
      buffer,
      loop: over,
      ...(by === undefined ? {} : { by }),
      ...more,
    })
  }

  /** Copies into shared memory are made `by - 1` iterations before they are used. */
  pipeline(loop: LoopRef, by: Factor): Kernel {
    return this.#loop({ kind: 'pipeline', loop, by })
  }

  cache_write(buffer: string, at: LoopRef, place: CacheScope | string | Memory, into?: string): Kernel {
    const name = into === undefined ? {} : { into }
    return this.#loop({ kind: 'cache_write', buffer, at, ...placeOf(place, this.#around), ...name })
  }

  /** The nest of a loop is done by a declared instruction, by name or as another program has it. */
  tensorize(loop: LoopRef, instr: string | Instr): Kernel {
    return this.#loop({ kind: 'tensorize', loop, instr: instrOf(instr, this.#around) })
  }

  compute_at(nest: string, at: LoopRef): Kernel {
    return this.#loop({ kind: 'compute_at', nest, at })
  }

  fission(loop: LoopRef, after: string | number): Kernel {
    return this.#loop({ kind: 'fission', loop, after })
  }

  rfactor(loop: LoopRef, into?: string): Kernel {
    return this.#loop({ kind: 'rfactor', loop, ...(into === undefined ? {} : { into }) })
  }

  atomic(buffer: string): Kernel {
    return this.#loop({ kind: 'atomic', buffer })
  }

  /** Partial results instead of atomics, added in a fixed order. */
  combine(buffer: string): Kernel {
    return this.#loop({ kind: 'combine', buffer })
  }

  /** Nests on blocks in one launch. */
  merge(...nests: string[]): Kernel {
    return this.#loop({ kind: 'merge', nests })
  }

  /** `merge parts of A`: one launch for each iteration over the parts. */
  mergeParts(buffer: string): Kernel {
    const { kernel, loops } = this.#c
    return this.apply(mergeParts({ buffer: { name: buffer } }, { kernel, loops }))
  }

  /**
   * The parts that a step stored a tensor in, by the tensor's name.
   * @throws SptError `schedule/no-parts`
   */
  parts(buffer: string): readonly Part[] {
    expectArgument(typeof buffer === 'string', 'the name of a buffer', buffer, 'a string')
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
    return this.#with(this.#c.parallel())
  }

  /** Without the latest step. */
  undo(): Kernel {
    return this.#with(this.#c.undo())
  }

  /** A loop by name, good through later steps that rename or nest it. */
  loop(name: string): LoopRef {
    expectArgument(typeof name === 'string', 'the name of a loop', name, 'a string')
    return handle(this.#c.state, name)
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
    expectArgument(
      Array.isArray(trace) && trace.every(isRecord),
      'a trace',
      trace,
      'a list of steps, as toJSON gives it',
    )
    return trace.reduce<Kernel>((k, s) => {
      expectArgument(
        s.kind === 'as' || s.kind === 'coords' || s.kind === 'loops',
        'the kind of a step in a trace',
        s.kind,
        'as, coords or loops',
      )
      if (s.kind === 'as') return k.as(s.buffer, s.format, ...(Array.isArray(s.args) ? s.args : []))
      return k.#with(s.kind === 'coords' ? k.#c.onCoords(s.step as never) : k.#c.onLoop(s.step))
    }, this)
  }

  /** The kernel as it is now, at a stage: 1 coordinates, 2 positions, 3 memory. */
  show(stage: 1 | 2 | 3): string {
    expectArgument([1, 2, 3].includes(stage), 'the stage', stage, '1, 2 or 3')
    return stage === 1 ? print1(this.#c.kernel) : stage === 2 ? print2(this.#c.loops) : print3(this.#c.plan)
  }

  /** The texts of its launches for a target. */
  emit(target: ModuleText['target']): readonly ModuleText[] {
    expectArgument(['js', 'wgsl', 'cuda'].includes(target), 'the target', target, 'js, wgsl or cuda')
    return this.#c.texts(target)
  }

  /**
   * Compiles for a device. On devices with threads a kernel that binds none runs as `parallel()` does. Where a choice is
   * open, or no step has been applied and the program has a choice called `auto`, each binding chooses the schedule.
   */
  async compile(device: Device): Promise<CompiledKernel> {
    checkDevice(device)
    const open = this.#opened()
    return open ? new CompiledChoice(open, device) : this.compileAsIs(device)
  }

  /** Compiles under the steps that it has, and no others. */
  async compileAsIs(device: Device): Promise<CompiledSchedule> {
    checkDevice(device)
    const k = device.kind === 'cpu' ? this : this.parallel()
    return new CompiledSchedule(
      k.#c,
      await compileOn(device, k.#c.planFor(lanesOf(device)), this.#around.sources),
    )
  }

  #opened(): OpenChoice | null {
    const { coordSteps, onLoops } = this.#compilation
    if (this.#choice) return { choice: this.#choice, base: new Kernel(this.#compilation, this.#around) }
    const usual = coordSteps.length === 0 && !onLoops ? this.#around.choices.get('auto') : undefined
    return usual ? { choice: usual, base: this } : null
  }

  #schedule(name: string): Schedule {
    const choice = this.#around.choices.get(name)
    if (choice) stillOpen(choice)
    return (
      this.#around.schedules.get(name) ??
      fail({
        code: 'api/unknown-schedule',
        message: `kernel ${this.name} has no schedule ${name}`,
        lookup: { name, candidates: [...this.schedules, ...this.choices] },
        expected:
          this.schedules.length > 0 ? `one of ${this.schedules.join(', ')}` : 'a kernel with schedules',
        hint: 'declare it in the program, or apply steps',
      })
    )
  }

  #loop(step: LoopStep): Kernel {
    return this.#with(this.#c.onLoop(step))
  }

  #with(c: Compilation): Kernel {
    return c === this.#c ? this : new Kernel(c, this.#around)
  }
}

/** Iterators of Stage I have names only; what else is given is refused with the step. */
function names(loops: readonly LoopRef[]): string[] {
  expectArgument(Array.isArray(loops), 'what is to be fused', loops, "a list of loops: ['i', 'j']")
  return loops.map((l) => (isRecord(l) ? (l as { var: string }).var : (l as string)))
}

function checkDevice(device: Device): void {
  expectArgument(
    isRecord(device) && typeof device.compile === 'function' && isRecord(device.limits),
    'the device',
    device,
    'a device: await devices.cpu(), devices.webgpu() or devices.cuda()',
  )
}

function stillOpen({ kernel, name, branches }: Choice): never {
  return fail({
    code: 'choose/open',
    message: `${kernel}.${name} is chosen when data are bound, and has no steps before`,
    expected: 'compile(device), or choose(device, inputs)',
    hint: `name one of its schedules: ${[...new Set(branches.map((b) => b.schedule.name))].join(', ')}`,
  })
}
