/** The shape of a primitive: arguments → named legality checks → a rewrite → what became of the loops. */
import type { Apart, Buffer, Fact, For, Kernel2 } from '../ir/loops.ts'
import type { Body } from '../ir/tree.ts'
import type { Consumed, Context } from './context.ts'
import type { LoopStep } from './steps.ts'

/** A loop that no longer exists and the names that stand in for it. */
export type Gone = Omit<Consumed, 'step'>

export interface Outcome {
  readonly body: Body
  /** Global buffers to add. */
  readonly buffers?: readonly Buffer[]
  /** Local buffers that nothing uses any more. */
  readonly unused?: readonly string[]
  readonly gone?: readonly Gone[]
  /** What is required of sizes from now on. */
  readonly facts?: readonly Fact[]
  /** What is known of nests from now on. */
  readonly apart?: readonly Apart[]
}

/** Documentation that a test runs: `step` turns `before` into a kernel whose body prints as `after`. */
export interface Example<S extends LoopStep> {
  readonly before: Kernel2
  readonly step: S
  readonly after: string
}

export interface Primitive<S extends LoopStep> {
  readonly kind: S['kind']
  /** Refuses (`SptError`, `schedule/…`) what could change the result; never mutates. */
  readonly apply: (cx: Context, step: S) => Outcome
  readonly example: Example<S>
}

export const gone = (loop: For, how: Consumed['how'], into: readonly string[]): Gone => ({
  var: loop.var,
  name: loop.name,
  nest: loop.nest,
  how,
  into,
})
