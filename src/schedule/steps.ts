/**
 * Steps on loops (Stage II) as plain data: what a `.spt` schedule and the TypeScript calls both become, what a
 * trace holds, and what JSON carries.
 */
import type { Span } from '../ast/diagnostic.ts'
import type { ThreadAxis } from '../ir/expr.ts'
import type { Instr, Memory } from '../ir/instr.ts'

/**
 * A loop: by the user's name (`i`, or `nest.i` where several nests have one), or, from a handle, by its
 * variable.
 */
export type LoopRef = string | { readonly var: string }

/** Where a cached copy lives. */
export type CacheScope = 'shared' | 'register'

interface At {
  readonly span?: Span | undefined
}

/** `split i by 8 -> (io, ii)` */
export interface SplitStep extends At {
  readonly kind: 'split'
  readonly loop: LoopRef
  readonly by: number
  /** Names of the outer and the inner loop; `i` gives `io`, `ii`. */
  readonly into?: readonly [string, string] | undefined
}
/** `fuse (i, f) -> g` on loops */
export interface FuseStep extends At {
  readonly kind: 'fuse'
  readonly loops: readonly LoopRef[]
  readonly into?: string | undefined
}
/** `reorder (f, j)` on loops: the new order, outermost first */
export interface ReorderStep extends At {
  readonly kind: 'reorder'
  readonly loops: readonly LoopRef[]
}
/** `serpentine io by 33`: of every 33 iterations in turn, every second lot runs backwards */
export interface SerpentineStep extends At {
  readonly kind: 'serpentine'
  readonly loop: LoopRef
  readonly by: number
}
/** `tile (i, f) by (8, 32) -> (io, fo, ii, fi)` */
export interface TileStep extends At {
  readonly kind: 'tile'
  readonly loops: readonly LoopRef[]
  readonly by: readonly number[]
  /** All outer names, then all inner names. */
  readonly into?: readonly string[] | undefined
}
/** `bind io to block.x, ii to thread.y` */
export interface BindStep extends At {
  readonly kind: 'bind'
  readonly bindings: readonly { readonly loop: LoopRef; readonly to: ThreadAxis }[]
}
/** `unroll j`, `unroll j by 4` or `unroll j by 4 predicated` */
export interface UnrollStep extends At {
  readonly kind: 'unroll'
  readonly loop: LoopRef
  readonly by?: number | undefined
  readonly predicated?: boolean | undefined
}
/** `vectorize f` */
export interface VectorizeStep extends At {
  readonly kind: 'vectorize'
  readonly loop: LoopRef
}
/** `require d % 4 == 0` or `require d == 128` */
export interface RequireStep extends At {
  readonly kind: 'require'
  readonly size: string
  readonly relation: 'multiple' | 'equal'
  readonly by: number
}
/** How a copy is laid out and filled. */
export interface CopyLayout {
  /** The last two dimensions are swapped. */
  readonly transposed?: boolean | undefined
  /** Elements from one row to the next, at least as many as a row has: against bank conflicts. */
  readonly stride?: number | undefined
  /** Elements in a row that a thread copies at once: 2, 4 or 8. */
  readonly by?: number | undefined
  /** What elements hold that are not read from the buffer. */
  readonly padded?: number | undefined
}
/** `cache_read B at jo in shared stride 36 -> Bs` */
export interface CacheReadStep extends At, CopyLayout {
  readonly kind: 'cache_read'
  readonly buffer: string
  readonly at: LoopRef
  readonly scope: CacheScope
  /** A declared memory of that scope, of whose tiles the copy is made. */
  readonly memory?: Memory | undefined
  readonly into?: string | undefined
}
/** `cache_write C at i in register -> Cr` */
export interface CacheWriteStep extends At {
  readonly kind: 'cache_write'
  readonly buffer: string
  readonly at: LoopRef
  readonly scope: CacheScope
  /** A declared memory of that scope, of whose tiles the copy is made. */
  readonly memory?: Memory | undefined
  readonly into?: string | undefined
}
/** `tensorize ii with multiply` */
export interface TensorizeStep extends At {
  readonly kind: 'tensorize'
  readonly loop: LoopRef
  readonly instr: Instr
}

/** `cluster fo by 4` */
export interface ClusterStep extends At {
  readonly kind: 'cluster'
  readonly loop: LoopRef
  readonly by: number
}

/** `pipeline ko by 3` */
export interface PipelineStep extends At {
  readonly kind: 'pipeline'
  readonly loop: LoopRef
  /** Iterations whose copies exist at a time. */
  readonly by: number
}
/** `compute_at produce at i` */
export interface ComputeAtStep extends At {
  readonly kind: 'compute_at'
  readonly nest: string
  readonly at: LoopRef
}
/** `fission i after produce` */
export interface FissionStep extends At {
  readonly kind: 'fission'
  readonly loop: LoopRef
  /** A nest inside of the loop by name, or how many of its statements the first loop keeps. */
  readonly after: string | number
}
/** `rfactor ji -> Cp` */
export interface RfactorStep extends At {
  readonly kind: 'rfactor'
  readonly loop: LoopRef
  readonly into?: string | undefined
}
/** `atomic C` */
export interface AtomicStep extends At {
  readonly kind: 'atomic'
  readonly buffer: string
}

