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
import type { Span } from '../ast/diagnostic.ts'
import type { Dtype } from './dtype.ts'
import type { Expr, Load, Search, ThreadAxis } from './expr.ts'
import type { Instr, Memory, Signals } from './instr.ts'
import type { InstrCall } from './instr-call.ts'
import type { Capacity, Found, NestDefault, Param, Role } from './stage1.ts'
import type { Lanes, Reduce, Store } from './store-and-reduce.ts'

export type * from './store-and-reduce.ts'

/** Where a buffer lives. */
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
  /** Of coordinates that are validated: all are less than this, over sizes. */
  readonly below?: Expr | undefined
  /** Of each so many neighbours in the last dimension, from a multiple of it on, each is greater than the one before. */
  readonly ascending?: number | undefined
  /** Elements are fields of so many bits, packed into words. */
  readonly packed?: number | undefined
  /** Of offsets: how many positions they lead to, over sizes; segments are no longer. */
  readonly positions?: Expr | undefined
  /** The declared memory whose tiles the last dimensions are made of. */
  readonly memory?: Memory | undefined
  /** A copy that holds `value` where one of `where`, over `coordinateName(k)`, does not hold, and is whole. */
  readonly padding?: { readonly value: number; readonly where: readonly Expr[] } | undefined
  readonly span?: Span | undefined
}

/** How a loop runs. `unroll` without a factor unrolls whole. */
export type LoopMode =
  | { readonly kind: 'serial' }
  | {
      readonly kind: 'bind'
      readonly to: ThreadAxis
      /** So many neighbouring blocks run together, and copy together what each would copy alike. */
      readonly cluster?: number | undefined
    }
  | {
      readonly kind: 'unroll'
      readonly factor: number | null
      /** The last round runs whole: what is beyond the end repeats the round's first iteration and changes nothing. */
      readonly predicated?: boolean | undefined
    }
  | { readonly kind: 'vectorize' }
  /**
   * Copies into shared memory exist for `stages` iterations at a time, made ahead of their use; `continued`: also into the
   * next iterations of the serial loop around.
   */
  | { readonly kind: 'pipeline'; readonly stages: number; readonly continued?: true | undefined }
  | {
      readonly kind: 'accumulate'
      readonly by: number
      /** Where the loop runs over an equal share of the positions of segments. */
      readonly shares?: Shares | undefined
      /** The loop over groups of threads whose shares are neighbours. */
      readonly within?: string | undefined
      /** Has a row for each share: what the share has of an element that an earlier share has, too. */
      readonly carry?: string | undefined
    }
  /**
   * The loop and what is inside is what one declared instruction does. `signals`: the barrier on which a copy counts its
   * bytes, once it has one; whoever reads the copy has waited there.
   */
  | { readonly kind: 'instr'; readonly instr: Instr; readonly signals?: Signals | undefined }

/** Equal shares of positions that lie in segments (merge path's partition, without the segments' ends among the work). */
export interface Shares {
  /** At which segment the share begins, and one more; its value is the position that it begins with. */
  readonly search: Search
  /** How many positions a share has; each begins with a multiple of it. */
  readonly length: number
}

/** `for var in 0 .. extent`; the body runs where all `guards` hold. */
export interface For {
  readonly kind: 'for'
  /** Unique in the kernel; the loop's identity, by which handles find it. */
  readonly var: string
  /** What the user calls it, with `nest` to tell equal names apart (`agg.i`). */
  readonly name: string
  readonly nest: string
  readonly extent: Expr
  /** True where iterations combine into the same elements (a reduction loop). */
  readonly reduce: boolean
  readonly guards: readonly Expr[]
  readonly mode: LoopMode
  /** The threads of a block share the iterations out among themselves by their indices: all must take part. */
  readonly cooperative?: boolean | undefined
  /** Of a cooperative loop: the axes it is shared out along; elements may depend on the indices of others. */
  readonly along?: readonly ThreadAxis[] | undefined
  readonly body: readonly Stmt[]
  readonly span?: Span | undefined
}

export interface If {
  readonly kind: 'if'
  readonly cond: Expr
  readonly then: readonly Stmt[]
  readonly else: readonly Stmt[]
  /** Stage II: the condition says that an element of this buffer exists; where it fails, a write to it is lost. */
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
  readonly dtype: Dtype
  readonly value: Expr
  /** The value is what the thread with this bit of its number flipped has, which arrives here among its neighbours. */
  readonly lane?: { readonly xor: number; readonly among: number } | undefined
  /** What is read from shared memory is the same for all threads of the block, which arrive. */
  readonly uniform?: true | undefined
  readonly span?: Span | undefined
}

