/**
 * The state of a schedule, with its history (undo). A schedule as a value: the kernel as it is now, the steps that made
 * it, and what became of loops that steps replaced. States are immutable; a trace replays on any kernel with the same
 * names, and travels as JSON.
 */
import { freeze } from 'immer'
import { orRefused, SptError } from '../ast/diagnostic.ts'
import { int } from '../ir/expr.ts'
import { substitute } from '../ir/expr-tree.ts'
import { replacedAt } from '../ir/lists.ts'
import type { Buffer, Fact, For, Kernel2, Stmt } from '../ir/loops.ts'
import { type Consumed, Context, type NameQuery } from './context.ts'
import { distributeConditions } from './distribute-conditions.ts'
import { checkNewNames } from './fresh-names.ts'
import { KernelNames } from './kernel-names.ts'
import { loopNames } from './loop-names.ts'
import type { LoopHandle, LoopRef } from './loop-ref.ts'
import { actsIn, keep, recalled } from './nest-memo.ts'
import { checkParallel } from './parallel-legality.ts'
import type { Gone, Outcome, Primitive } from './primitive.ts'
import { LOOP_STEPS } from './primitives.ts'
import { checkStep } from './step-data.ts'
import { type LoopStep, printStep } from './steps.ts'

export interface ScheduleState {
  readonly kernel: Kernel2
  /** The steps applied, in order. */
  readonly trace: readonly LoopStep[]
  /** How many they are. */
  readonly steps: number
  /** Steps on coordinates before them, which messages count too. */
  readonly coordSteps: number
  /** Loops that no longer exist, in the order they went. */
  readonly consumed: readonly Consumed[]
  /** What this state came from by its latest step; the two share all that the step left alone. */
  readonly before: ScheduleState | null
  /** Common to all states of a schedule. */
  readonly names: KernelNames
}

export const start = (kernel: Kernel2, coordSteps = 0): ScheduleState =>
  Object.freeze({
    kernel,
    trace: [],
    steps: 0,
    coordSteps,
    consumed: [],
    before: null,
    names: new KernelNames(),
  })

/** What a step makes of a state. Each has its own step alone: the traces of all would be quadratic in the steps. */
class Stepped implements ScheduleState {
  readonly kernel: Kernel2
  readonly step: LoopStep
  readonly steps: number
  readonly coordSteps: number
  readonly consumed: readonly Consumed[]
  readonly before: ScheduleState
  readonly names: KernelNames

  constructor(before: ScheduleState, step: LoopStep, kernel: Kernel2, gone: readonly Consumed[]) {
    this.kernel = kernel
    this.step = freeze(step, true)
    this.steps = before.steps + 1
    this.coordSteps = before.coordSteps
    this.consumed = gone.length > 0 ? Object.freeze([...before.consumed, ...gone]) : before.consumed
    this.before = before
    this.names = before.names
    Object.freeze(this)
  }

  get trace(): readonly LoopStep[] {
    const out: LoopStep[] = []
    for (let s: ScheduleState = this; s instanceof Stepped; s = s.before) out.push(s.step)
    return Object.freeze(out.reverse())
  }
}

/** The state after one more step. Throws `SptError` (`schedule/…`) where the step is not legal. */
export function apply(state: ScheduleState, step: LoopStep): ScheduleState {
  checkStep(step, LOOP_STEPS)
  const number = state.coordSteps + state.steps + 1
  const cx = new Context(state.kernel, state.consumed, step.span, state.names)
  try {
    checkNewNames(step)
    const { kernel, gone } = inNest(cx, step) ?? inKernel(cx, step)
    return new Stepped(
      state,
      step,
      kernel,
      gone.map((g) => Object.freeze({ ...g, step: number })),
    )
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    throw new SptError(
      e.diagnostics.map((d) => ({
        ...d,
        message: `${d.message} (step ${number}: ${printStep(step, namesFor(state.kernel))})`,
      })),
    )
  }
}

/** What the loops of a kernel are called, by their variables. */
function namesFor(kernel: Kernel2): (variable: string) => string {
  let names: ReadonlyMap<string, string> | undefined
  return (variable) => {
    names ??= loopNames(kernel.body)
    return names.get(variable) ?? variable
  }
}

