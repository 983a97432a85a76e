/** What schedules are once their names are resolved. */
import type { Span } from '../ast/diagnostic.ts'
import type * as Ast from '../ast/nodes.ts'
import type { AnyFormat } from '../ir/format.ts'
import type { Instr, Memory } from '../ir/instr.ts'
import type { Family } from './instances.ts'
import type { ScheduleParam } from './schedule-params.ts'

/** A schedule whose names are resolved; its steps stay AST. */
export interface Schedule {
  readonly kernel: string
  readonly name: string
  readonly params: readonly ScheduleParam[]
  readonly steps: readonly Ast.Step[]
  /** What each `as` among the steps, those in blocks included, applies. */
  readonly formats: ReadonlyMap<Ast.AsStep, AppliedFormat>
  /** The schedules that the steps name, under the names of the schedule's file. */
  readonly uses: ReadonlyMap<string, Schedule>
  /** The memories and instructions that the steps name, under the names of the schedule's file. */
  readonly memories: ReadonlyMap<string, Family<Memory>>
  readonly instrs: ReadonlyMap<string, Family<Instr>>
  readonly span: Span
}

export interface AppliedFormat {
  readonly format: AnyFormat
  /** Expressions over the schedule's parameters and constants of parts (`p.width`); names of lists and sets. */
  readonly args: readonly (Ast.Expr | string)[]
}
