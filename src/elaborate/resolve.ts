/** What the names in schedules, choices and spaces mean. */
import type { Scope as FileScope } from '../ast/linked-program.ts'
import type * as Ast from '../ast/nodes.ts'
import type { Instr, Memory } from '../ir/instr.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import type { Choice } from './choice-types.ts'
import type { Report } from './diagnostics.ts'
import type { FindFormat } from './format-uses.ts'
import type { Family } from './instances.ts'
import type { Schedule } from './schedule-types.ts'
import type { Space } from './space-types.ts'

/** What has steps: their names mean the same in all of these. */
export type OfSteps = Ast.Schedule | Ast.Space

export interface Resolve {
  readonly report: Report
  readonly scope: FileScope
  /** `null` where the kernel has errors of its own. */
  readonly kernel: Kernel1 | null
  readonly format: FindFormat
  readonly memory: (name: Ast.Ident, plain: readonly string[]) => Family<Memory> | null
  readonly instr: (name: Ast.Ident) => Family<Instr> | null
  /** A schedule of the same kernel; `null` where it has errors or is being resolved. */
  readonly schedule: (s: Ast.Schedule, path: readonly OfSteps[]) => Schedule | null
  /** A choice of the same kernel, likewise. */
  readonly choice: (c: Ast.Choice, path: readonly Ast.Choice[]) => Choice | null
  /** The imported choice that one with `extends` stands for. */
  readonly extended: (c: Ast.Choice) => Ast.Choice | undefined
  /** A space of the same kernel, likewise. */
  readonly space: (s: Ast.Space, path: readonly Ast.Space[]) => Space | null
}
