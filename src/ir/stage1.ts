/**
 * Stage I, coordinates: what the text says, resolved and typed. Index expressions are coordinates. The
 * reference interprets this stage; formats and the Stage I steps rewrite it.
 */
import type { Span } from '../ast/diagnostic.ts'
import type { Axis } from './axis.ts'
import type { Dtype } from './dtype.ts'
import type { Expr, Load } from './expr.ts'
import type { AnyFormat, Instance, PartInstance } from './format.ts'
import type { Monoid } from './monoid.ts'

/** A non-negative i32 that shapes depend on (`size`), or a scalar operand of the arithmetic. */
export interface Param {
  readonly name: string
  readonly kind: 'size' | 'scalar'
  readonly dtype: Dtype
  /** `measured`: not the user's but found while a format is built (the width of an ELL, say). */
  readonly measured?: boolean | undefined
  readonly span?: Span | undefined
}

/** `in` is read only, `out` written only (as far as the caller sees), `local` a temporary of the kernel. */
export type Role = 'in' | 'out' | 'inout' | 'local'

/** A tensor over axes, one dimension an axis; every sparse or variable axis comes after its parent. */
export interface Buffer1 {
  readonly name: string
  readonly dtype: Dtype
  readonly axes: readonly string[]
  readonly role: Role
  /** What an absent coordinate reads. */
  readonly fill: number
  /** Type in which reductions into this buffer accumulate. */
  readonly accumulate: Dtype
  /** A table of a format (`ir/format.ts`): made while data are bound, nothing a caller brings. */
  readonly table?: boolean | undefined
  /** A temporary that nests of a step fill in each run: nothing a caller brings either. */
  readonly made?: true | undefined
  /** Of a table: the bits of the format's mask of this name, over the axes of its values. */
  readonly mask?: string | undefined
  /** Of a table: its values within the extent of what it names are all different (a permutation). */
  readonly distinct?: boolean | undefined
  /** Elements that are read and share their first so many coordinates are all different: a list without repeats for each of these. */
  readonly listed?: number | undefined
  /**
   * Each iteration of the nest that writes it has elements of its own, which are there, whatever the index says; of the others
   * nothing is read.
   */
  readonly placed?: true | undefined
  /** Of a table, or where who brings the data says so: all values are coordinates below this, over sizes. */
  readonly below?: Expr | undefined
  /** Of offsets that the kernel computes: how many positions they lead to at most, over sizes. They ascend from 0 on. */
  readonly positions?: Expr | undefined
  /** Where who brings the data says so: each so many neighbours in the last dimension ascend, none is there twice. */
  readonly ascending?: number | undefined
  readonly span?: Span | undefined
}

export type IterKind = 'S' | 'R'

/** One iterator: `name` stands for the coordinate of `axis` in the body. */
export interface Iter {
  readonly name: string
  readonly axis: string
  /** S: different values write different elements (checked). R: they combine through a reducer. */
  readonly kind: IterKind
  readonly span?: Span | undefined
}

/**
 * The body runs once for each combination of the iterators' stored coordinates that satisfies `where`, in no
 * particular order. `where` is produced by coordinate maps (a padded block leaves the tensor).
 */
export interface Iteration {
  readonly kind: 'iterate'
  readonly name: string
  readonly iters: readonly Iter[]
  readonly where: readonly Expr[]
  readonly body: readonly Stmt1[]
  readonly span?: Span | undefined
}

/** An element of a buffer, as a target. */
export type Access = Load

/** `targets = values`, each to its element. */
export interface Assign {
  readonly kind: 'assign'
  readonly targets: readonly Access[]
  readonly values: readonly Expr[]
  readonly span?: Span | undefined
}

/** `targets = targets ∘ values` with the reducer's combine; a tuple reducer has one target per component. */
export interface Reduce1 {
  readonly kind: 'reduce'
  readonly reducer: Monoid
  readonly targets: readonly Access[]
  readonly values: readonly Expr[]
  readonly span?: Span | undefined
}

/** A named value; visible to the statements after it in the same body. */
export interface Let1 {
  readonly kind: 'let'
  readonly name: string
  readonly value: Expr
  readonly span?: Span | undefined
}

