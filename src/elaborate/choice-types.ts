/** What choices among schedules become: branches with conditions over sizes, statistics and the device. */
import type { Span } from '../ast/diagnostic.ts'
import type { Expr } from '../ir/expr.ts'
import type { DeviceQuestion, Statistic } from './choice-names.ts'
import type { ScheduleParam } from './schedule-params.ts'
import type { Schedule } from './schedule-types.ts'

/**
 * A schedule that is decided when data are bound: the first branch whose conditions all hold. Branches of choices that it calls are
 * among its own.
 */
export interface Choice {
  readonly kernel: string
  readonly name: string
  readonly params: readonly ScheduleParam[]
  readonly branches: readonly Branch[]
  /** What the expressions of the branches ask of the data, by the names of the variables that stand for it. */
  readonly statistics: ReadonlyMap<string, Statistic>
  /** The same of the device. */
  readonly device: ReadonlyMap<string, DeviceQuestion>
  readonly span: Span
}

export interface Branch {
  /** What stands between its `and`s; none for `otherwise`. */
  readonly conditions: readonly Condition[]
  /** One, or those of which the fastest is taken; not empty. */
  readonly calls: readonly ScheduleCall[]
  readonly span: Span
}

export interface ScheduleCall {
  readonly schedule: Schedule
  /** An integer for each parameter; `null`: its default. */
  readonly args: readonly (Expr | null)[]
  readonly span: Span
  /** The choice whose branch this is, where another calls it: `kernel.auto`. */
  readonly from?: string | undefined
}

export interface Condition {
  /** Over parameters, sizes, statistics and what is asked of the device. */
  readonly expr: Expr
  /** As written. */
  readonly text: string
  readonly span: Span
}
