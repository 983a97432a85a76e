/**
 * The shape of a primitive: its word and what it takes → named legality checks → a rewrite → what became of the loops.
 * All else about it, in texts, in TypeScript and as JSON, follows from this one declaration.
 */
import type { StepSyntax } from '../ast/step-syntax.ts'
import type { Buffer, DisjointWrites, Fact, For, Kernel2 } from '../ir/loops.ts'
import type { Body } from '../ir/tree.ts'
import { type Forms, type GivenOf, type StepOf, syntaxOf, type Takes } from './arguments.ts'
import type { Consumed, Context } from './context.ts'
import type { LoopRef } from './loop-ref.ts'

/** A loop that no longer exists and the names that stand in for it. */
export type Gone = Omit<Consumed, 'step'>

export interface Outcome {
  readonly body: Body
  /** All that it does is to unroll a loop: where threads run and what they share stays as it was. */
  readonly unrolls?: true
  /** Global buffers to add. */
  readonly buffers?: readonly Buffer[]
  /** Local buffers that nothing uses any more. */
  readonly unused?: readonly string[]
  readonly gone?: readonly Gone[]
  /** What is required of sizes from now on. */
  readonly facts?: readonly Fact[]
  /** What is known of nests from now on. */
  readonly apart?: readonly DisjointWrites[]
}

/** Documentation that a test runs: `step` turns `before` into a kernel whose body prints as `after`. */
export interface Example<S> {
  readonly before: Kernel2
  readonly step: S
  readonly after: string
}

/**
 * Of a step that looks at one nest alone and changes nothing else: loops in it, by which it is found; all that the step
 * names, so that the same loops are the same step. `null`: of this one it is not known.
 */
export type Within<S> = (cx: Context, step: S) => readonly LoopRef[] | null

/** A step that texts, TypeScript and JSON have. `S`: the step as data; `A`: the arguments of its method. */
export interface Declared<S, A extends readonly unknown[]> extends StepSyntax {
  /** A call of the method, which messages about its arguments show. */
  readonly call: string
  /** The fields of the step from the arguments of its method; what is undefined is left out. */
  readonly given: (...args: A) => object
  /** For the type alone. */
  readonly step?: S
}

export interface Primitive<S, A extends readonly unknown[] = readonly unknown[]> extends Declared<S, A> {
  /** Refuses (`SptError`, `schedule/…`) what could change the result; never mutates. */
  readonly apply: (cx: Context, step: S) => Outcome
  readonly within?: Within<S>
  readonly ofSizes?: true
  readonly example: Example<S>
}

/** The steps of a list of primitives. */
export type StepIn<L extends Readonly<Record<string, { readonly step?: unknown }>>> = NonNullable<
  L[keyof L]['step']
>

/** What a primitive declares; `given` is its method: the parameters, and the fields of the step that they are. */
interface Declaration<W extends string, T extends Takes, A extends readonly unknown[]> {
  readonly word: W
  readonly call: string
  readonly takes: T | Forms<T>
  readonly given: (...args: A) => GivenOf<T>
  readonly apply: (cx: Context, step: StepOf<W, T>) => Outcome
  readonly within?: Within<StepOf<W, T>>
  /** It speaks of sizes alone, so that steps on coordinates may come after it. */
  readonly ofSizes?: true
  readonly example: Example<StepOf<W, T>>
}

/** A primitive on loops. */
export const primitive = <const W extends string, const T extends Takes, A extends readonly unknown[]>({
  takes,
  ...is
}: Declaration<W, T, A>): Primitive<StepOf<W, T>, A> => ({ forms: formsOf(takes), ...is })

export const formsOf = (takes: Takes | Forms<Takes>): StepSyntax['forms'] =>
  ('forms' in takes ? takes.forms : [takes]).map(syntaxOf)

export const gone = (loop: For, how: Consumed['how'], into: readonly string[]): Gone => ({
  var: loop.var,
  name: loop.name,
  nest: loop.nest,
  how,
  into,
})
