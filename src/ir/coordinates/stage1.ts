/**
 * Stage I, coordinates: the resolved and typed program. Index expressions are coordinates. The reference interprets
 * this stage; formats and the Stage I steps rewrite it.
 */
import type { Diagnostic, Span } from '../../ast/diagnostics/diagnostic.ts'
import type { ExpandedCall } from '../../ast/nodes/expanded-calls.ts'
import type { Expr, Load } from '../expressions/expr.ts'
import type { Instance, Proved } from '../formats/format.ts'
import type { Dtype } from '../values/dtype.ts'
import type { Monoid } from '../values/monoid.ts'
import type { Axis } from './axis.ts'
import type { RuntimeLists } from './runtime-lists.ts'

/** A non-negative i32 that shapes depend on (`size`), or a scalar operand of the arithmetic. */
export interface Param {
  readonly name: string
  readonly kind: 'size' | 'scalar'
  readonly dtype: Dtype
  /** `measured`: not given by the user but computed while a format is built, for example the width of an ELL. */
  readonly measured?: boolean | undefined
  readonly span?: Span | undefined
}

/** `in` is read-only, `out` write-only (for the caller), `local` a temporary of the kernel. */
export type Role = 'in' | 'out' | 'inout' | 'local'

/** A tensor over axes, one dimension per axis; every sparse or variable axis comes after its parent. */
export interface Buffer1 {
  readonly name: string
  readonly dtype: Dtype
  readonly axes: readonly string[]
  readonly role: Role
  /** The value of absent coordinates. */
  readonly fill: number
  /** The type in which reductions into this buffer accumulate. */
  readonly accumulate: Dtype
  /** A table of a format (`ir/formats/format.ts`): computed when data are bound, not bound by the caller. */
  readonly table?: boolean | undefined
  /** A copy of the input of this name, which is bound to the same tensor. */
  readonly copyOf?: string | undefined
  /** A temporary that the nests of a step fill at run time; not bound by the caller. */
  readonly filledAtRunTime?: true | undefined
  /** For a table: it holds the bits of the format's mask of this name, over the axes of its values. */
  readonly mask?: string | undefined
  /** For a table: its values below the extent that it indexes are all different (a permutation). */
  readonly distinct?: boolean | undefined
  /** Number of leading dimensions that select a list: the elements read under one index of these are all different. */
  readonly listDims?: number | undefined
  /**
   * Each iteration of the nest that writes the buffer owns existing elements, whatever the index is; other elements are
   * never read.
   */
  readonly placed?: true | undefined
  /** For a table, or if the caller declares it: all values are coordinates below this, over sizes. */
  readonly below?: Expr | undefined
  /** For offsets that the kernel computes: upper bound on the positions they cover, over sizes. They ascend from 0. */
  readonly positions?: Expr | undefined
  /** Declared by the caller: strictly increasing within aligned groups of this many elements in the last dimension. */
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
 * The body runs once for each combination of the iterators' stored coordinates that satisfies `where`, in unspecified
 * order. Coordinate maps produce `where`, for example because a padded block exceeds the tensor.
 */
export interface Iteration {
  readonly kind: 'iterate'
  readonly name: string
  readonly iters: readonly Iter[]
  readonly where: readonly Expr[]
  readonly body: readonly Stmt1[]
  readonly span?: Span | undefined
}

/** An element of a buffer, as the target of a write. */
export type Access = Load

/** `targets = values`, element by element. */
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

/**
 * The begin or the end of rounds, in the body of a kernel in Stages I to III: the statements between the edges run
 * repeatedly, in order. Both edges have the same fields.
 */
export interface RoundsEdge {
  readonly kind: 'rounds'
  readonly edge: 'begin' | 'end'
  readonly name: string
  /** The number of rounds, over sizes; without it, only the flag ends them. */
  readonly count?: Expr | undefined
  /** An integer buffer with one element. A round runs only if it is not 0. */
  readonly flag?: string | undefined
  /** An integer buffer with one element, which counts the rounds. */
  readonly counter?: string | undefined
  /** Buffers that keep their values from round to round. Other temporaries have no value at the begin of a round. */
  readonly carried: readonly string[]
  readonly span?: Span | undefined
}

export type Stmt1 = Iteration | Assign | Reduce1 | Let1 | If1 | RoundsEdge

/**
 * The mapping of a tensor bound in the caller's coordinates to reformatted buffers: each stored coordinate goes to one
 * part, at its `map`. `as` records it; binding data executes it.
 */
export interface Reformat {
  /** Format text as written, for reports: `bsr(16)`. */
  readonly format: string
  /** Axes replaced, in the order of the format's `over` list. */
  readonly from: readonly Axis[]
  readonly instance: Instance
  /** Properties that are proved of each part. */
  readonly proved: readonly Proved[]
  /** The buffer named by the step, whose values queries read; the first of `buffers` if absent. */
  readonly source?: string | undefined
  /** Buffers whose axes were replaced, with their original axes; part k is stored in the buffer `parts[k]`. */
  readonly buffers: readonly {
    readonly name: string
    readonly axes: readonly string[]
    readonly parts: readonly string[]
  }[]
  readonly factors?: readonly FillFactor[] | undefined
}

/**
 * A factor of a tensor's fill value 0 at coordinates that only a format visits: incomplete blocks, padding. The product
 * is 0, as if the coordinates were skipped, if the factor is finite.
 */
export interface FillFactor {
  /** For messages, in the coordinates of the kernel as written. */
  readonly text: string
  /** The factor is an element of a tensor: finite if the tensor's elements are. */
  readonly element: boolean
  /**
   * Floating-point tensors in the factor. `by`: for each of their dimensions, the format's dimension that indexes it.
   */
  readonly loads: readonly { readonly tensor: string; readonly by: readonly (number | null)[] }[]
}

/** Products that a step skips where a tensor has its fill value 0, although the kernel as written evaluates them. */
export interface SkippedProduct {
  /** The step, for messages. */
  readonly by: string
  readonly tensor: string
  readonly factors: readonly FillFactor[]
}

export interface Kernel1 {
  readonly stage: 1
  readonly name: string
  readonly params: readonly Param[]
  readonly axes: readonly Axis[]
  readonly buffers: readonly Buffer1[]
  readonly body: readonly Stmt1[]
  /** Reformats, in the order in which they were applied. */
  readonly reformats: readonly Reformat[]
  readonly runtimeLists?: readonly RuntimeLists[] | undefined
  /** Recorded by steps that keep the tensor dense. */
  readonly skippedProducts?: readonly SkippedProduct[] | undefined
  /** Of the derivation of the kernel. */
  readonly warnings?: readonly Diagnostic[] | undefined
  /** The calls that its members come from, which schedules address. */
  readonly calls?: readonly ExpandedCall[] | undefined
  readonly span?: Span | undefined
}
