/**
 * The AST: what a `.spt` file says, before any name is resolved. Plain data, one `kind` and one `span` a node;
 * every name that occurs in the source is an `Ident` with a span of its own.
 *
 * The parser guarantees what the types cannot say: as many iteration kinds as iterators, the number of arguments
 * each axis kind takes, two names after `split … ->`, literals that are finite or `inf`/`nan` and never negative
 * (`-1` is `neg` of 1). Whether a name exists, and what it means, is for elaboration.
 */

import type { Span } from './diagnostic.ts'
import type { Ident, Item, Node } from './nodes-base.ts'
import type { Choice } from './nodes-choices.ts'
import type { Format } from './nodes-formats.ts'
import type { Instr, Memory } from './nodes-instr.ts'
import type { Kernel, Monoid } from './nodes-kernels.ts'
import type { Schedule } from './nodes-schedules.ts'
import type { Space } from './nodes-spaces.ts'

export * from './nodes-base.ts'
export type * from './nodes-choices.ts'
export * from './nodes-exprs.ts'
export * from './nodes-formats.ts'
export type * from './nodes-instr.ts'
export * from './nodes-kernels.ts'
export * from './nodes-schedules.ts'
export type * from './nodes-spaces.ts'

export interface File extends Item {
  readonly kind: 'file'
  readonly imports: readonly Import[]
  readonly decls: readonly Decl[]
}

/** `import "path"` (`names` is null: every name) or `import { a, b as c } from "path"`. */
export interface Import extends Item {
  readonly kind: 'import'
  readonly path: { readonly value: string; readonly span: Span }
  readonly names: readonly ImportName[] | null
}
export interface ImportName extends Node {
  readonly name: Ident
  /** The name it has here; the same node as `name` where it is not renamed. */
  readonly local: Ident
}

/** What a kernel has schedules by. */
export type OfKernel = Schedule | Choice | Space
export type Decl = Kernel | Monoid | Format | OfKernel | Memory | Instr
