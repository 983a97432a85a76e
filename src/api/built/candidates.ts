/** Schedules for some inputs in the order of preference: a later one runs if the data or the device reject those before it. */
import { resultOrError, SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import { type Coroutine, runSync } from '../../ast/work.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { CheckedPlan } from '../../plan/launch-plan.ts'
import type { Bound } from '../../run/bind/index.ts'
import type { Device } from '../../runtime/device.ts'
import type { Selection } from '../dispatch/dispatch-conditions.ts'
import type { RunInputs } from '../inputs/bound-inputs.ts'
import { bindWithin } from './check-binding.ts'
import type { CompiledCode } from './code.ts'

/** A schedule for some inputs, before it is compiled. */
export interface Candidate {
  /** The reason of a dispatch; `null` if no dispatch selected the schedule. */
  readonly selection: Selection | null
  /** Call of the schedule, or decisions of the auto-scheduler. */
  readonly label: string
  /** The kernel over coordinates after the formats of the schedule. */
  readonly kernel: Kernel1
  readonly device: Device
  /** The inputs of the schedule. Throws SptError `bind/…`. */
  inputs(): RunInputs
  /** The plan by which sizes are checked. Throws SptError as lowering. */
  plan(): CheckedPlan
  /** Compiles the schedule, for the device of the family or another one. */
  compile(device?: Device): Promise<CompiledCode>
  /** Data that are bound already; otherwise the inputs are converted to the formats of the schedule. */
  readonly bound?: () => Bound
}

/** Compiled code as the only schedule. */
export const candidateOf = (code: CompiledCode, inputs: RunInputs, label: string): Candidate => ({
  selection: null,
  label,
  kernel: code.program.plan.binding,
  device: code.device,
  inputs: () => inputs,
  plan: () => code.program.plan,
  compile: async (device) => (device ? code.compileFor(device) : code),
})

/** Call of the schedule in the dispatch; empty without a dispatch. */
export const textOf = ({ selection }: Candidate): string => selection?.text ?? ''

/** Binds the inputs in the formats of the schedule. Throws SptError `bind/…`, `format/…`. */
function* bindingSteps(c: Candidate): Coroutine<Bound> {
  if (c.bound) return c.bound()
  // `compile` reports errors of lowering.
  const plan = resultOrError(() => c.plan())
  const on = plan instanceof SptError ? null : { device: c.device, plan }
  return yield* bindWithin(on, c.kernel, c.inputs())
}

/** `bindingSteps` at once. */
export const bindCandidate = (c: Candidate): Bound => runSync(bindingSteps(c))

/** Data bound to the first of `candidates`. */
export interface BoundCandidates {
  readonly bound: Bound
  readonly candidates: readonly Candidate[]
  /** Schedules that failed before, with the reasons. */
  readonly rejected: readonly string[]
}

/** Binds data to the first schedule that accepts them. Throws the error of the last. */
export function* bindFirst(
  candidates: readonly Candidate[],
  rejected: readonly string[],
): Coroutine<BoundCandidates> {
  const [first, ...others] = candidates
  let failure: string
  try {
    return { bound: yield* bindingSteps(first!), candidates, rejected }
  } catch (e) {
    if (others.length === 0 || !(e instanceof SptError)) throw e
    failure = failureText(first!, e)
  }
  return yield* bindFirst(others, [...rejected, failure])
}

export const failureText = ({ label }: Candidate, error: SptError): string => `${label}: ${error.message}`

/** Result for the first item that is not rejected with a user error. Throws the error of the last. */
export async function firstAccepted<T, R>(
  [first, ...others]: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<R> {
  if (others.length === 0) return work(first!)
  const done = await valueOrError(() => work(first!))
  return done instanceof SptError ? firstAccepted(others, work) : done
}
