/**
 * Stages II and III share one statement algebra; `verifiers/stage2.ts` and `verifiers/stage3.ts` say which nodes each stage
 * admits. Nodes are plain frozen data. Statements see the `let`s and `alloc`s before them in the same body.
 *
 * Stage II, positions: `for` nests whose indices are positions, one per tree of a buffer's axes. Reductions
 * carry their initialisation with them (`init`), guards sit on the loop that makes them decidable, bound loops
 * are still loops. All of scheduling happens here.
 *
 * Stage III, memory: flat buffers, explicit initialisation, `if`s for guards, hardware indices for bound
 * loops, barriers, one top-level launch for each nest. This is what a backend prints.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type { RuntimeLists } from '../coordinates/runtime-lists.ts'
import type { Param, Role, RoundsEdge } from '../coordinates/stage1.ts'
import type { Expr, Load, Search, ThreadAxis } from '../expressions/expr.ts'
import type { Instr, Memory, Signals } from '../instructions/instr.ts'
import type { InstrCall } from '../instructions/instr-call.ts'
import type { Dtype, ExprType } from '../values/dtype.ts'
import type { Lanes, Reduce, Store } from './store-and-reduce.ts'

export type * from './store-and-reduce.ts'

export type Scope = 'global' | 'shared' | 'register'

/** A buffer of Stage II (several dimensions) or Stage III (one: its length in elements). */
export interface Buffer {
  readonly name: string
  readonly dtype: Dtype
  readonly scope: Scope
  /** `index`: an indptr or indices array of an axis (i32), or a register that holds a position. */
  readonly role: Role | 'index'
  readonly shape: readonly Expr[]
  readonly fill: number
  readonly accumulate: Dtype
  /** For validated coordinates: exclusive upper bound, over sizes. */
  readonly below?: Expr | undefined
  /** Strictly increasing within aligned groups of this many elements in the last dimension. */
  readonly ascending?: number | undefined
  /** Bits of each element; elements are fields packed into 32-bit words. */
  readonly packed?: number | undefined
  /** For offsets: the number of positions they cover, over sizes; no segment is longer. */
  readonly positions?: Expr | undefined
  /** The declared memory whose tiles the last dimensions consist of. */
  readonly memory?: Memory | undefined
  /** For a complete copy: it holds `value` wherever a condition of `where`, over `coordinateName(k)`, is false. */
  readonly padding?: { readonly value: number; readonly where: readonly Expr[] } | undefined
  readonly span?: Span | undefined
}

/** The execution mode of a loop. `unroll` without a factor unrolls completely. */
export type LoopMode =
  | { readonly kind: 'serial' }
  | {
      readonly kind: 'bind'
      readonly to: ThreadAxis
      /** Number of neighbouring blocks that form a cluster and share the copies that each of them needs. */
      readonly cluster?: number | undefined
    }
  | {
      readonly kind: 'unroll'
      readonly factor: number | null
      /**
       * The remainder is executed at full width: iterations beyond the end repeat the group's first one without effect.
       */
      readonly predicated?: boolean | undefined
    }
  | { readonly kind: 'vectorize' }
  /**
   * Software pipelining: copies into shared memory have `stages` buffers and are made ahead of their use. `continued`:
   * the prefetch extends into the next iterations of the enclosing serial loop.
   */
  | { readonly kind: 'pipeline'; readonly stages: number; readonly continued?: true | undefined }
  | {
      readonly kind: 'accumulate'
      readonly by: number
      /** The work partition, if the loop runs over an equal chunk of the positions of segments. */
      readonly partition?: WorkPartition | undefined
      /** The loop over groups of threads with neighbouring chunks. */
      readonly within?: string | undefined
      /** The carry-out buffer, one row per chunk: the chunk's part of an element that an earlier chunk also updates. */
      readonly carry?: string | undefined
    }
  /**
   * One declared instruction executes the loop and its body. `signals`: the barrier on which a copy counts its bytes;
   * consumers of the copy wait there.
   */
  | { readonly kind: 'instr'; readonly instr: Instr; readonly signals?: Signals | undefined }

