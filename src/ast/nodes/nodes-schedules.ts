/** Schedules and their steps: the part of the AST that describes the execution of kernels (`nodes.ts` has the rest). */
import type { Ident, Item, Node, Path, TypeName } from './nodes-base.ts'
import type { AsPart, Expr, NamedArg, NumberLit } from './nodes-exprs.ts'
import type { Width } from './nodes-formats.ts'
import type { Instance } from './nodes-instr.ts'

export const BIND_TARGETS = ['block.x', 'block.y', 'block.z', 'thread.x', 'thread.y', 'thread.z'] as const
export type BindTarget = (typeof BIND_TARGETS)[number]

/** `scale<f16 or bf16>.gpu`: the kernel and the name of a schedule or space. */
export interface ScheduleName {
  readonly kernel: Ident
  /** For each type parameter of the kernel, its types here; empty: for all types. */
  readonly types: readonly (readonly TypeName[])[]
  readonly name: Ident
}

/** `schedule kernel.name(params) { steps }`. */
export interface Schedule extends Item, ScheduleName {
  readonly kind: 'schedule'
  readonly params: readonly ScheduleParam[]
  readonly steps: readonly Step[]
}
/** Kinds of parameters. A size is an integer. Other kinds are for functions. */
export const PARAM_KINDS = ['size', 'loop', 'nest', 'buffer', 'memory', 'instr', 'type'] as const
export type ParamKind = (typeof PARAM_KINDS)[number]
/** `rows`, `rows = 8`, `i: loop`. */
export interface ScheduleParam extends Node {
  readonly name: Ident
  readonly kind: ParamKind
  /** Only for sizes. */
  readonly default: Expr | null
}
/**
 * `schedule threads(i: loop, rows) -> (io, ii) { steps }`: a schedule function. The steps apply to the loops, loop
 * nests and buffers that `use` passes.
 */
export interface ScheduleFunction extends Item {
  readonly kind: 'function'
  readonly name: Ident
  readonly params: readonly ScheduleParam[]
  /** New names of steps, which `use` may replace. */
  readonly results: readonly Ident[]
  readonly steps: readonly Step[]
}

/** A loop or iterator by name; `produce.i` if several iterations have an `i`. */
export interface LoopRef extends Node {
  readonly nest: Ident | null
  readonly name: Ident
}

/** `A as blocks(16)`, or a composition in place: `A as blocks(16) where (cond) + rows`. At least one part. */
export interface AsStep extends Item {
  readonly kind: 'as'
  readonly buffer: Ident
  readonly parts: readonly AsPart[]
  /** `live`: the structure is built on the device at every run. */
  readonly live: Live | null
  /**
   * `for product, sum`. Under `live`, further iterations to run over the structure, in addition to those that read the
   * tensor. Otherwise the iterations that use a copy of the tensor in this format.
   */
  readonly carried: readonly Ident[]
}
/** `live in place capacity E`. */
export interface Live extends Node {
  /** Values are not copied; otherwise they are stored in the format's parts. */
  readonly inPlace: boolean
  /** `null`: capacity for the largest possible number of elements. */
  readonly capacity: Capacity | null
}
/** The capacity of each list in positions, or `in all`: of all lists together, which are contiguous. */
export interface Capacity extends Node {
  /** One expression per part; a single one applies to all parts. */
  readonly positions: readonly Expr[]
  readonly inAll: boolean
}
/** `each part of A as p { steps }`: for the parts that A is stored in, or for the nests that write A. */
export interface EachStep extends Item {
  readonly kind: 'each'
  readonly what: 'part' | 'nest'
  readonly buffer: Ident
  readonly as: Ident
  readonly steps: readonly Step[]
}
/** `merge parts of A`. */
export interface MergePartsStep extends Item {
  readonly kind: 'merge_parts'
  readonly buffer: Ident
}
/**
 * A step that begins with a keyword, such as `split i by 8 -> (io, ii)`. `step-syntax.ts` declares the operands of each
 * keyword.
 */
export interface WordStep extends Item {
  readonly kind: 'step'
  readonly word: string
  readonly args: readonly StepArgument[]
}
/** An argument after the keyword, in source order: a keyword or sign, or a field of the step. */
export type StepArgument = string | { readonly field: string; readonly value: StepValue }
export type StepValue =
  | { readonly kind: 'loop'; readonly loop: LoopRef }
  | { readonly kind: 'name'; readonly of: StepName; readonly name: Ident }
  | { readonly kind: 'integer'; readonly value: Expr; readonly operand: boolean }
  | { readonly kind: 'word'; readonly text: string; readonly means: string | number | boolean }
  | { readonly kind: 'binding'; readonly loop: LoopRef; readonly to: BindTarget }
  | { readonly kind: 'instance'; readonly of: 'memory' | 'instr'; readonly use: Instance }
  | { readonly kind: 'list'; readonly parentheses: boolean; readonly items: readonly StepValue[] }
  | StepValues
/**
 * Two or more values in the place of a value: the step applies to each, in order. The groups of a step have the same
 * length. `(a, b).i` are the loops `a.i` and `b.i`, `(a, b).(i, j)` the lists `(a.i, a.j)` and `(b.i, b.j)`.
 */
interface StepValues extends Node {
  readonly kind: 'group'
  readonly items: readonly StepValue[]
}
/** The kind of a name in a step: an existing object, or one that the step creates. */
export type StepName = 'buffer' | 'nest' | 'size' | 'new loop' | 'new buffer'
/**
 * `use rowwise(8)`, `use threads(sum.i, 8) -> (block, row)`. `use layer.gpu(8) at encoder[3].layer` applies a schedule of a
 * called kernel to a call; without `at`, to all calls of the kernel.
 */
