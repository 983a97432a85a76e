/** Schedules and their steps: the part of the AST that says how kernels run (`nodes.ts` has the rest). */
import type { Ident, Item, Node } from './nodes-base.ts'
import type { AsPart, Expr } from './nodes-exprs.ts'
import type { Instance } from './nodes-instr.ts'

export const BIND_TARGETS = ['block.x', 'block.y', 'block.z', 'thread.x', 'thread.y', 'thread.z'] as const
export type BindTarget = (typeof BIND_TARGETS)[number]

/** `schedule kernel.name(params) { steps }`. */
export interface Schedule extends Item {
  readonly kind: 'schedule'
  readonly kernel: Ident
  readonly name: Ident
  readonly params: readonly ScheduleParam[]
  readonly steps: readonly Step[]
}
export interface ScheduleParam extends Node {
  readonly name: Ident
  readonly default: Expr | null
}

/** A loop or iterator by name, `produce.i` where several iterations have one of that name. */
export interface LoopRef extends Node {
  readonly nest: Ident | null
  readonly name: Ident
}

/** `A as blocks(16)`, or a composition in place: `A as blocks(16) where (cond) + rows`. One part at least. */
export interface AsStep extends Item {
  readonly kind: 'as'
  readonly buffer: Ident
  readonly parts: readonly AsPart[]
  /** `live`: the structure is found in each run. */
  readonly live: Live | null
}
/** `live in place capacity E for product, sum`. */
export interface Live extends Node {
  /** Values stay where they are; else the format's parts have them. */
  readonly inPlace: boolean
  /** `null`: there is room for all that there could be. */
  readonly capacity: Capacity | null
  /** Iterations that are to run over the structure besides those that read the tensor. */
  readonly carried: readonly Ident[]
}
/** The positions that there is room for in each list, or `in all` of them where they lie one after the other. */
export interface Capacity extends Node {
  /** Of each part; one alone is for all parts. */
  readonly positions: readonly Expr[]
  readonly inAll: boolean
}
/** `each part of A as p { steps }`: of the parts that A is stored in, or of the nests that write A. */
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
 * A step that begins with a word of its own, such as `split i by 8 -> (io, ii)`. What each word takes is declared where
 * steps are made (`step-syntax.ts`).
 */
export interface WordStep extends Item {
  readonly kind: 'step'
  readonly word: string
  readonly args: readonly StepArgument[]
}
/** What stands after the word, in order: keywords and signs as they are, and the fields of the step. */
export type StepArgument = string | { readonly field: string; readonly value: StepValue }
export type StepValue =
  | { readonly kind: 'loop'; readonly loop: LoopRef }
  | { readonly kind: 'name'; readonly of: StepName; readonly name: Ident }
  | { readonly kind: 'integer'; readonly value: Expr; readonly operand: boolean }
  | { readonly kind: 'word'; readonly text: string; readonly means: string | number | boolean }
  | { readonly kind: 'binding'; readonly loop: LoopRef; readonly to: BindTarget }
  | { readonly kind: 'instance'; readonly of: 'memory' | 'instr'; readonly use: Instance }
  | { readonly kind: 'list'; readonly parentheses: boolean; readonly items: readonly StepValue[] }
/** What a name in a step is of: what there is already, or something that the step makes. */
export type StepName = 'buffer' | 'nest' | 'size' | 'new loop' | 'new buffer'
/** `use rowwise(8)`. */
export interface UseStep extends Item {
  readonly kind: 'use'
  readonly schedule: Ident
  readonly args: readonly Expr[]
}
export type Step = AsStep | EachStep | MergePartsStep | UseStep | WordStep
