/**
 * The AST: what a `.spt` file says, before any name is resolved. Plain data, one `kind` and one `span` a node;
 * every name that occurs in the source is an `Ident` with a span of its own.
 *
 * The parser guarantees what the types cannot say: as many iteration kinds as iterators, the number of arguments
 * each axis kind takes, two names after `split … ->`, literals that are finite or `inf`/`nan` and never negative
 * (`-1` is `neg` of 1). Whether a name exists, and what it means, is for elaboration.
 */
import type { Span } from './diagnostic.ts'
import type { Choice } from './nodes-choices.ts'
import type { Access, Expr } from './nodes-exprs.ts'
import type { Format } from './nodes-formats.ts'
import type { Instr, Memory } from './nodes-instr.ts'
import type { Schedule } from './nodes-schedules.ts'

export type * from './nodes-choices.ts'
export type * from './nodes-exprs.ts'
export type * from './nodes-formats.ts'
export { FORMAT_PARAM_TYPES } from './nodes-formats.ts'
export type * from './nodes-instr.ts'
export type * from './nodes-schedules.ts'

export const SCALAR_TYPES = ['f64', 'f32', 'f16', 'bf16', 'i32', 'u32', 'i8', 'u8', 'bool'] as const
export type ScalarType = (typeof SCALAR_TYPES)[number]

export const ROLES = ['in', 'out', 'inout', 'local'] as const
export type Role = (typeof ROLES)[number]

export const BIND_TARGETS = ['block.x', 'block.y', 'block.z', 'thread.x', 'thread.y', 'thread.z'] as const
export type BindTarget = (typeof BIND_TARGETS)[number]

export interface Node {
  readonly span: Span
}

/** A comment as written, delimiters included, without the line break. */
export interface Comment extends Node {
  readonly text: string
  /** A blank line stands before it. */
  readonly blank?: boolean
}

/** Comments around a node, for the printer; nothing else looks at them. */
export interface Trivia {
  /** A blank line stands before the node, after its comments. */
  readonly blank?: boolean
  /** On the lines before the node. */
  readonly before?: readonly Comment[]
  /** On the line where the node ends. */
  readonly after?: readonly Comment[]
  /** On the line where the node's block opens. */
  readonly open?: readonly Comment[]
  /** Before the brace that closes the node's block; of a file: at its end. */
  readonly end?: readonly Comment[]
  /** The same two for the `else` block. */
  readonly openElse?: readonly Comment[]
  readonly endElse?: readonly Comment[]
}

/** What stands on lines of its own and can carry comments. */
export interface Item extends Node {
  readonly trivia?: Trivia | undefined
}

export interface Ident extends Node {
  readonly name: string
}
export interface TypeName extends Node {
  readonly name: ScalarType
}
/** A dimension or axis of a format; `o[k]`: one of a list of them. */
export interface Element extends Ident {
  readonly index?: Expr | undefined
}
/** A name; `o...`: all elements of a list, in order. */
export interface ListName extends Ident {
  readonly all?: true | undefined
}
/** `for name from a to b`, both ends included; without `to`, up to the last of the format's list of dimensions. */
export interface For extends Node {
  readonly name: Ident
  readonly from: Expr
  readonly to: Expr | null
}

// Files --------------------------------------------------------------------------------------------------------

export interface File extends Item {
  readonly kind: 'file'
  readonly imports: readonly Import[]
  readonly decls: readonly Decl[]
}

/** `import "path"` (`names` is null: every name) or `import { a, b as c } from "path"`. */
export interface Import extends Item {
  readonly kind: 'import'
  readonly path: { readonly value: string; readonly span: Span }
  readonly names: readonly ImportName[] | null
}
export interface ImportName extends Node {
  readonly name: Ident
  /** The name it has here; the same node as `name` where it is not renamed. */
  readonly local: Ident
}

export type Decl = Kernel | Monoid | Format | Schedule | Choice | Memory | Instr

// Kernels ------------------------------------------------------------------------------------------------------

export interface Kernel extends Item {
  readonly kind: 'kernel'
  readonly name: Ident
  readonly params: readonly Param[]
  /** In source order. */
  readonly members: readonly Member[]
}
export type Member = AxisDecl | BufferDecl | Iterate

/** `type` is `size` or the type of a scalar operand. */
export interface Param extends Node {
  readonly name: Ident
  readonly type: { readonly name: ScalarType | 'size'; readonly span: Span }
}

