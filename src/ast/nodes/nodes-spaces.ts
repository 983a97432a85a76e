/**
 * Spaces of schedules: alternatives of formats, schedules and groups of steps, and integer decisions with conditions.
 */
import type { Ident, Item, Node } from './nodes-base.ts'
import type { AsPart, Expr } from './nodes-exprs.ts'
import type { Width } from './nodes-formats.ts'
import type { ScheduleName, ScheduleParam, Step, UseArgument, UseStep } from './nodes-schedules.ts'

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
export interface UseOption extends Node {
  readonly schedule: Ident
  readonly args: readonly UseArgument[]
  readonly results: readonly Ident[]
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
