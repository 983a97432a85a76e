/** Rules for the loops of a nest on threads: which loops are distributed over threads, contiguous, or serial in a thread. */
import type { Decisions, Plan } from './draft.ts'
import type { NestShape, Strand, StrandLoop } from './strands.ts'

/** Context of the rules for devices with threads. */
export interface RuleContext {
  readonly decisions: Decisions
  /** Maximum number of threads of a block. */
  readonly threads: number
  /** True if groups of threads that combine values may have different trip counts within a block. */
  readonly canDiverge: boolean
  /** Sizes for which the schedule is specialised, as far as they are given. */
  readonly sizes: ReadonlyMap<string, number>
}

/** The threads of a block, shared by the nests of one launch. */
export interface BlockShape {
  /** Prefix of the decision names. */
  readonly name: string
  /** True if other rules apply to some of the nests: the row of another rule is then called a group. */
  readonly isMixed: boolean
}

/** A rule that applies to a nest, ready to choose values. */
export interface Rule {
  readonly name: string
  /** Buffers that several threads may update concurrently. */
  readonly atomic: readonly string[]
  /** True if a thread holds complete elements at some time. */
  readonly holds: boolean
  readonly plan: (shape: BlockShape) => Plan
}

/** The rules that apply to a nest, the heuristic default first. */
export type RulesOf = (nest: NestShape, context: RuleContext) => readonly Rule[]

/** Loops of a strand by their roles for threads. */
export interface Partition {
  /** Spatial loop around all others, for a third axis of blocks. */
  readonly lead: StrandLoop | undefined
  /** Loop that is distributed over blocks first. */
  readonly outer: StrandLoop
  /** Loop whose neighbouring iterations belong to neighbouring threads. */
  readonly inner: StrandLoop | undefined
  /** Spatial loops that stay within a thread, outside of the reductions. */
  readonly middle: readonly StrandLoop[]
  /** Reductions into one element, outer before inner. */
  readonly sums: readonly StrandLoop[]
  /** True if several iterations of `outer` update one element. */
  readonly hasConflicts: boolean
}

/** Partition of a strand's loops; `undefined` if no loop can be distributed. */
export function partitionLoops({ loops }: Strand): Partition | undefined {
  const sums = loops.filter((l) => l.role === 'reduction' && l.reduce)
  const spatial = loops.filter((l) => !sums.includes(l))
  const contiguous = spatial.findLast(
    (l) => l.role === 'contiguous' && l.needs.size === 0 && l.constant !== 1,
  )
  const rows = spatial.filter((l) => l !== contiguous)
  const [first] = rows
  // Rows that are stored in segments of a reduction axis can only be reached through it.
  if (first && first.needs.size > 0) return undefined
  const hasConflicts = first?.reduce ?? false
  const headCount = hasConflicts
    ? 1
    : rows.findIndex((l) => l.needs.size > 0 || l.reduce || l.constant !== null)
  const heads = rows.slice(0, headCount < 0 ? rows.length : Math.max(1, headCount))
  const outer = heads.at(-1) ?? contiguous
  if (!outer) return undefined
  const lead = heads.length > 1 ? heads.at(-2) : undefined
  const remaining = rows.filter((l) => l !== outer && l !== lead)
  const inner =
    contiguous && contiguous !== outer
      ? contiguous
      : remaining.findLast(
          (l) => l.constant !== 1 && !l.reduce && ![...l.needs].some((v) => sums.some((x) => x.var === v)),
        )
  return { lead, outer, inner, middle: remaining.filter((l) => l !== inner), sums, hasConflicts }
}

/** True if the trip counts of loops around a reduction depend on the data. */
export const isRagged = (loops: readonly StrandLoop[]): boolean => loops.some((l) => l.needs.size > 0)

/** True if the trip count of another loop depends on a loop, whose iterations therefore stay outside of that loop. */
export const bounds = ({ var: v }: StrandLoop, loops: readonly StrandLoop[]): boolean =>
  loops.some((l) => l.needs.has(v))

/** Number of threads that exchange registers without barriers. */
export const WARP = 32

/** The values up to `max`, or the smallest value if there is none. */
export const valuesUpTo = (values: readonly number[], max: number): readonly number[] => {
  const fits = values.filter((v) => v <= max)
  return fits.length > 0 ? fits : values.slice(0, 1)
}

/** The largest value up to `guess`, or the smallest one. */
export const largestUpTo = (values: readonly number[], guess: number): number =>
  values.findLast((v) => v <= guess) ?? values[0]!

/** Unrolling of a reduction loop: number of iterations in flight. */
export interface Unroll {
  readonly by: number
  readonly predicated: boolean
}

export function chooseUnroll(name: string, d: Decisions): Unroll {
  const by = d.choose(`${name}.ahead`, [1, 2, 4, 8], 4)
  return { by, predicated: by > 1 && d.choose(`${name}.rest`, ['predicated', 'apart']) === 'predicated' }
}

/** Elements of f32 in one vector access. */
export const VECTOR = 4
