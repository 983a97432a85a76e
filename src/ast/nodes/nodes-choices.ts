/** Schedules selected when data are bound. */
import type { Ident, Item, Node } from './nodes-base.ts'
import type { Expr } from './nodes-exprs.ts'
import type { ScheduleName, ScheduleParam } from './nodes-schedules.ts'

/**
 * `schedule kernel.name(params) choose { … }`: dispatches to the first branch whose condition holds. With `extends { …
 * }`, without parameters, it extends the imported choice of its name, which is evaluated if no branch holds.
 */
export interface Choice extends Item, ScheduleName {
  readonly kind: 'choice'
  readonly params: readonly ScheduleParam[]
  readonly isExtension: boolean
  /** In source order, at least one; only the last may have no condition. */
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
}
/** `schedule(args)`, of a schedule or a choice. */
export interface ScheduleCall extends Item {
  readonly schedule: Ident
  readonly args: readonly NamedArg[]
}
/** `value`, by position, or `name = value`; named arguments come last. */
export interface NamedArg extends Node {
  readonly name: Ident | null
  readonly value: Expr
}
