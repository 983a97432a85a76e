/** Types of elaborated search spaces: names are resolved, conditions are typed, and nothing is decided. */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import type { DeviceQuestion, Statistic } from '../choices/choice-names.ts'
import type { ScheduleParam } from '../schedules/schedule-params.ts'
import type { Schedule } from '../schedules/schedule-types.ts'

export interface Space {
  readonly kernel: string
  readonly name: string
  readonly params: readonly ScheduleParam[]
  readonly formats: ReadonlyMap<string, FormatDecision>
  /** The numbers, in source order. */
  readonly numbers: readonly NumberDecision[]
  /** Conditions on all points: `only where`, and the conditions of numbers. */
  readonly conditions: readonly SpaceCondition[]
  readonly body: readonly SpaceStep[]
  /** The formats, schedules, memories and instructions that the steps name, as for schedules. */
  readonly names: Pick<Schedule, 'formats' | 'uses' | 'calls' | 'memories' | 'instrs' | 'made'>
  /** The statistics in conditions of the space and its nested spaces, by the names of their variables. */
  readonly statistics: ReadonlyMap<string, Statistic>
  /** The device queries in conditions, by the names of their variables. */
  readonly device: ReadonlyMap<string, DeviceQuestion>
  /** The text of the space without comments. */
  readonly text: string
  readonly span: Span
}

export interface SpaceCondition {
  readonly expr: Expr
  /** The source text. */
  readonly text: string
  /**
   * The numbers of the space that the condition mentions. The condition applies only to points that have all these
   * numbers.
   */
  readonly numbers: readonly string[]
  readonly span: Span
}

/** An alternative of a decision. Its text is its value in points. */
export interface Option {
  readonly text: string
  readonly conditions: readonly SpaceCondition[]
  /** The numbers of the space that the option mentions, which are decided with the option. */
  readonly numbers: ReadonlySet<string>
}

export interface FormatDecision {
  readonly name: string
  readonly options: readonly Option[]
}

export interface NumberDecision {
  readonly name: string
  readonly values: NumberList
  /** True if the number has a single value. It is then a name and not a decision, known if the numbers in it are. */
  readonly isFixed: boolean
  /** The earlier numbers that the values mention. */
  readonly numbers: ReadonlySet<string>
  readonly span: Span
}
export type NumberList =
  | {
      readonly kind: 'list'
      readonly entries: readonly {
        readonly value: Expr
        readonly power: Expr | null
        readonly doubling: boolean
      }[]
    }
  | { readonly kind: 'range'; readonly from: Expr; readonly to: Expr; readonly by: Expr | null }

export type SpaceStep =
  | { readonly kind: 'step'; readonly step: Ast.Step; readonly numbers: ReadonlySet<string> }
  /** A use of a schedule or function. Its sizes, the values of `args`, are known with the point; null: as written. */
  | {
      readonly kind: 'use'
      readonly step: Ast.UseStep
      readonly args: readonly (Expr | null)[]
      readonly numbers: ReadonlySet<string>
    }
  /** A step `A as F`, with one step for each option of the format. */
  | {
      readonly kind: 'format'
      readonly format: string
      readonly steps: readonly Ast.AsStep[]
      readonly numbers: ReadonlySet<string>
    }
  | { readonly kind: 'options'; readonly name: string; readonly options: readonly StepOption[] }

export interface StepOption extends Option {
  /** Steps, or a nested space of the same kernel. */
  readonly body: readonly SpaceStep[] | NestedSpace
}

export interface NestedSpace {
  readonly space: Space
  /** The prefix of the names of the nested space's decisions. */
  readonly prefix: string
  /** A value for each parameter of the nested space; null for the default. */
  readonly args: readonly (Expr | null)[]
  readonly span: Span
}

export const isNested = (body: StepOption['body']): body is NestedSpace => !Array.isArray(body)
