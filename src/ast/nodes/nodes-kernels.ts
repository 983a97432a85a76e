/** Kernels: axes, buffers, statements; and the monoids that they reduce with. */
import type { Span } from '../diagnostics/diagnostic.ts'
import type { AxisDef } from './axis-kinds.ts'
import type { ExpandedCall } from './expanded-calls.ts'
import type { Ident, Item, Node, Trivia, TypeName } from './nodes-base.ts'
import type { Access, Element, Expr, For, NamedArg, NumberLit } from './nodes-exprs.ts'

export type { AxisDef, AxisDefOf } from './axis-kinds.ts'

export const ROLES = ['in', 'out', 'inout', 'local'] as const
export type Role = (typeof ROLES)[number]

export interface Kernel extends Item {
  readonly kind: 'kernel'
  readonly name: Ident
  /** `<T: f32 or f16>`; elaboration makes a kernel for each list of types. */
  readonly typeParams: readonly TypeParam[]
  readonly params: readonly Param[]
  /** The kernel whose parameters, members and schedules this one has in addition to its own. */
  readonly base: BaseKernel | null
  /** In source order. */
  readonly members: readonly Member[]
  /** The kernel is derived from another one, and has no members of its own. */
  readonly gradient?: GradientOf | undefined
  /** The calls in place of which the members of callees are; only after elaboration has expanded calls. */
  readonly calls?: readonly ExpandedCall[] | undefined
}
/** `sage by loss wrt (W1, dense b1) stopping (top) recomputing (H) rounding (Z)`. */
export interface GradientOf extends Node {
  readonly of: BaseKernel
  readonly by: Ident
  readonly wrt: readonly (Ident & { readonly dense?: boolean })[]
  readonly stopping: readonly Ident[]
  readonly recomputing: readonly Ident[]
  readonly rounding: readonly Ident[]
}
export type Member = AxisDecl | BufferDecl | Define | Iterate | KernelCall | Copies | Rounds | RoundsEdge

/** `T: f32 or f16`. */
export interface TypeParam extends Node {
  readonly name: Ident
  readonly types: readonly TypeName[]
}

/** `scale<f16>`, `scale<T>`; without types, the first of each parameter. */
export interface BaseKernel extends Node {
  readonly name: Ident
  readonly types: readonly Ident[]
}

/** `type` is `size`, the type of a scalar operand, or the name of a type parameter. */
export interface Param extends Node {
  readonly name: Ident
  readonly type: Ident
}

/** `define mask(q, k) = k <= q`: an expression by name, which elaboration substitutes for each call. */
export interface Define extends Item {
  readonly kind: 'define'
  readonly name: Ident
  readonly params: readonly Ident[]
  readonly value: Expr
}

/**
 * `call (S, T) = scores<f16>(A, H, heads = 4) as first`: a call of a kernel, with its outputs on the left; elaboration
 * replaces it by the members of that kernel. Arguments without a name are its inputs, in order.
 */
export interface KernelCall extends Item {
  readonly kind: 'kernel_call'
  readonly results: readonly Ident[]
  readonly kernel: Ident
  readonly types: readonly Ident[]
  readonly args: readonly NamedArg[]
  /** The prefix of the names of the callee's members in the kernel. */
  readonly label: Ident | null
}

/** `repeat 12 as l { members }`: copies of members, in which `l` is 1, 2, … and names declared there end in `_1`, `_2`, … */
export interface Copies extends Item {
  readonly kind: 'copies'
  readonly count: NumberLit
  readonly index: Ident
  readonly members: readonly Member[]
}

/**
 * `iterate step [t] as T while (cond) { members }`: the members run in order, once for each coordinate of a dense axis,
 * as long as the condition holds. Statements outside of iterations are allowed.
 */
export interface Rounds extends Item {
  readonly kind: 'rounds'
  readonly name: Ident
  /** Null without an axis; then there is a condition. */
  readonly iter: Omit<Iter, 'mode'> | null
  readonly while: Expr | null
  readonly members: readonly (Member | Stmt)[]
}

