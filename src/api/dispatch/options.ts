/** Schedules for some inputs in the order of preference: a later one runs if the data or the device reject those before it. */
import { SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import type { Coroutine, Work } from '../../ast/work.ts'
import type { Bound } from '../../run/bind/index.ts'
import type { Device } from '../../runtime/device.ts'
import { type Binding, createBinding } from '../built/binding.ts'
import type { CompiledCode } from '../built/code.ts'
import type { RunInputs } from '../inputs/bound-inputs.ts'
import type { Candidate } from './branches.ts'
import type { Selection } from './dispatch-conditions.ts'

/** A schedule for some inputs. It runs if the data or the device reject those before it. */
export interface Option extends Candidate {
  /** Compiles the schedule after a check of names, ranks and shapes. Throws SptError `bind/…`, and as `build`. */
  checked(): Promise<CompiledCode>
  /** `rejected`: schedules that failed before, with the reasons. */
  prepare(bound: Bound, rejected: readonly string[], work: Work): Promise<Binding>
  /** `bind`, in steps. */
  bindingSteps(): Coroutine<Bound>
  readonly label: string
}

/** Compiled code as the only schedule. `selectionOf`: the reason, given the schedules that failed before. */
export function optionOf(
  code: CompiledCode,
  label: string,
  inputs: RunInputs,
  selectionOf: (rejected: readonly string[]) => Selection | null,
): Option {
  const compile = async (device?: Device): Promise<CompiledCode> => (device ? code.compileFor(device) : code)
  return {
    selection: null,
    compilation: code.compilation,
    compile,
    checked: compile,
    bind: () => code.bindOnHost(inputs),
    bindingSteps: () => code.bindingSteps(inputs),
    label,
    prepare: (bound, rejected, work) => createBinding(code, bound, selectionOf(rejected), {}, work),
  }
}

/** Data bound to the first of `options`. */
export interface BoundOption {
  readonly bound: Bound
  readonly options: readonly Option[]
  /** Schedules that failed before, with the reasons. */
  readonly rejected: readonly string[]
}

/** Binds data to the first schedule that accepts them. Throws the error of the last. */
export function* bindFirst(options: readonly Option[], rejected: readonly string[]): Coroutine<BoundOption> {
  const [first, ...others] = options
  let failure: string
  try {
    return { bound: yield* first!.bindingSteps(), options, rejected }
  } catch (e) {
    if (others.length === 0 || !(e instanceof SptError)) throw e
    failure = failureText(first!, e)
  }
  return yield* bindFirst(others, [...rejected, failure])
}

export const failureText = ({ label }: Option, error: SptError): string => `${label}: ${error.message}`

/** Result for the first item that is not rejected with a user error. Throws the error of the last. */
export async function firstAccepted<T, R>(
  [first, ...others]: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<R> {
  if (others.length === 0) return work(first!)
  const done = await valueOrError(() => work(first!))
  return done instanceof SptError ? firstAccepted(others, work) : done
}
