/** Spaces of schedules, as far as a text says: names resolved, conditions typed, nothing decided. */
import type { Span } from '../ast/diagnostic.ts'
import type * as Ast from '../ast/nodes.ts'
import type { Expr } from '../ir/expr.ts'
import type { DeviceQuestion, Statistic } from './choice-names.ts'
import type { ScheduleParam } from './schedule-params.ts'
import type { Schedule } from './schedule-types.ts'

/** What the schedules of a space come of: a point says which options and numbers. */
export interface Space {
  readonly kernel: string
  readonly name: string
  readonly params: readonly ScheduleParam[]
  readonly formats: ReadonlyMap<string, FormatDecision>
  /** In source order. */
  readonly numbers: readonly NumberDecision[]
  /** On all points: `only where`, and those of numbers. */
  readonly conditions: readonly SpaceCondition[]
  readonly body: readonly SpaceStep[]
  /** What the steps name, as schedules have it. */
  readonly names: Pick<Schedule, 'formats' | 'uses' | 'memories' | 'instrs'>
  /** What conditions, here and in nested spaces, ask of the data, by the names of the variables that stand for it. */
  readonly statistics: ReadonlyMap<string, Statistic>
  /** The same of the device. */
  readonly device: ReadonlyMap<string, DeviceQuestion>
  /** As the language writes it, without comments. */
  readonly text: string
  readonly span: Span
}

export interface SpaceCondition {
  readonly expr: Expr
  /** As written. */
  readonly text: string
  /** The numbers of the space that it mentions: it says nothing where one of them is not decided. */
  readonly numbers: readonly string[]
  readonly span: Span
}

/** Something to be chosen: as it is written, which is its value in points. */
export interface Option {
  readonly text: string
  readonly conditions: readonly SpaceCondition[]
  /** The numbers of the space that it mentions, which are decided with it. */
  readonly numbers: ReadonlySet<string>
}

export interface FormatDecision {
  readonly name: string
  readonly options: readonly Option[]
}

export interface NumberDecision {
  readonly name: string
  readonly values: NumberList
  /** One value is written: a name for it, which is no decision and known wherever what it mentions is. */
  readonly isFixed: boolean
  /** The numbers before it that its values mention. */
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
  /** A schedule, whose arguments are known with the point. */
  | {
      readonly kind: 'use'
      readonly step: Ast.UseStep
      readonly args: readonly Expr[]
      readonly numbers: ReadonlySet<string>
    }
  /** `A as F`: a step for each option of the format. */
  | {
      readonly kind: 'format'
      readonly format: string
      readonly steps: readonly Ast.AsStep[]
      readonly numbers: ReadonlySet<string>
    }
  | { readonly kind: 'options'; readonly name: string; readonly options: readonly StepOption[] }

export interface StepOption extends Option {
  /** Steps, or a space of the same kernel. */
  readonly body: readonly SpaceStep[] | NestedSpace
}

export interface NestedSpace {
  readonly space: Space
  /** What the names of its decisions begin with. */
  readonly prefix: string
  /** A value for each of its parameters; `null`: its default. */
  readonly args: readonly (Expr | null)[]
  readonly span: Span
}

export const isNested = (body: StepOption['body']): body is NestedSpace => !Array.isArray(body)
