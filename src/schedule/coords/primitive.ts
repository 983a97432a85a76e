/** The shape of a primitive on coordinates. */
import { expectArgument } from '../../ast/expect-argument.ts'
import type { Kernel1 } from '../../ir/stage1.ts'
import type { GivenOf, StepOf, Takes } from '../arguments.ts'
import type { LoopRef } from '../loop-ref.ts'
import { type Declared, formsOf } from '../primitive.ts'

/** Documentation that a test runs: `steps` turn the only kernel of `before` into one that prints as `after`. */
export interface CoordExample {
  readonly before: string
  readonly steps: string
  readonly after: string
}

export interface CoordPrimitive<S, A extends readonly unknown[] = readonly unknown[]> extends Declared<S, A> {
  /** @throws SptError `schedule/…`, `format/…` where the step could change the result */
  readonly apply: (kernel: Kernel1, step: S) => Kernel1
  readonly example: CoordExample
}

/** What a primitive on coordinates declares; `given` is its method, as for loops. */
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

/** Iterators of Stage I have names only, and callers give those of handles; what else is given is refused with the step. */
export function namesOf(loops: readonly LoopRef[]): string[] {
  expectArgument(Array.isArray(loops), 'what is to be fused', loops, "a list of loops: ['i', 'j']")
  return loops as string[]
}
