/** Schedules for some inputs in the order of preference: a later one runs if the data or the device reject those before it. */
import { resultOrError, SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import { type Coroutine, runSync } from '../../ast/work.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { CheckedPlan } from '../../plan/launch-plan.ts'
import type { Bound } from '../../run/bind/index.ts'
import type { Device } from '../../runtime/device.ts'
import type { Selection } from '../dispatch/dispatch-conditions.ts'
import type { AnyKernel } from '../dispatch/schedules.ts'
import type { RunInputs } from '../inputs/bound-inputs.ts'
import { bindWithin } from './check-binding.ts'
import { CompiledCode } from './code.ts'

/** A schedule for some inputs: a kernel under its steps, or compiled code. */
export interface Candidate {
  readonly schedule: AnyKernel | CompiledCode
  /** The reason of a dispatch; `null` if no dispatch selected the schedule. */
  readonly selection: Selection | null
  /** Call of the schedule, or decisions of the auto-scheduler. */
  readonly label: string
  readonly device: Device
  /** The inputs of the schedule. Throws SptError `bind/…`. */
  inputs(): RunInputs
  /** The plan by which sizes are checked. Throws SptError as lowering. */
  plan(): CheckedPlan
  /** Compiles the schedule, for the device of the family or another one. */
  compile(device?: Device): Promise<CompiledCode>
}

/** A schedule that a dispatch selects. */
export interface Selected extends Pick<Candidate, 'schedule'> {
  readonly selection: Selection
}

/** Compiled code as the only schedule. */
export const candidateOf = (code: CompiledCode, inputs: RunInputs, label = ''): Candidate => ({
  schedule: code,
  selection: null,
  label,
  device: code.device,
  inputs: () => inputs,
  plan: () => code.program.plan,
  compile: async (device) => (device ? code.compileFor(device) : code),
})

/** The kernel over coordinates after the formats of the schedule. */
export const kernelOf = ({ schedule }: Candidate): Kernel1 =>
  schedule instanceof CompiledCode ? schedule.program.plan.binding : schedule.compilation.kernel

/** Call of the schedule in the dispatch; empty without a dispatch. */
export const textOf = ({ selection }: Candidate): string => selection?.text ?? ''

/** Binds the inputs in the formats of the schedule. Throws SptError `bind/…`, `format/…`. */
export function* bindingSteps(c: Candidate): Coroutine<Bound> {
  // `compile` reports errors of lowering.
  const plan = resultOrError(() => c.plan())
  const on = plan instanceof SptError ? null : { device: c.device, plan }
  return yield* bindWithin(on, kernelOf(c), c.inputs())
}

/** `bindingSteps` at once. */
export const bindCandidate = (c: Candidate): Bound => runSync(bindingSteps(c))

/**
 * Result for the first schedule that is not rejected with a user error. Throws the error of the last. `rejected`: schedules that failed
 * before, with the reasons.
 */
export async function firstAccepted<R>(
  [first, ...others]: readonly Candidate[],
  work: (candidate: Candidate, rejected: readonly string[]) => Promise<R>,
  rejected: readonly string[] = [],
): Promise<R> {
  if (others.length === 0) return work(first!, rejected)
  const done = await valueOrError(() => work(first!, rejected))
  if (!(done instanceof SptError)) return done
  return firstAccepted(others, work, [...rejected, `${first!.label}: ${done.message}`])
}
