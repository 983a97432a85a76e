/** Schedules selected when data are bound. */
import type { Ident, Item, Node, Path } from './nodes-base.ts'
import type { Expr } from './nodes-exprs.ts'
import type { ScheduleName, ScheduleParam } from './nodes-schedules.ts'

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
  /** The origin of a stored branch. */
  readonly origin?: string
}
/** The content of a dispatch table. */
export interface DispatchTable {
  readonly kernel: Ident
  /** Identity of the kernel for which the rules were found; null if it is unknown. */
  readonly kernelHash: Ident | null
  readonly origins: readonly RuleOrigin[]
  readonly branches: readonly Branch[]
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
/** `value`, by position, or `name = value`; named arguments come last. */
export interface NamedArg extends Node {
  readonly name: Ident | null
  readonly value: Expr
}
