/**
 * The state of a schedule, with its history (undo). A schedule is a value: the current kernel, the steps that led to
 * it, and the loops that steps replaced. States are immutable. A trace can be replayed on any kernel with the same
 * names, and converted to JSON.
 *
 * immer provides `freeze` only: a step comes from a caller as nested plain data, and is frozen deeply. Drafts and patches have no
 * use here: kernels are built by constructors, undo returns the previous state, and the trace is the difference of two schedules.
 */
import { freeze } from 'immer'
import type { Diagnostic } from '../../ast/diagnostics/diagnostic.ts'
import { withDiagnostics } from '../../ast/diagnostics/with-diagnostics.ts'
import { int } from '../../ir/expressions/expr.ts'
import { substitute } from '../../ir/expressions/expr-tree.ts'
import { findLoop } from '../../ir/statements/definitions.ts'
import type { Buffer, Fact, For, Kernel2 } from '../../ir/statements/loops.ts'
import { distributeConditions } from '../legality/loop-dependence.ts'
import { checkParallel } from '../legality/parallel-legality.ts'
import { checkEdges } from '../legality/rounds-edges.ts'
import type { LoopHandle, LoopRef } from '../names/kernel-names.ts'
import { checkNewNames, KernelNames, loopNames } from '../names/kernel-names.ts'
import type { Gone, Outcome, Primitive } from '../primitive.ts'
import { LOOP_STEPS } from '../primitives.ts'
import { checkStep, type LoopStep, printStep } from '../steps/step-data.ts'
import { type Consumed, Context } from './context.ts'

export interface ScheduleState {
  readonly kernel: Kernel2
  /** The applied steps, in order. */
  readonly trace: readonly LoopStep[]
  /** The number of applied steps. */
  readonly steps: number
  /** The number of steps on coordinates before the steps of the trace, which messages count as well. */
  readonly coordSteps: number
  /** Loops that steps replaced, in order. */
  readonly consumed: readonly Consumed[]
  /** The previous state, which shares all unchanged data; null for the initial state. */
  readonly before: ScheduleState | null
  /** The index of names, shared by all states of a schedule. */
  readonly names: KernelNames
}

export const start = (kernel: Kernel2, coordSteps = 0, names = new KernelNames()): ScheduleState =>
  Object.freeze({
    kernel,
    trace: [],
    steps: 0,
    coordSteps,
    consumed: [],
    before: null,
    names,
  })

type StepResult = Pick<ScheduleState, 'kernel' | 'consumed'>

/**
 * The state after a step. Each state stores its own step only: complete traces in all states would be quadratic in the
 * steps.
 */
class Stepped implements ScheduleState {
  readonly step: LoopStep
  readonly steps: number
  readonly coordSteps: number
  readonly names: KernelNames
  #result: StepResult | undefined

  /** @param result - `undefined`: the result of the step is computed on first use */
  constructor(
    readonly before: ScheduleState,
    step: LoopStep,
    result?: StepResult,
  ) {
    this.step = freeze(step, true)
    this.steps = before.steps + 1
    this.coordSteps = before.coordSteps
    this.names = before.names
    this.#result = result
    Object.freeze(this)
  }

  get result(): StepResult {
    this.#result ??= resultOf(this.before, this.step)
    return this.#result
  }

  get kernel(): Kernel2 {
    return this.result.kernel
  }

  get consumed(): readonly Consumed[] {
    return this.result.consumed
  }

  get trace(): readonly LoopStep[] {
    const out: LoopStep[] = []
    for (let s: ScheduleState = this; s instanceof Stepped; s = s.before) out.push(s.step)
    return Object.freeze(out.reverse())
  }
}

/** Returns the state after one more step. Throws `SptError` (`schedule/…`) if the step is illegal. */
export function apply(state: ScheduleState, step: LoopStep): ScheduleState {
  checkStep(step, LOOP_STEPS)
  return new Stepped(state, step, resultOf(state, step))
}

/**
 * Returns the state after steps whose result is known. The states between the steps are computed on first use.
 */
export const applyKnown = (
  state: ScheduleState,
  steps: readonly LoopStep[],
  result: StepResult,
): ScheduleState =>
  steps.reduce(
    (before, step, k) => new Stepped(before, step, k === steps.length - 1 ? result : undefined),
    state,
  )

