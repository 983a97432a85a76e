/** Types of elaborated schedules, and of choices among them, with resolved names. */

import type { Diagnostic, Span } from '../../ast/diagnostics/diagnostic.ts'
import type { ExpandedCall } from '../../ast/nodes/expanded-calls.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { RuleOrigin } from '../../ast/nodes/nodes.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import type { AnyFormat } from '../../ir/formats/format.ts'
import type { Instr, Memory } from '../../ir/instructions/instr.ts'
import type { DeviceQuestion, Statistic } from '../choices/choice-names.ts'
import type { Family } from '../instructions/instances.ts'
import type { ScheduleParam } from './schedule-params.ts'

/** A schedule or a schedule function, whose names are resolved; its steps stay AST. */
export interface Schedule {
  /** Null for a schedule function. */
  readonly kernel: string | null
  readonly name: string
  readonly params: readonly ScheduleParam[]
  /** New names of a function's steps, which `use` may replace. */
  readonly results: readonly string[]
  /** The new names of the steps, including those of used schedules. */
  readonly made: ReadonlySet<string>
  readonly steps: readonly Ast.Step[]
  /** The format of each `as` step, also in blocks. */
  readonly formats: ReadonlyMap<Ast.AsStep, AppliedFormat>
  /** The schedules that the steps use, by their names in the schedule's file. */
  readonly uses: ReadonlyMap<string, Schedule>
  /** For each name of a schedule of a called kernel, in a step: the calls, and the schedule of each. */
  readonly calls: ReadonlyMap<Ast.Ident, readonly CalleeSchedule[]>
  /** The memories and instructions that the steps use, by their names in the schedule's file. */
  readonly memories: ReadonlyMap<string, Family<Memory>>
  readonly instrs: ReadonlyMap<string, Family<Instr>>
  readonly span: Span
}

export interface CalleeSchedule {
  readonly call: ExpandedCall
  readonly schedule: Schedule
}

export interface AppliedFormat {
  readonly format: AnyFormat
  /** Expressions over the schedule's parameters and constants of parts (`p.width`), or names of lists and sets. */
  readonly args: readonly (Ast.Expr | string)[]
}

// Types of elaborated choices among schedules: branches with conditions over sizes, statistics and the
// device.

/**
 * A dispatch to a schedule when data are bound: to that of the first branch whose conditions all hold. The branches of
 * called choices are included.
 */
export interface Choice {
  readonly kernel: string
  readonly name: string
  readonly params: readonly ScheduleParam[]
  readonly branches: readonly Branch[]
  /** The statistics in the expressions of the branches, by the names of their variables. */
  readonly statistics: ReadonlyMap<string, Statistic>
  readonly warnings?: readonly Diagnostic[]
  /** The device queries in the expressions of the branches, by the names of their variables. */
  readonly device: ReadonlyMap<string, DeviceQuestion>
  /** The file of the branches; null for branches in the text. */
  readonly table: StoredDispatch | null
  readonly span: Span
}

export interface StoredDispatch {
  readonly path: string
  /** Identity of the kernel for which the branches were found; null if it is unknown. */
  readonly hash: Ast.Path | null
  readonly origins: readonly RuleOrigin[]
  readonly branches: readonly Ast.Branch[]
}

export interface Branch {
  /** The operands of the condition's `and`s; an empty list for `otherwise`. */
  readonly conditions: readonly Condition[]
  /** The called schedule, or the calls among which the fastest is measured; never empty. */
  readonly calls: readonly ScheduleCall[]
  readonly span: Span
}

export interface ScheduleCall {
  readonly schedule: Schedule
  /** An integer for each parameter of the called schedule; null for the parameter's default. */
  readonly args: readonly (Expr | null)[]
  readonly span: Span
  /**
   * The name of the called choice that has this branch, such as `kernel.auto`; undefined for a branch of the choice
   * itself.
   */
  readonly from?: string | undefined
  /** Origin of a branch that is stored in a file. */
  readonly origin?: RuleOrigin | undefined
}

export interface Condition {
  /** The condition over parameters, sizes, statistics and device queries. */
  readonly expr: Expr
  /** The source text. */
  readonly text: string
  readonly span: Span
}