/** `accumulate C over s`, `accumulate C over s by 4` or `accumulate C over s by 4 within t -> Cc` */
export interface AccumulateStep extends At {
  readonly kind: 'accumulate'
  readonly buffer: string
  readonly loop: LoopRef
  /** Iterations whose values are computed together. */
  readonly by?: number | undefined
  /** The loop over groups of threads that meet in shared memory. */
  readonly within?: LoopRef | undefined
  /** What later shares have of an element goes there, and a nest of this name adds it. */
  readonly into?: string | undefined
}

/** `combine C`, or `combine C in sum`: partial results, and passes that add them in a fixed order */
export interface CombineStep extends At {
  readonly kind: 'combine'
  readonly buffer: string
  readonly nest?: string | undefined
}
/** `merge (a, b)`: nests in one launch */
export interface MergeStep extends At {
  readonly kind: 'merge'
  readonly nests: readonly string[]
}

export type LoopStep =
  | SplitStep
  | FuseStep
  | SerpentineStep
  | ReorderStep
  | TileStep
  | BindStep
  | UnrollStep
  | VectorizeStep
  | RequireStep
  | CacheReadStep
  | PipelineStep
  | ClusterStep
  | TensorizeStep
  | CacheWriteStep
  | ComputeAtStep
  | FissionStep
  | RfactorStep
  | AtomicStep
  | AccumulateStep
  | CombineStep
  | MergeStep

const placeText = (s: { readonly scope: CacheScope; readonly memory?: Memory | undefined }): string =>
  s.memory?.name ?? s.scope

const layoutText = ({ transposed, stride, by, padded }: CopyLayout): string =>
  [
    transposed ? ' transposed' : '',
    stride === undefined ? '' : ` stride ${stride}`,
    by === undefined ? '' : ` by ${by}`,
    padded === undefined ? '' : ` padded ${padded}`,
  ].join('')

/** A step as the language writes it; `named` says what handles are called where it is applied. */
export function printStep(s: LoopStep, named: (variable: string) => string = (v) => v): string {
  const refText = (r: LoopRef): string => (typeof r === 'string' ? r : named(r.var))
  const list = (xs: readonly LoopRef[]): string => `(${xs.map(refText).join(', ')})`
  const into = (name: string | undefined): string => (name === undefined ? '' : ` -> ${name}`)
  switch (s.kind) {
    case 'split':
      return `split ${refText(s.loop)} by ${s.by}${into(s.into && `(${s.into.join(', ')})`)}`
    case 'fuse':
      return `fuse ${list(s.loops)}${into(s.into)}`
    case 'serpentine':
      return `serpentine ${refText(s.loop)} by ${s.by}`
    case 'reorder':
      return `reorder ${list(s.loops)}`
    case 'tile':
      return `tile ${list(s.loops)} by (${s.by.join(', ')})${into(s.into && `(${s.into.join(', ')})`)}`
    case 'bind':
      return `bind ${s.bindings.map((b) => `${refText(b.loop)} to ${b.to}`).join(', ')}`
    case 'unroll':
      return `unroll ${refText(s.loop)}${s.by === undefined ? '' : ` by ${s.by}`}${s.predicated ? ' predicated' : ''}`
    case 'vectorize':
      return `vectorize ${refText(s.loop)}`
    case 'require':
      return s.relation === 'multiple' ? `require ${s.size} % ${s.by} == 0` : `require ${s.size} == ${s.by}`
    case 'cache_read':
      return `cache_read ${s.buffer} at ${refText(s.at)} in ${placeText(s)}${layoutText(s)}${into(s.into)}`
    case 'tensorize':
      return `tensorize ${refText(s.loop)} with ${s.instr.name}`
    case 'cluster':
      return `cluster ${refText(s.loop)} by ${s.by}`
    case 'pipeline':
      return `pipeline ${refText(s.loop)} by ${s.by}`
    case 'cache_write':
      return `${s.kind} ${s.buffer} at ${refText(s.at)} in ${placeText(s)}${into(s.into)}`
    case 'compute_at':
      return `compute_at ${s.nest} at ${refText(s.at)}`
    case 'fission':
      return `fission ${refText(s.loop)} after ${s.after}`
    case 'rfactor':
      return `rfactor ${refText(s.loop)}${into(s.into)}`
    case 'atomic':
      return `atomic ${s.buffer}`
    case 'accumulate':
      return `accumulate ${s.buffer} over ${refText(s.loop)}${s.by === undefined ? '' : ` by ${s.by}`}${s.within === undefined ? '' : ` within ${refText(s.within)}`}${into(s.into)}`
    case 'combine':
      return `combine ${s.buffer}${s.nest === undefined ? '' : ` in ${s.nest}`}`
    case 'merge':
      return `merge ${list(s.nests)}`
  }
}