/** The steps applied, as the language writes them. */
export function printTrace(state: ScheduleState): readonly string[] {
  const out: string[] = []
  for (let s = state; s instanceof Stepped; s = s.before)
    out.push(printStep(s.step, namesFor(s.before.kernel)))
  return out.reverse()
}

/** What a step makes of a kernel. */
interface Made {
  readonly kernel: Kernel2
  readonly gone: readonly Gone[]
}

const primitiveOf = (step: LoopStep): Primitive<LoopStep> => LOOP_STEPS[step.kind] as Primitive<LoopStep>

function inKernel(cx: Context, step: LoopStep): Made {
  const outcome = primitiveOf(step).apply(cx, step)
  const kernel = nextKernel(cx.kernel, outcome)
  checkParallel(cx, kernel, outcome.unrolls)
  return { kernel, gone: outcome.gone ?? [] }
}

/** The same by the nest that the step acts in. `null`: it acts in none alone, or is refused, which shows the whole kernel. */
function inNest(cx: Context, step: LoopStep): Made | null {
  const acts = actsIn(cx, primitiveOf(step), step)
  if (!acts) return null
  const before = recalled(cx, acts)
  if (before) return { kernel: withNests(cx.kernel, acts.at, before.body), gone: before.gone }
  const queries: NameQuery[] = []
  const alone = cx.alone(acts.at, queries)
  const made = orRefused(() => inKernel(alone, step))
  if (made instanceof SptError) return null
  const { body } = made.kernel
  keep(cx, acts, { body, gone: made.gone }, queries)
  return { kernel: withNests(cx.kernel, acts.at, body), gone: made.gone }
}

function withNests(kernel: Kernel2, at: number, nests: readonly Stmt[]): Kernel2 {
  const isSame = nests.length === 1 && nests[0] === kernel.body[at]
  return isSame ? kernel : Object.freeze({ ...kernel, body: replacedAt(kernel.body, at, nests) })
}

/** What stays the same is the same list, by which others know that they have seen it. */
const nextKernel = (kernel: Kernel2, outcome: Outcome): Kernel2 =>
  Object.freeze({
    ...kernel,
    body: distributeConditions(outcome.body),
    buffers: sized(buffersAfter(kernel.buffers, outcome), outcome.facts),
    ...(outcome.facts ? { facts: [...(kernel.facts ?? []), ...outcome.facts] } : {}),
    ...(outcome.apart ? { disjointWrites: [...(kernel.disjointWrites ?? []), ...outcome.apart] } : {}),
  })

const buffersAfter = (
  before: readonly Buffer[],
  { buffers = [], unused = [] }: Outcome,
): readonly Buffer[] =>
  buffers.length === 0 && unused.length === 0
    ? before
    : [...before, ...buffers].filter((b) => !unused.includes(b.name))

/** Shapes over sizes that are constants from now on. */
function sized(buffers: readonly Buffer[], facts: readonly Fact[] = []): readonly Buffer[] {
  const map = new Map(facts.flatMap((f) => (f.relation === 'equal' ? [[f.size, int(f.by)] as const] : [])))
  return map.size === 0
    ? buffers
    : buffers.map((b) => Object.freeze({ ...b, shape: b.shape.map((e) => substitute(e, map)) }))
}

/** The state before the latest step; the same state where there is none. */
export const undo = (state: ScheduleState): ScheduleState => state.before ?? state

/** All steps of a trace, in order. */
export const replay = (kernel: Kernel2, trace: readonly LoopStep[]): ScheduleState =>
  trace.reduce(apply, start(kernel))

/** The loop that a user's name means. @throws SptError as steps on it */
export const namedLoop = (state: ScheduleState, name: string): For =>
  new Context(state.kernel, state.consumed, undefined, state.names).loop(name).loop

/** A handle on a loop, which stays good through later steps as long as the loop exists. */
export const handle = (state: ScheduleState, name: string): LoopHandle =>
  Object.freeze({ var: namedLoop(state, name).var })

/** What a loop is called now, as steps take it. @throws SptError as steps on a loop that there is none of */
export function loopName(state: ScheduleState, loop: LoopRef): string {
  const cx = new Context(state.kernel, state.consumed, undefined, state.names)
  return loopNames(state.kernel.body).get(cx.loop(loop).loop.var)!
}