function resultOf(state: ScheduleState, step: LoopStep): StepResult {
  const number = state.coordSteps + state.steps + 1
  const cx = new Context(state.kernel, state.consumed, step.span, state.names)
  const numbered = (d: Diagnostic): Diagnostic => ({
    ...d,
    message: `${d.message} (step ${number}: ${printStep(step, namesFor(state))})`,
  })
  return withDiagnostics(numbered, () => {
    checkNewNames(step)
    const { kernel, gone } = inKernel(cx, step)
    const replaced = gone.map((g) => Object.freeze({ ...g, step: number }))
    const consumed = gone.length > 0 ? Object.freeze([...state.consumed, ...replaced]) : state.consumed
    return { kernel, consumed }
  })
}

/** Returns the current name of a loop by its variable; `nest.name` if several loops have the name. */
const namesFor =
  ({ kernel, consumed, names }: ScheduleState) =>
  (variable: string): string => {
    const loop = findLoop(kernel.body, variable)?.loop
    if (!loop) return variable
    const isShared = names.follow(kernel, consumed).isShared(loop.name)
    return isShared ? `${loop.nest}.${loop.name}` : loop.name
  }

/** Returns the applied steps as `.spt` text. */
export function printTrace(state: ScheduleState): readonly string[] {
  const out: string[] = []
  for (let s = state; s instanceof Stepped; s = s.before) out.push(printStep(s.step, namesFor(s.before)))
  return out.reverse()
}

interface Made {
  readonly kernel: Kernel2
  readonly gone: readonly Gone[]
}

const primitiveOf = (step: LoopStep): Primitive<LoopStep> => LOOP_STEPS[step.kind] as Primitive<LoopStep>

function inKernel(cx: Context, step: LoopStep): Made {
  const outcome = primitiveOf(step).apply(cx, step)
  const kernel = nextKernel(cx.kernel, outcome)
  checkParallel(cx, kernel, outcome.unrolls)
  checkEdges(cx, kernel)
  return { kernel, gone: outcome.gone ?? [] }
}

/** Returns the next kernel. Unchanged lists stay the same objects, by which caches recognise them. */
const nextKernel = (kernel: Kernel2, outcome: Outcome): Kernel2 =>
  Object.freeze({
    ...kernel,
    body: distributeConditions(outcome.body),
    buffers: sized(buffersAfter(kernel.buffers, outcome), outcome.facts),
    ...(outcome.facts && { facts: [...(kernel.facts ?? []), ...outcome.facts] }),
    ...(outcome.apart && { disjointWrites: [...(kernel.disjointWrites ?? []), ...outcome.apart] }),
  })

const buffersAfter = (
  before: readonly Buffer[],
  { buffers = [], unused = [] }: Outcome,
): readonly Buffer[] =>
  buffers.length === 0 && unused.length === 0
    ? before
    : [...before, ...buffers].filter((b) => !unused.includes(b.name))

function sized(buffers: readonly Buffer[], facts: readonly Fact[] = []): readonly Buffer[] {
  const map = new Map(facts.flatMap((f) => (f.relation === 'equal' ? [[f.size, int(f.by)] as const] : [])))
  return map.size === 0
    ? buffers
    : buffers.map((b) => Object.freeze({ ...b, shape: b.shape.map((e) => substitute(e, map)) }))
}

/** Returns the state before the latest step; the same state if no step was applied. */
export const undo = (state: ScheduleState): ScheduleState => state.before ?? state

/** Returns the state after all steps of a trace, in order. */
export const replay = (kernel: Kernel2, trace: readonly LoopStep[]): ScheduleState =>
  trace.reduce(apply, start(kernel))

/** Returns the loop of a user's name. @throws SptError as steps on this loop do */
export const namedLoop = (state: ScheduleState, name: string): For =>
  new Context(state.kernel, state.consumed, undefined, state.names).loop(name).loop

/** Returns a handle to a loop, which stays valid through later steps as long as the loop exists. */
export const handle = (state: ScheduleState, name: string): LoopHandle =>
  Object.freeze({ var: namedLoop(state, name).var })

/** Returns the current name of a loop, as steps take it. @throws SptError as steps on this loop do */
export function loopName(state: ScheduleState, loop: LoopRef): string {
  const cx = new Context(state.kernel, state.consumed, undefined, state.names)
  return loopNames(state.kernel.body).get(cx.loop(loop).loop.var)!
}
