/** Schedules and their steps: the part of the AST that says how kernels run (`nodes.ts` has the rest). */
import type { Span } from './diagnostic.ts'
import type { Ident, Item, Node } from './nodes-base.ts'
import type { Expr } from './nodes-exprs.ts'
import type { FormatUse } from './nodes-formats.ts'
import type { Instance } from './nodes-instr.ts'

export const BIND_TARGETS = ['block.x', 'block.y', 'block.z', 'thread.x', 'thread.y', 'thread.z'] as const
export type BindTarget = (typeof BIND_TARGETS)[number]

/** `schedule kernel.name(params) { steps }`. */
export interface Schedule extends Item {
  readonly kind: 'schedule'
  readonly kernel: Ident
  readonly name: Ident
  readonly params: readonly ScheduleParam[]
  readonly steps: readonly Step[]
}
export interface ScheduleParam extends Node {
  readonly name: Ident
  readonly default: Expr | null
}

/** A loop or iterator by name, `produce.i` where several iterations have one of that name. */
export interface LoopRef extends Node {
  readonly nest: Ident | null
  readonly name: Ident
}

/** `A as blocks(16)`, or a composition in place: `A as blocks(16) where (cond) + rows`. One part at least. */
export interface AsStep extends Item {
  readonly kind: 'as'
  readonly buffer: Ident
  readonly parts: readonly AsPart[]
}
export interface AsPart extends FormatUse {
  readonly where: Expr | null
}
/** `each part of A as p { steps }`. */
export interface EachStep extends Item {
  readonly kind: 'each'
  readonly buffer: Ident
  readonly as: Ident
  readonly steps: readonly Step[]
}
/** `merge parts of A`. */
export interface MergePartsStep extends Item {
  readonly kind: 'merge_parts'
  readonly buffer: Ident
}
/** `merge (first, second)`: nests by name; one at least. */
export interface MergeStep extends Item {
  readonly kind: 'merge'
  readonly nests: readonly Ident[]
}
/** `reorder (f, j)`. */
export interface ReorderStep extends Item {
  readonly kind: 'reorder'
  readonly loops: readonly LoopRef[]
}
/** `serpentine io by 33`. */
export interface SerpentineStep extends Item {
  readonly kind: 'serpentine'
  readonly loop: LoopRef
  readonly by: Expr
}
/** `fuse (i, j) -> ij`. */
export interface FuseStep extends Item {
  readonly kind: 'fuse'
  readonly loops: readonly LoopRef[]
  readonly into: Ident | null
}
/** `attach k to e`. */
export interface AttachStep extends Item {
  readonly kind: 'attach'
  readonly loop: LoopRef
  readonly to: LoopRef
}
/** `split i by 8 -> (io, ii)`; two names. */
export interface SplitStep extends Item {
  readonly kind: 'split'
  readonly loop: LoopRef
  readonly by: Expr
  readonly into: readonly [Ident, Ident] | null
}
/** `tile (i, f) by (8, 32) -> (io, fo, ii, fi)`; a factor for each loop, two names for each. */
export interface TileStep extends Item {
  readonly kind: 'tile'
  readonly loops: readonly LoopRef[]
  readonly by: readonly Expr[]
  readonly into: readonly Ident[] | null
}
/** `bind io to block.x, ii to thread.x`. */
export interface BindStep extends Item {
  readonly kind: 'bind'
  readonly binds: readonly Binding[]
}
export interface Binding extends Node {
  readonly loop: LoopRef
  readonly to: { readonly name: BindTarget; readonly span: Span }
}
/** `unroll j by 4` or `unroll j by 4 predicated`; without `by`, whole. */
export interface UnrollStep extends Item {
  readonly kind: 'unroll'
  readonly loop: LoopRef
  readonly by: Expr | null
  readonly predicated: boolean
}
/** `vectorize f`. */
export interface VectorizeStep extends Item {
  readonly kind: 'vectorize'
  readonly loop: LoopRef
}
/** `require d % 4 == 0` or `require d == 128`. */
export interface RequireStep extends Item {
  readonly kind: 'require'
  readonly size: Ident
  readonly relation: 'multiple' | 'equal'
  readonly by: Expr
}
/** How a copy is laid out and filled: `transposed stride 36 by 4 padded 0`, each part optional. */
export interface CopyLayout {
  readonly transposed: boolean
  readonly stride: Expr | null
  readonly by: Expr | null
  readonly padded: Expr | null
}
/** `cache_read B at jo in shared stride 36 -> Bs`. */
export interface CacheReadStep extends Item {
  readonly kind: 'cache_read'
  readonly buffer: Ident
  readonly at: LoopRef
  readonly memory: Instance
  readonly layout: CopyLayout
  readonly into: Ident | null
}
/** `cache_write C at i in register -> Cr`. */
export interface CacheWriteStep extends Item {
  readonly kind: 'cache_write'
  readonly buffer: Ident
  readonly at: LoopRef
  readonly memory: Instance
  readonly into: Ident | null
}
/** `tensorize ii with multiply(f16)`. */
export interface TensorizeStep extends Item {
  readonly kind: 'tensorize'
  readonly loop: LoopRef
  readonly instr: Instance
}
/** `accumulate C over s`, `accumulate C over s by 4` or `accumulate C over s by 4 within t -> Cc`. */
export interface AccumulateStep extends Item {
  readonly kind: 'accumulate'
  readonly buffer: Ident
  readonly loop: LoopRef
  readonly by: Expr | null
  readonly within: LoopRef | null
  readonly into: Ident | null
}
/** `cluster fo by 4`. */
export interface ClusterStep extends Item {
  readonly kind: 'cluster'
  readonly loop: LoopRef
  readonly by: Expr
}

/** `pipeline ko by 3`. */
export interface PipelineStep extends Item {
  readonly kind: 'pipeline'
  readonly loop: LoopRef
  readonly by: Expr
}
/** `compute_at produce at i`. */
export interface ComputeAtStep extends Item {
  readonly kind: 'compute_at'
  readonly iteration: Ident
  readonly at: LoopRef
}
/** `fission i after produce`, or after a number of statements. */
export interface FissionStep extends Item {
  readonly kind: 'fission'
  readonly loop: LoopRef
  readonly after: Ident | number
}
/** `rfactor ji -> Cp`. */
export interface RfactorStep extends Item {
  readonly kind: 'rfactor'
  readonly loop: LoopRef
  readonly into: Ident | null
}
/** `atomic C`. */
export interface AtomicStep extends Item {
  readonly kind: 'atomic'
  readonly buffer: Ident
}
/** `combine C`, or `combine C in sum`. */
export interface CombineStep extends Item {
  readonly kind: 'combine'
  readonly buffer: Ident
  readonly nest: Ident | null
}
/** `use rowwise(8)`. */
export interface UseStep extends Item {
  readonly kind: 'use'
  readonly schedule: Ident
  readonly args: readonly Expr[]
}
export type Step =
  | AsStep
  | EachStep
  | MergePartsStep
  | MergeStep
  | ReorderStep
  | FuseStep
  | SerpentineStep
  | AttachStep
  | SplitStep
  | TileStep
  | BindStep
  | UnrollStep
  | VectorizeStep
  | RequireStep
  | CacheReadStep
  | PipelineStep
  | ClusterStep
  | AccumulateStep
  | TensorizeStep
  | CacheWriteStep
  | ComputeAtStep
  | FissionStep
  | RfactorStep
  | AtomicStep
  | CombineStep
  | UseStep
