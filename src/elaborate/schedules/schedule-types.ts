/** Types of schedules with resolved names. */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { AnyFormat } from '../../ir/formats/format.ts'
import type { Instr, Memory } from '../../ir/instructions/instr.ts'
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
  /** The memories and instructions that the steps use, by their names in the schedule's file. */
  readonly memories: ReadonlyMap<string, Family<Memory>>
  readonly instrs: ReadonlyMap<string, Family<Instr>>
  readonly span: Span
}

export interface AppliedFormat {
  readonly format: AnyFormat
  /** Expressions over the schedule's parameters and constants of parts (`p.width`), or names of lists and sets. */
  readonly args: readonly (Ast.Expr | string)[]
}