/** Equal chunks of the positions of segments (merge-path partition, without counting segment ends as work). */
export interface WorkPartition {
  /** One plus the segment in which the chunk begins; the searched value is the chunk's first position. */
  readonly search: Search
  /** Positions per chunk; each chunk begins at a multiple of it. */
  readonly length: number
}

/** `for var in 0 .. extent`; the body runs if all `guards` hold. */
export interface For {
  readonly kind: 'for'
  /** Unique in the kernel; the loop's identity, by which handles find it. */
  readonly var: string
  /** The name that users write; `nest` distinguishes equal names (`agg.i`). */
  readonly name: string
  readonly nest: string
  readonly extent: Expr
  /** True if iterations combine into the same elements (a reduction loop). */
  readonly reduce: boolean
  readonly guards: readonly Expr[]
  readonly mode: LoopMode
  /** The iterations are distributed over the threads of a block by their indices: all threads must participate. */
  readonly cooperative?: boolean | undefined
  /** For a cooperative loop: the axes over which iterations are distributed; elements may depend on other indices. */
  readonly along?: readonly ThreadAxis[] | undefined
  readonly body: readonly Stmt[]
  readonly span?: Span | undefined
}

export interface If {
  readonly kind: 'if'
  readonly cond: Expr
  readonly then: readonly Stmt[]
  readonly else: readonly Stmt[]
  /** Stage II: the condition states that an element of this buffer exists; if it fails, a write to it is lost. */
  readonly absent?: string | undefined
  readonly span?: Span | undefined
}

/** A buffer that exists for the rest of the body. A register or shared buffer has constant shape. */
export interface Alloc {
  readonly kind: 'alloc'
  readonly buffer: Buffer
  readonly span?: Span | undefined
}

/** Stage III: an immutable scalar for the rest of the body. */
export interface Let {
  readonly kind: 'let'
  readonly name: string
  readonly dtype: ExprType
  readonly value: Expr
  /** The value is the one held by the thread whose number differs in this bit (a shuffle among `among` neighbours). */
  readonly lane?: { readonly xor: number; readonly among: number } | undefined
  /** The value read from shared memory is uniform across the block, and all threads execute the read. */
  readonly uniform?: true | undefined
  readonly span?: Span | undefined
}

/** Stage III: a barrier of all threads of a block; makes their shared-memory writes visible. */
export interface Barrier {
  readonly kind: 'barrier'
  /** Synchronises all threads of all blocks of the cluster. */
  readonly cluster?: boolean | undefined
  /** Makes writes to global memory visible as well. */
  readonly global?: boolean | undefined
  /** Synchronises only the neighbouring threads that exchange registers, within one row of the block. */
  readonly lanes?: Lanes | undefined
  readonly span?: Span | undefined
}

/** `while (cond) body`: Stage III, generated for searches and, earlier, for continued pipelines. */
export interface While {
  readonly kind: 'while'
  readonly cond: Expr
  readonly body: readonly Stmt[]
  readonly span?: Span | undefined
}

/**
 * Stage III, generated for a target just before printing: one access to neighbouring elements. `load` is the first and
 * is aligned to all of them.
 */
export interface VectorLoad {
  readonly kind: 'vector_load'
  /** Immutable scalars for the rest of the body, one per element. */
  readonly names: readonly string[]
  readonly load: Load
  readonly span?: Span | undefined
}

/** Stage III, like `VectorLoad`: `target` is the first element and aligned to all of them. */
export interface VectorStore {
  readonly kind: 'vector_store'
  readonly target: Load
  readonly values: readonly Expr[]
  /** The name of a reducer: other threads may update the elements concurrently, each of them atomically. */
  readonly atomic?: string | undefined
  readonly span?: Span | undefined
}

/** Sets all elements of `buffer` to `value`; top level only. */
export interface Fill {
  readonly kind: 'fill'
  readonly buffer: string
  readonly value: Expr
  readonly span?: Span | undefined
}

export type Stmt =
  | For
  | If
  | Store
  | Reduce
  | Alloc
  | Let
  | Barrier
  | While
  | Fill
  | VectorLoad
  | VectorStore
  | InstrCall
  | RoundsEdge

