/** Schedules that are chosen when data are bound. */
import type { Ident, Item, Node } from './nodes-base.ts'
import type { Expr } from './nodes-exprs.ts'
import type { ScheduleParam } from './nodes-schedules.ts'

/**
 * `schedule kernel.name(params) choose { … }`: the first branch whose condition holds says which schedule it is. With
 * `extends { … }`, without parameters, it stands for the imported choice of its name, which is evaluated where no branch holds.
 */
export interface Choice extends Item {
  readonly kind: 'choice'
  readonly kernel: Ident
  readonly name: Ident
  readonly params: readonly ScheduleParam[]
  readonly isExtension: boolean
  /** In source order; one at least, and one without a condition at most, the last. */
  readonly branches: readonly Branch[]
}
/** `when (cond) schedule(args)`; without a condition, `otherwise schedule(args)`. */
export interface Branch extends Item {
  readonly cond: Expr | null
  /** `when (cond) fastest { … }`: of several, the one that is expected to be; otherwise `calls` has one. */
  readonly isFastest: boolean
  /** In source order. */
  readonly calls: readonly ScheduleCall[]
}
/** `schedule(args)`, of a schedule or a choice. */
export interface ScheduleCall extends Item {
  readonly schedule: Ident
  readonly args: readonly NamedArg[]
}
/** `value`, by its place, or `name = value`; none by place after one by name. */
export interface NamedArg extends Node {
  readonly name: Ident | null
  readonly value: Expr
}