export interface If1 {
  readonly kind: 'if'
  readonly cond: Expr
  readonly then: readonly Stmt1[]
  readonly else: readonly Stmt1[]
  readonly span?: Span | undefined
}

export type Stmt1 = Iteration | Assign | Reduce1 | Let1 | If1

/**
 * How a tensor bound in the caller's coordinates reaches reformatted buffers: each stored coordinate goes to one
 * part, there to `map` of it. Recorded by `as`, carried out when data are bound.
 */
export interface Reformat {
  /** Format text as written, for reports: `bsr(16)`. */
  readonly format: string
  /** Axes replaced, in the order of the format's `over` list. */
  readonly from: readonly Axis[]
  readonly instance: Instance
  /** The buffer that the step names, whose values queries see; the first of `buffers` where it is left out. */
  readonly named?: string | undefined
  /** Buffers whose axes were replaced, with the axes they had; part k of it is the buffer `parts[k]`. */
  readonly buffers: readonly {
    readonly name: string
    readonly axes: readonly string[]
    readonly parts: readonly string[]
  }[]
  readonly factors?: readonly FillFactor[] | undefined
}

/**
 * What the fill value 0 of a tensor is multiplied by at coordinates that only a format visits: blocks that are not full,
 * padding. The product is 0, as if they were passed over, where the factor is finite.
 */
export interface FillFactor {
  /** For messages, in the coordinates of the kernel as written. */
  readonly text: string
  /** It is an element of a tensor: finite where that is. */
  readonly element: boolean
  /** Floating-point tensors in it; by dimension, which of the format's dimensions it is indexed by. */
  readonly loads: readonly { readonly tensor: string; readonly by: readonly (number | null)[] }[]
}

/** What a step passes over where a tensor has its fill value 0, though the kernel as written multiplies it there. */
export interface PassedOver {
  /** The step, for messages. */
  readonly by: string
  readonly tensor: string
  readonly factors: readonly FillFactor[]
}

/** Room for what is found in a run: where a list has more than `capacity` groups of `width`, none of those is written or read. */
export interface Capacity {
  readonly axis: string
  /** How many coordinates are found for each list. */
  readonly counts: string
  readonly width: number
  /** Over sizes. */
  readonly capacity: Expr
  /** Where it is asked for. */
  readonly span?: Span | undefined
}

/** What each run finds of a dense tensor, which stays where it is: the lists of a format. */
export interface Found {
  readonly tensor: string
  readonly format: AnyFormat
  readonly args: readonly (number | string)[]
  /** Each has lists of its own. */
  readonly parts: readonly FoundPart[]
  /** Of the step that has them found. */
  readonly span?: Span | undefined
}

export interface FoundPart extends PartInstance {
  /** Where its values are: of its own, or the tensor. */
  readonly buffer: string
  /** The axis of which each list has so many positions as it has. */
  readonly axis: string
  /** How many coordinates are found for each list, first of all it holds. */
  readonly counts: string
  /** How many lists there are. Over sizes. */
  readonly lists: Expr
  /** Lists are filled up to multiples of this. */
  readonly width: number
  /** How many coordinates may be listed. Over sizes. */
  readonly extent: Expr
  /** Slots for values that a listed coordinate has. Over sizes. */
  readonly slots: Expr
}

/** Steps on the loops of a nest where a schedule names none of them: the first legal ones are taken. */
export interface NestDefault {
  readonly nest: string
  /** For devices on which one thread runs a nest; else for those with threads. */
  readonly alone?: true | undefined
  readonly steps: readonly DefaultStep[]
}

/** A step as plain data, by its word. */
export interface DefaultStep {
  readonly kind: string
}

export interface Kernel1 {
  readonly stage: 1
  readonly name: string
  readonly params: readonly Param[]
  readonly axes: readonly Axis[]
  readonly buffers: readonly Buffer1[]
  readonly body: readonly Stmt1[]
  /** In the order they were applied. */
  readonly reformats: readonly Reformat[]
  readonly defaults?: readonly NestDefault[] | undefined
  readonly capacities?: readonly Capacity[] | undefined
  readonly found?: readonly Found[] | undefined
  /** By steps that leave the tensor as it is. */
  readonly passedOver?: readonly PassedOver[] | undefined
  readonly span?: Span | undefined
}
