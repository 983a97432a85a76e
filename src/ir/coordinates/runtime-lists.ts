/**
 * Formats that a kernel builds at run time (`live`): the record of their lists, which accompanies the kernel from Stage
 * I to the plan. The host reads the lengths of the lists after a run.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../expressions/expr.ts'
import type { AnyFormat, PartInstance } from '../formats/format.ts'

/** The lists of a format that each run builds for a dense tensor. */
export interface RuntimeLists {
  readonly tensor: string
  readonly format: AnyFormat
  readonly args: readonly (number | string)[]
  /** Parts, each with its own lists. */
  readonly parts: readonly RuntimePart[]
  /** Default schedules of the builder's loop nests. */
  readonly defaults: readonly NestDefault[]
  /** The step that requests the run-time construction. */
  readonly span?: Span | undefined
}

export interface RuntimePart extends PartInstance {
  /** The buffer of the part's values: its own, or the tensor. */
  readonly buffer: string
  /** The axis of the lists: a list has as many positions on it as coordinates. */
  readonly axis: string
  /** Name of the array with the number of coordinates found for each list, up to its capacity. */
  readonly counts: string
  /** The number of lists, over sizes. */
  readonly lists: Expr
  /** Lists are padded to multiples of this many positions. */
  readonly width: number
  /** Upper bound on the coordinates of a list, over sizes. */
  readonly extent: Expr
  /** Value slots per listed coordinate, over sizes. */
  readonly slots: Expr
  /** Undefined for lists that are allocated for the worst case. */
  readonly capacity?: Capacity | undefined
}

/** If a list needs more than `capacity` groups of `width`, the excess groups are neither written nor read. */
interface Capacity {
  /** Name of the array with the number of coordinates found for each list, or for all lists together. */
  readonly counts: string
  readonly width: number
  /** The capacity in groups, over sizes. */
  readonly capacity: Expr
}

/** Default steps for the loops of a nest that a schedule does not mention: the first legal ones are applied. */
export interface NestDefault {
  readonly nest: string
  /** For devices on which one thread runs a nest; otherwise for devices with threads. */
  readonly singleThread?: true | undefined
  /** Steps as plain data, identified by their keywords. */
  readonly steps: readonly { readonly kind: string }[]
}

/** A kernel or plan with the lists that it builds. */
interface Builder {
  readonly runtimeLists?: readonly RuntimeLists[] | undefined
}

export const builderDefaults = ({ runtimeLists = [] }: Builder): readonly NestDefault[] =>
  runtimeLists.flatMap((l) => l.defaults)

export const capacitiesOf = ({ runtimeLists = [] }: Builder) =>
  runtimeLists.flatMap((lists) =>
    lists.parts.flatMap((part) => (part.capacity ? [{ ...part.capacity, part, lists }] : [])),
  )

/** Names of the arrays that the host compares with capacities. */
export const capacityCounts = (builder: Builder): readonly string[] =>
  capacitiesOf(builder).map((c) => c.counts)
