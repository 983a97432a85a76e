/** Resolution of names in schedules, choices and spaces. */
import type { Scope as FileScope } from '../../ast/imports/linked-program.ts'
import type { ExpandedCall } from '../../ast/nodes/expanded-calls.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Instr, Memory } from '../../ir/instructions/instr.ts'
import type { FindFormat } from '../formats/format-uses.ts'
import type { Family } from '../instructions/instances.ts'
import type { Space } from '../spaces/space-types.ts'
import type { Choice, Schedule } from './schedule-types.ts'

/** A declaration with steps, in which names have the same meaning. */
export type OfSteps = Ast.Schedule | Ast.ScheduleFunction | Ast.Space

export interface Resolve {
  /** The schedules of the kernel in scope, by name; undefined for a function. */
  readonly schedules: ReadonlyMap<string, Ast.KernelSchedule> | undefined
  /** The schedules of a called kernel by its name in scope; undefined for another kernel of this name. */
  readonly schedulesOf: (
    kernel: Ast.Ident,
    call: ExpandedCall,
  ) => ReadonlyMap<string, Ast.KernelSchedule> | undefined
  /** The schedule functions in scope, and the names that several imported files declare. */
  readonly functions: FileScope['functions']
  readonly ambiguous: FileScope['ambiguous']
  /** The kernel; null if it has errors, and for a schedule function. */
  readonly kernel: Kernel1 | null
  readonly format: FindFormat
  readonly memory: (name: Ast.Ident, plain: readonly string[]) => Family<Memory> | null
  readonly instr: (name: Ast.Ident) => Family<Instr> | null
  /** A schedule of the same kernel or a function; null if it has errors or is being resolved. */
  readonly schedule: (s: Ast.Schedule | Ast.ScheduleFunction, path: readonly OfSteps[]) => Schedule | null
  /** A choice of the same kernel; null if it has errors or is being resolved. */
  readonly choice: (c: Ast.Dispatch, path: readonly Ast.Dispatch[]) => Choice | null
  /** The imported choice that a choice with `extends` extends; undefined for other choices. */
  readonly extended: (c: Ast.Dispatch) => Ast.Dispatch | undefined
  /** The dispatch tables in the file that a dispatch names. */
  readonly tables: (c: Ast.Dispatch) => readonly Ast.DispatchTable[]
  /** A space of the same kernel; null if it has errors or is being resolved. */
  readonly space: (s: Ast.Space, path: readonly Ast.Space[]) => Space | null
}