export const AXIS_CLAIMS = ['full', 'compact'] as const
export interface AxisClaim extends Node {
  readonly name: (typeof AXIS_CLAIMS)[number]
}

export interface AxisDecl extends Item {
  readonly kind: 'axis'
  /** In a kernel without an index, as are parents. */
  readonly name: Element
  readonly def: AxisDef
  /** Coordinate of positions without an element; only of `sparse_fixed` axes of formats. */
  readonly padding?: Expr | undefined
  /** One axis for each number; only in formats. */
  readonly each?: For | undefined
  /** Each at most once. */
  readonly claims: readonly AxisClaim[]
}

export interface DenseFixedDef extends Node {
  readonly kind: 'dense_fixed'
  readonly parent: Element | null
  readonly extent: Expr
}
export interface BitmapDef extends Node {
  readonly kind: 'bitmap'
  readonly parent: Element
  readonly extent: Expr
}
/** `extent` bounds the lengths. */
export interface DenseVariableDef extends Node {
  readonly kind: 'dense_variable'
  readonly parent: Element
  readonly extent: Expr
}
export interface SparseFixedDef extends Node {
  readonly kind: 'sparse_fixed'
  readonly parent: Element
  readonly extent: Expr
  readonly width: Expr
  readonly ordered: boolean
  readonly unique: boolean
}
export interface SparseVariableDef extends Node {
  readonly kind: 'sparse_variable'
  readonly parent: Element | null
  readonly extent: Expr
  readonly ordered: boolean
  readonly unique: boolean
}
/** Two members at least. */
export interface FusedDef extends Node {
  readonly kind: 'fused'
  readonly members: readonly Ident[]
}
export interface AttachedDef extends Node {
  readonly kind: 'attached'
  readonly base: Ident
  readonly parent: Ident
}
export interface GatheredDef extends Node {
  readonly kind: 'gathered'
  readonly base: Ident
  readonly buffer: Ident
}
export type AxisDef =
  | DenseFixedDef
  | DenseVariableDef
  | SparseFixedDef
  | SparseVariableDef
  | BitmapDef
  | FusedDef
  | AttachedDef
  | GatheredDef

export interface BufferDecl extends Item {
  readonly kind: 'buffer'
  readonly name: Ident
  readonly type: TypeName
  /** None: a scalar buffer. */
  readonly axes: readonly Ident[]
  readonly role: { readonly name: Role; readonly span: Span }
  /** A literal, possibly negated (see `literalValue`); null where not given. */
  readonly fill: Expr | null
  readonly accumulate: TypeName | null
}

// Statements ---------------------------------------------------------------------------------------------------

export type Stmt = Iterate | Assign | Reduce | Let | If

/** `iterate NAME [iters] as KINDS where (cond) { body }`; no iterators: the body runs once. */
export interface Iterate extends Item {
  readonly kind: 'iterate'
  readonly name: Ident
  readonly iters: readonly Iter[]
  /** The body runs only where this holds. */
  readonly where: Expr | null
  readonly body: readonly Stmt[]
}

/** `name in axis`; where only the axis is written, both are the same node. `mode` is its letter after `as`. */
export interface Iter extends Node {
  readonly name: Ident
  readonly axis: Ident
  readonly mode: 'S' | 'R'
}

/** `target = value`, or tuples of both; as many values as targets. */
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

/** `combine (left, right) = (result…)`; as many components in `identity` and `result` as there are fields. */
export interface Monoid extends Item {
  readonly kind: 'monoid'
  readonly name: Ident
  readonly fields: readonly MonoidField[]
  readonly identity: readonly Expr[]
  readonly left: Ident
  readonly right: Ident
  readonly result: readonly Expr[]
  /** Comments of the two lines. */
  readonly lines?: { readonly identity?: Trivia; readonly combine?: Trivia } | undefined
}
export interface MonoidField extends Node {
  readonly name: Ident
  readonly type: TypeName
}

/** The value of a literal, negated or not; undefined for anything else. */
export function literalValue(e: Expr): number | boolean | undefined {
  if (e.kind === 'number' || e.kind === 'bool') return e.value
  if (e.kind === 'unary' && e.op === 'neg' && e.x.kind === 'number') return -e.x.value
  return undefined
}
