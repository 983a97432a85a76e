/**
 * A schedule as a value: the kernel as it is now, the steps that made it, and what became of loops that steps
 * replaced. States are immutable; a trace replays on any kernel with the same names, and travels as JSON.
 */
import { applyPatches, castDraft, enablePatches, type Patch, produceWithPatches } from 'immer'
import { fail, SptError } from '../ast/diagnostic.ts'
import type { Kernel2 } from '../ir/loops.ts'
import { loopsOf } from '../ir/tree.ts'
import { type Consumed, Context } from './context.ts'
import { checkParallel } from './parallel.ts'
import type { Outcome, Primitive } from './primitive.ts'
import { PRIMITIVES } from './primitives.ts'
import { type LoopRef, type LoopStep, printStep } from './steps.ts'

enablePatches()

interface Now {
  readonly kernel: Kernel2
  /** The steps applied, in order. */
  readonly trace: readonly LoopStep[]
  /** Loops that no longer exist, in the order they went. */
  readonly consumed: readonly Consumed[]
}

export interface ScheduleState extends Now {
  /** What takes back each step, latest last. */
  readonly inverse: readonly (readonly Patch[])[]
}

export const start = (kernel: Kernel2): ScheduleState =>
  Object.freeze({ kernel, trace: [], consumed: [], inverse: [] })

/** The state after one more step. Throws `SptError` (`schedule/…`) where the step is not legal. */
export function apply(state: ScheduleState, step: LoopStep): ScheduleState {
  const number = state.trace.length + 1
  const cx = new Context(state.kernel, state.consumed, step.span)
  try {
    const outcome = run(cx, step)
    const kernel = nextKernel(state.kernel, outcome)
    checkParallel(cx, kernel)
    const now: Now = { kernel: state.kernel, trace: state.trace, consumed: state.consumed }
    const [next, , inverse] = produceWithPatches(now, (draft) => {
      draft.kernel = castDraft(kernel)
      draft.trace.push(castDraft(step))
      for (const g of outcome.gone ?? []) draft.consumed.push(castDraft({ ...g, step: number }))
    })
    return Object.freeze({ ...next, inverse: [...state.inverse, inverse] })
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    throw new SptError(
      e.diagnostics.map((d) => ({ ...d, message: `${d.message} (step ${number}: ${printStep(step)})` })),
    )
  }
}

function run<S extends LoopStep>(cx: Context, step: S): Outcome {
  const primitive = (PRIMITIVES as Readonly<Record<string, unknown>>)[step.kind] as Primitive<S> | undefined
  if (!primitive)
    fail({
      code: 'schedule/unknown-step',
      message: `there is no step ${JSON.stringify(step.kind)}`,
      lookup: { name: String(step.kind), candidates: Object.keys(PRIMITIVES) },
    })
  return primitive.apply(cx, step)
}

const nextKernel = (kernel: Kernel2, outcome: Outcome): Kernel2 =>
  Object.freeze({
    ...kernel,
    body: outcome.body,
    buffers: outcome.buffers ? [...kernel.buffers, ...outcome.buffers] : kernel.buffers,
  })

/** The state before the latest step; the same state where there is none. */
export function undo(state: ScheduleState): ScheduleState {
  const inverse = state.inverse.at(-1)
  if (!inverse) return state
  const now: Now = { kernel: state.kernel, trace: state.trace, consumed: state.consumed }
  const before = applyPatches(now, [...inverse])
  return Object.freeze({ ...before, inverse: state.inverse.slice(0, -1) })
}

/** All steps of a trace, in order. */
export const replay = (kernel: Kernel2, trace: readonly LoopStep[]): ScheduleState =>
  trace.reduce(apply, start(kernel))

/** A handle on a loop, which stays good through later steps as long as the loop exists. */
export function handle(state: ScheduleState, name: string): LoopRef {
  const cx = new Context(state.kernel, state.consumed, undefined)
  return Object.freeze({ var: cx.loop(name).loop.var })
}

/** The names by which the loops can be meant now, outermost first; qualified where several share one. */
export function loopNames(state: ScheduleState): readonly string[] {
  const loops = loopsOf(state.kernel.body)
  const count = (name: string): number => loops.filter((l) => l.name === name).length
  return loops.map((l) => (count(l.name) > 1 ? `${l.nest}.${l.name}` : l.name))
}