/** Stage III: all threads of a block arrive, and their shared-memory writes are seen. */
export interface Barrier {
  readonly kind: 'barrier'
  /** All threads of all blocks of the cluster arrive. */
  readonly cluster?: boolean | undefined
  /** What was written to global memory has to be seen as well. */
  readonly global?: boolean | undefined
  /** Neighbours of one row of the block meet, as at an exchange, and not the others. */
  readonly lanes?: Lanes | undefined
  readonly span?: Span | undefined
}

/** `while (cond) body`: Stage III, made by searches, and before by pipelines that go on. */
export interface While {
  readonly kind: 'while'
  readonly cond: Expr
  readonly body: readonly Stmt[]
  readonly span?: Span | undefined
}

/**
 * Stage III, made for a target just before printing: neighbouring elements in one access, of which `load` is the first
 * and is aligned to all of them.
 */
export interface VectorLoad {
  readonly kind: 'vector_load'
  /** Immutable scalars for the rest of the body, one an element. */
  readonly names: readonly string[]
  readonly load: Load
  readonly span?: Span | undefined
}

/** Stage III, like `VectorLoad`: `target` is the first element and aligned to all of them. */
export interface VectorStore {
  readonly kind: 'vector_store'
  readonly target: Load
  readonly values: readonly Expr[]
  /** The name of a reducer: other threads may update the elements at the same time, each of them atomically. */
  readonly atomic?: string | undefined
  readonly span?: Span | undefined
}

/** All of `buffer` becomes `value`; top level only. */
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

/** Stage II. Each top-level loop nest becomes a launch; `local` global-scope buffers are the plan's temporaries. */
export interface Kernel2 {
  readonly stage: 2
  readonly name: string
  /** The user's sizes and scalars, then the derived counts (`j_count`). */
  readonly params: readonly Param[]
  readonly buffers: readonly Buffer[]
  readonly body: readonly Stmt[]
  /** Index buffers that are validated to ascend from end to end, with repeats; left out: none is known to. */
  readonly ascending?: readonly string[] | undefined
  /** Tables that hold every number below their length once, where that is the extent of what they name. */
  readonly permutations?: readonly string[] | undefined
  /** These, and lists of coordinates none of which comes twice. */
  readonly distinct?: readonly string[] | undefined
  /** Nests that never write the same element of a buffer, by what formats say of their parts. */
  readonly disjointWrites?: readonly DisjointWrites[] | undefined
  readonly lostWrites?: LostWrites | undefined
  readonly defaults?: readonly NestDefault[] | undefined
  readonly capacities?: readonly Capacity[] | undefined
  readonly found?: readonly Found[] | undefined
  /** What the schedule requires of sizes. */
  readonly facts?: readonly Fact[] | undefined
  readonly span?: Span | undefined
}

/** What holds of a size in every run: it is a multiple of `by`, or equal to it. */
export interface Fact {
  readonly size: string
  readonly relation: 'multiple' | 'equal'
  readonly by: number
  readonly span?: Span | undefined
}

/** No nest of one group writes an element of a buffer that a nest of another group writes. */
export interface DisjointWrites {
  readonly buffer: string
  /** The names of their loops' nests, by group. */
  readonly nests: readonly (readonly string[])[]
  /** Dimensions of the buffer: no two elements that agree in these are written by both. None: not known which. */
  readonly by: readonly number[]
  /** Neither starts elements of the other, as a nest does that visits all rows before others combine into some. */
  readonly own?: boolean | undefined
}

/** After a run, word k of `buffer` is not 0 if a write to `targets[k]` found no element. */
export interface LostWrites {
  readonly buffer: string
  readonly targets: readonly string[]
}

/** One kernel launch. `grid` is over params; `block` is constant. The body uses hardware indices. */
export interface Launch {
  readonly kind: 'launch'
  readonly name: string
  readonly grid: readonly [Expr, Expr, Expr]
  readonly block: readonly [number, number, number]
  /** Neighbours on block.x that run together. */
  readonly cluster?: number | undefined
  readonly body: readonly Stmt[]
}

/** Zero bytes over a whole buffer. */
export interface Clear {
  readonly kind: 'clear'
  readonly buffer: string
}

export type PlanStep = Clear | Launch

/** Stage III: what to allocate and what to run, in order, for any sizes. */
export interface Plan {
  readonly stage: 3
  readonly name: string
  readonly params: readonly Param[]
  /** One dimension each: the length in elements. `local` ones are temporaries. */
  readonly buffers: readonly Buffer[]
  readonly steps: readonly PlanStep[]
  readonly lostWrites?: LostWrites | undefined
  readonly capacities?: readonly Capacity[] | undefined
  readonly found?: readonly Found[] | undefined
  /** Sizes for which this plan is right; others are refused when it is bound. */
  readonly facts?: readonly Fact[] | undefined
}