/** The begin or the end of rounds in the members of a kernel without `Rounds`; made by elaboration. */
export interface RoundsEdge extends Item {
  readonly kind: 'rounds_edge'
  readonly edge: 'begin' | 'end'
  readonly name: Ident
  readonly axis: Ident | null
  /** An integer buffer that is not 0 while there are more rounds. */
  readonly flag: Ident | null
  /** The integer buffer that counts the rounds. */
  readonly counter: Ident | null
  /** Buffers that are declared in the rounds. */
  readonly own: readonly Ident[]
}

export const AXIS_CLAIMS = ['full', 'compact'] as const
export interface AxisClaim extends Node {
  readonly name: (typeof AXIS_CLAIMS)[number]
}

export interface AxisDecl extends Item {
  readonly kind: 'axis'
  /** Without an index in kernels, as are parents. */
  readonly name: Element
  readonly def: AxisDef
  /** Declared with `list` instead of `axis`: it stores coordinates without values; only in formats. */
  readonly list?: true | undefined
  /** Coordinate of empty positions; only for `sparse_fixed` axes of formats. */
  readonly padding?: Expr | undefined
  /** Bits of each stored coordinate; only for axes with index arrays. */
  readonly packed?: Expr | undefined
  /** Declares one axis for each number; only in formats. */
  readonly each?: For | undefined
  /** Each at most once. */
  readonly claims: readonly AxisClaim[]
}

export interface BufferDecl extends Item {
  readonly kind: 'buffer'
  readonly name: Ident
  /** A scalar type, or the name of a type parameter. */
  readonly type: Ident
  /** Empty for a scalar buffer. */
  readonly axes: readonly Ident[]
  readonly role: { readonly name: Role; readonly span: Span }
  /** A literal, possibly negated (see `literalValue`); `null` if absent. */
  readonly fill: Expr | null
  readonly accumulate: Ident | null
}

// Statements ---------------------------------------------------------------------------------------------------

export type Stmt = Iterate | Assign | Reduce | Let | If

/** `iterate NAME [iters] as KINDS where (cond) { body }`; without iterators the body runs once. */
export interface Iterate extends Item {
  readonly kind: 'iterate'
  readonly name: Ident
  readonly iters: readonly Iter[]
  /** The body runs only if this holds. */
  readonly where: Expr | null
  readonly body: readonly Stmt[]
}

/** `name in axis`; if only the axis is written, both fields are the same node. `mode` is its letter after `as`. */
export interface Iter extends Node {
  readonly name: Ident
  readonly axis: Ident
  readonly mode: 'S' | 'R'
}

/** `target = value`, or tuples of equal length. */
export interface Assign extends Item {
  readonly kind: 'assign'
  readonly targets: readonly Access[]
  readonly values: readonly Expr[]
}

/** `target REDUCER= value`; the reducer is one of `+ * min max and or` or the name of a monoid. */
export interface Reduce extends Item {
  readonly kind: 'reduce'
  readonly reducer: Ident
  readonly targets: readonly Access[]
  readonly values: readonly Expr[]
}

export interface Let extends Item {
  readonly kind: 'let'
  readonly name: Ident
  readonly value: Expr
}

/** `else if` is an `else` whose only statement is an `if`. */
export interface If extends Item {
  readonly kind: 'if'
  readonly cond: Expr
  readonly then: readonly Stmt[]
  readonly else: readonly Stmt[]
}

// Monoids ------------------------------------------------------------------------------------------------------

/** `combine (left, right) = (result…)`; `identity` and `result` have one component for each field. */
export interface Monoid extends Item {
  readonly kind: 'monoid'
  readonly name: Ident
  readonly fields: readonly MonoidField[]
  readonly identity: readonly Expr[]
  readonly left: Ident
  readonly right: Ident
  readonly result: readonly Expr[]
  readonly derivative?: MonoidDerivative | undefined
  /** Comments of the `identity` and `combine` lines. */
  readonly lines?: { readonly identity?: Trivia; readonly combine?: Trivia } | undefined
}
/** `derivative (x, r, d) = (values…)`: adjoint of the operand x of a reduction with the result r, whose adjoint is d. */
export interface MonoidDerivative extends Node {
  readonly operand: Ident
  readonly result: Ident
  readonly adjoint: Ident
  readonly values: readonly Expr[]
}
export interface MonoidField extends Node {
  readonly name: Ident
  readonly type: TypeName
}
