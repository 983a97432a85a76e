/**
 * The interface of a primitive: its word and its arguments → legality checks → a rewrite → the replaced loops. Its
 * syntax in text, its TypeScript method and its JSON follow from this one declaration.
 */
import type { StepSyntax } from '../ast/nodes/step-syntax.ts'
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import type { Buffer, DisjointWrites, Fact, For } from '../ir/statements/loops.ts'
import type { Body } from '../ir/statements/tree.ts'
import type { Consumed, Context } from './state/context.ts'
import { type Forms, type GivenOf, type StepOf, syntaxOf, type Takes } from './steps/arguments.ts'

/** A loop that no longer exists, and the names of the loops that replace it. */
export type Gone = Omit<Consumed, 'step'>

export interface Outcome {
  readonly body: Body
  /** True if the step only unrolls a loop, so that threads and their shared data do not change. */
  readonly unrolls?: true
  /** Global buffers to add. */
  readonly buffers?: readonly Buffer[]
  /** Local buffers that nothing uses any more. */
  readonly unused?: readonly string[]
  readonly gone?: readonly Gone[]
  /** New requirements on sizes. */
  readonly facts?: readonly Fact[]
  /** New facts about loop nests that write disjoint elements. */
  readonly apart?: readonly DisjointWrites[]
}

/** A step in text, in TypeScript and in JSON. `S` is the step as data, `A` the arguments of its method. */
export interface Declared<S, A extends readonly unknown[]> extends StepSyntax {
  /** A call of the method, for messages about its arguments. */
  readonly call: string
  /** Returns the fields of the step from the arguments of its method; undefined fields are left out. */
  readonly given: (...args: A) => object
  /** For type inference only; never set. */
  readonly step?: S
}

/** A step on loops, or on coordinates: `On` is what it is applied to, and `Result` what it returns. */
export interface Applied<S, On, Result> {
  /**
   * Returns the result of the step, and never mutates. Throws `SptError` (`schedule/…`, `format/…`) if the step could
   * change the results of the kernel.
   */
  readonly apply: (on: On, step: S) => Result
  /** True if the step is about sizes only, so that steps on coordinates may follow. */
  readonly ofSizes?: true
}

/** A step as the compiler applies it. */
export type Primitive<S, On = Context, Result = Outcome> = Declared<S, readonly unknown[]> &
  Applied<S, On, Result>

/** The steps of a table of primitives. */
export type StepIn<L extends Readonly<Record<string, { readonly step?: unknown }>>> = NonNullable<
  L[keyof L]['step']
>

/** The declaration of a primitive; `given` is its method, which returns the fields of the step. */
interface Declaration<W extends string, T extends Takes, A extends readonly unknown[], On, Result>
  extends Applied<StepOf<W, T>, On, Result> {
  readonly word: W
  readonly call: string
  readonly takes: T | Forms<T>
  readonly given: (...args: A) => GivenOf<T>
}

const declared =
  <On, Result>() =>
  <const W extends string, const T extends Takes, A extends readonly unknown[]>({
    takes,
    ...is
  }: Declaration<W, T, A, On, Result>): Declared<StepOf<W, T>, A> & Applied<StepOf<W, T>, On, Result> => ({
    forms: formsOf(takes),
    ...is,
  })

/** Returns a primitive on loops from its declaration. */
export const primitive = declared<Context, Outcome>()

/** Returns a primitive on coordinates (Stage I) from its declaration. */
export const coordPrimitive = declared<Kernel1, Kernel1>()

const formsOf = (takes: Takes | Forms<Takes>): StepSyntax['forms'] =>
  ('forms' in takes ? takes.forms : [takes]).map(syntaxOf)

export const gone = (loop: For, how: Consumed['how'], into: readonly string[]): Gone => ({
  var: loop.var,
  name: loop.name,
  nest: loop.nest,
  how,
  into,
})
