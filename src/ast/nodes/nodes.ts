/**
 * The AST of a `.spt` file before name resolution. Plain data, one `kind` and one `span` per node; every name in the
 * source is an `Ident` with its own span.
 *
 * The parser guarantees invariants beyond the types: one iteration kind per iterator, the right number of arguments for
 * each axis kind, two names after `split … ->`, literals that are finite or `inf`/`nan` and never negative (`-1` is
 * `neg` of 1). Elaboration resolves names.
 */
import type { Ident, Item, Node, Path } from './nodes-base.ts'
import type { Format } from './nodes-formats.ts'
import type { Instr, Memory } from './nodes-instr.ts'
import type { Kernel, Monoid } from './nodes-kernels.ts'
import type { Dispatch, DispatchTable, Schedule, ScheduleFunction, Space } from './nodes-schedules.ts'

export * from './nodes-base.ts'
export * from './nodes-exprs.ts'
export * from './nodes-formats.ts'
export type * from './nodes-instr.ts'
export * from './nodes-kernels.ts'
export * from './nodes-schedules.ts'

export interface File extends Item {
  readonly kind: 'file'
  readonly imports: readonly Import[]
  readonly decls: readonly (Decl | DispatchTable)[]
}

/** `import "path"` (`names` is null: every name) or `import { a, b as c } from "path"`. */
export interface Import extends Item {
  readonly kind: 'import'
  readonly path: Path
  readonly names: readonly ImportName[] | null
}
export interface ImportName extends Node {
  readonly name: Ident
  /** The local name; the same node as `name` unless it is renamed. */
  readonly local: Ident
}

/** A set of schedules of a kernel, with the way to decide on one: rules, or a search. */
export type Choice = Dispatch | Space
/** Declarations that belong to a kernel. */
export type KernelSchedule = Schedule | Choice
export type Decl = Kernel | Monoid | Format | ScheduleFunction | KernelSchedule | Memory | Instr
