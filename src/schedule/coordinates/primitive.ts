/** The interface of a primitive on coordinates. */
import { expectArgument } from '../../ast/diagnostics/expect-argument.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { LoopRef } from '../names/kernel-names.ts'
import { type Declared, formsOf } from '../primitive.ts'
import type { GivenOf, StepOf, Takes } from '../steps/arguments.ts'

/**
 * An example for the documentation, which a test executes: `steps` turn the only kernel of `before` into one that
 * prints as `after`.
 */
export interface CoordExample {
  readonly before: string
  readonly steps: string
  readonly after: string
}

export interface CoordPrimitive<S, A extends readonly unknown[] = readonly unknown[]> extends Declared<S, A> {
  /**
   * Returns the kernel after the step. @throws SptError `schedule/…`, `format/…` if the step could change the result
   */
  readonly apply: (kernel: Kernel1, step: S) => Kernel1
  readonly example: CoordExample
}

/** The declaration of a primitive on coordinates; `given` converts the arguments of its method, as for loops. */
interface Declaration<W extends string, T extends Takes, A extends readonly unknown[]> {
  readonly word: W
  readonly takes: T
  readonly call: string
  readonly given: (...args: A) => GivenOf<T>
  readonly apply: (kernel: Kernel1, step: StepOf<W, T>) => Kernel1
  readonly example: CoordExample
}

export const coordPrimitive = <const W extends string, const T extends Takes, A extends readonly unknown[]>({
  takes,
  ...is
}: Declaration<W, T, A>): CoordPrimitive<StepOf<W, T>, A> => ({ forms: formsOf(takes), ...is })

/**
 * Returns the list of loops of a call. Iterators of Stage I have names only; anything else in the list is rejected with
 * the step. @throws SptError `api/argument` if the argument is not a list
 */
export function namesOf(loops: readonly LoopRef[]): string[] {
  expectArgument(Array.isArray(loops), 'what is to be fused', loops, "a list of loops: ['i', 'j']")
  return loops as string[]
}