/** Stage II. Each top-level loop nest becomes a launch; `local` global-scope buffers are the plan's temporaries. */
export interface Kernel2 {
  readonly stage: 2
  readonly name: string
  /** The user's sizes and scalars, then the derived counts (`j_count`). */
  readonly params: readonly Param[]
  readonly buffers: readonly Buffer[]
  readonly body: readonly Stmt[]
  /** Index buffers that are validated to ascend over their whole length, with repeats; none if absent. */
  readonly ascending?: readonly string[] | undefined
  /** Tables that contain every number below their length once, if the length equals the extent that they index. */
  readonly permutations?: readonly string[] | undefined
  /** The permutations, and lists of coordinates without duplicates. */
  readonly distinct?: readonly string[] | undefined
  /** Nests that never write the same element of a buffer, as implied by the formats of their parts. */
  readonly disjointWrites?: readonly DisjointWrites[] | undefined
  readonly lostWrites?: LostWrites | undefined
  readonly runtimeLists?: readonly RuntimeLists[] | undefined
  /** Constraints on sizes that the schedule requires. */
  readonly facts?: readonly Fact[] | undefined
  readonly span?: Span | undefined
}

/** A constraint on a size that holds in every run: it is a multiple of `by`, or equal to it. */
export interface Fact {
  readonly size: string
  readonly relation: 'multiple' | 'equal'
  readonly by: number
  readonly span?: Span | undefined
}

/** No nest of one group writes an element of a buffer that a nest of another group writes. */
export interface DisjointWrites {
  readonly buffer: string
  /** The nest names of their loops, by group. */
  readonly nests: readonly (readonly string[])[]
  /**
   * Dimensions of the buffer whose coordinates determine the group: elements that agree in these dimensions are written
   * by one group only. Empty if unknown.
   */
  readonly by: readonly number[]
  /** No group initialises elements of another group. A nest that initialises all rows for other nests would do so. */
  readonly separateInit?: boolean | undefined
}

/** After a run, word k of `buffer` is not 0 if a write to `targets[k]` found no element. */
interface LostWrites {
  readonly buffer: string
  readonly targets: readonly string[]
}

/** One kernel launch. `grid` is over params; `block` is constant. The body uses hardware indices. */
export interface Launch {
  readonly kind: 'launch'
  readonly name: string
  readonly grid: readonly [Expr, Expr, Expr]
  readonly block: readonly [number, number, number]
  /** Number of blocks per cluster, neighbours on block.x. */
  readonly cluster?: number | undefined
  /** The launch has an effect only if the device selects its alternative. */
  readonly when?: LaunchCondition | undefined
  readonly body: readonly Stmt[]
}

export interface LaunchCondition {
  /** Number of the alternative in `branches.schedules`. */
  readonly alternative: number
  /** The i32 array whose element is the number of the selected alternative. */
  readonly choice: string
  /** Element of `choice` where the workgroup counts begin, which are 0 for another alternative; undefined: the body tests `choice`. */
  readonly grids?: number | undefined
}

/** Alternatives of a plan, one of which the device selects in each run. */
export interface Branches {
  readonly choice: string
  /** The schedules, each with its condition over fill ratios and capacities; the last has none. */
  readonly schedules: readonly { readonly text: string; readonly when?: string | undefined }[]
  /** Fill ratios that each run measures. `format`: index in `runtimeLists`; `elements`: those of the dense tensor. */
  readonly fillRatios: readonly { readonly text: string; readonly format: number; readonly elements: Expr }[]
}

/** Sets all bytes of a buffer to zero (memset). */
export interface Clear {
  readonly kind: 'clear'
  readonly buffer: string
}

export type PlanStep = Clear | Launch | RoundsEdge

/** Stage III: the buffers to allocate and the steps to run, in order, for any sizes. A `Plan` (`plan/schema.ts`) is its serialised form. */
export interface Kernel3 {
  readonly stage: 3
  readonly name: string
  readonly params: readonly Param[]
  /** One dimension each: the length in elements. `local` ones are temporaries. */
  readonly buffers: readonly Buffer[]
  readonly steps: readonly PlanStep[]
  readonly lostWrites?: LostWrites | undefined
  readonly runtimeLists?: readonly RuntimeLists[] | undefined
  /** Constraints on sizes under which this plan is correct; binding rejects other sizes. */
  readonly facts?: readonly Fact[] | undefined
  readonly branches?: Branches | undefined
}