export interface UseStep extends Item, UsedCall {
  readonly kind: 'use'
}
export interface UsedCall {
  readonly kernel?: Ident
  readonly at?: Ident
  readonly schedule: Ident
  /** A loop is a name or a field. */
  readonly args: readonly NamedArg<UseArgument>[]
  /** Names of the results; empty if they are not named. */
  readonly results: readonly Ident[]
}
export type UseArgument = Expr | UseGroup
/** Two or more loops or names: the function applies to each, in order. */
interface UseGroup extends Node {
  readonly kind: 'group'
  readonly items: readonly Expr[]
}
export type Step = AsStep | EachStep | MergePartsStep | UseStep | WordStep

// Schedules selected when data are bound.

/**
 * `schedule kernel.name(params) choose { … }`: dispatches to the first branch whose condition holds. With `choose from
 * "path"`, a dispatch table has the branches. With `extends { … }`, without parameters, it extends the imported choice
 * of its name, which is evaluated if no branch holds.
 */
export interface Dispatch extends Item, ScheduleName {
  readonly kind: 'choice'
  readonly by: 'rules'
  readonly params: readonly ScheduleParam[]
  readonly isExtension: boolean
  /** The file of the branches; null if they are in the text. */
  readonly table: Path | null
  /** For a choice of a base kernel in an extension of this kernel: the base, whose table is read. */
  readonly inheritedFrom?: string
  /** In source order, at least one without `table`; only the last may have no condition. */
  readonly branches: readonly Branch[]
}
/** `when (cond) schedule(args)`; without a condition, `otherwise schedule(args)`. */
export interface Branch extends Item {
  readonly cond: Expr | null
  /**
   * `when (cond) fastest { … }`: the schedule predicted to be fastest among several; otherwise `calls` has one element.
   */
  readonly isFastest: boolean
  /** In source order. */
  readonly calls: readonly ScheduleCall[]
  /** In a dispatch table, the name of an origin. */
  readonly origin: Path | null
}
/** `dispatch kernel hash "…" { origins and branches }`: a dispatch table, whose branches `choose from` reads. */
export interface DispatchTable extends Item, Pick<ScheduleName, 'kernel' | 'types'> {
  readonly kind: 'table'
  /** Identity of the kernel for which the rules were found; null if it is unknown. */
  readonly hash: Path | null
  readonly items: readonly (Origin | Branch)[]
}
/** `origin "name" measured { fields }`: elaboration checks the fields and makes a `RuleOrigin`. */
export interface Origin extends Item {
  readonly name: Path
  readonly status: Ident
  readonly fields: readonly OriginField[]
}
/** `date "2026-11-29"`, `matrices "cora", "citeseer"`, `trials 128`. */
export interface OriginField extends Item {
  readonly name: Ident
  readonly values: readonly (Path | NumberLit)[]
}
/** The search or commit that a stored branch comes from. `transferred`: a search has no record, and `note` describes the source. */
export interface RuleOrigin {
  readonly name: string
  readonly status: 'measured' | 'transferred'
  readonly device?: string
  readonly matrices?: readonly string[]
  /** `YYYY-MM-DD` */
  readonly date?: string
  readonly trials?: number
  readonly commit?: string
  readonly command?: string
  readonly note?: string
}
/** `schedule(args)`, of a schedule or a choice. */
export interface ScheduleCall extends Item {
  readonly schedule: Ident
  readonly args: readonly NamedArg[]
}
// Spaces of schedules: alternatives of formats, schedules and groups of steps, and integer decisions with
// conditions.

/** `schedule kernel.name(params) choose by search { items }`: the set of schedules obtained from all decisions of its items. */
export interface Space extends Item, ScheduleName {
  readonly kind: 'choice'
  readonly by: 'search'
  readonly params: readonly ScheduleParam[]
  readonly items: readonly SpaceItem[]
}
export type SpaceItem = FormatDecision | NumberDecision | Only | SpaceStep

/** `format F in rows, blocks(b) where (cond)`: the formats that `A as F` may apply. At least one option. */
export interface FormatDecision extends Item {
  readonly kind: 'formats'
  readonly name: Ident
  readonly options: readonly FormatOption[]
}
/** `blocks(b)`, or a composition in parentheses. */
export interface FormatOption extends Node {
  readonly parts: readonly AsPart[]
  /** Condition on other decisions, sizes, statistics and the device. */
  readonly where: Expr | null
}
/** `lanes in 1, 2 .. 32 where (cond)`, `k from 2 to 6 by 2`. */
export interface NumberDecision extends Item {
  readonly kind: 'numbers'
  readonly name: Ident
  readonly values: NumberList
  readonly where: Expr | null
}
export type NumberList =
  /** At least one width, with the syntax of `bucket`. */
  | { readonly kind: 'list'; readonly widths: readonly Width[] }
  | { readonly kind: 'range'; readonly from: Expr; readonly to: Expr; readonly by: Expr | null }
/** `only where (cond)`. */
export interface Only extends Item {
  readonly kind: 'only'
  readonly cond: Expr
}

export type SpaceStep = UseAlternatives | Either | Exclude<Step, UseStep>
/** `use rows(4) where (cond) or blocks`: schedules or spaces of the kernel. At least one option. */
export interface UseAlternatives extends Item {
  readonly kind: 'uses'
  readonly options: readonly UseOption[]
}
export interface UseOption extends Node, UsedCall {
  readonly where: Expr | null
}
/** `either { steps } or { steps } where (cond)`; at least one group. */
export interface Either extends Item {
  readonly kind: 'either'
  readonly groups: readonly StepGroup[]
}
export interface StepGroup extends Item {
  readonly steps: readonly SpaceStep[]
  readonly where: Expr | null
}
