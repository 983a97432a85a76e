/** Roles of a strand's loops for threads: partitioned over threads, contiguous, or serial in a thread. */
import type { Decisions } from './decisions.ts'
import type { Draft, Schedulable } from './draft.ts'
import type { Strand, StrandLoop } from './strands.ts'

/** Context of the rules for devices with threads. */
export interface Around {
  readonly decisions: Decisions
  /** Threads that a block can have. */
  readonly threads: number
  /** True if groups of threads that combine may run surrounding loops for different trip counts within a block. */
  readonly apart: boolean
  /** Sizes that the schedule is for, as far as they are given. */
  readonly sizes: ReadonlyMap<string, number>
}

/** The threads of a block, which nests of one launch share. */
export interface BlockShape {
  /** Prefix of their decisions. */
  readonly name: string
  /** True if other rules apply to some of the nests: the row of another rule is then called a group. */
  readonly isMixed: boolean
}

export interface Dealt {
  /** Over other elements as well, around all others: for a third axis of blocks. */
  readonly lead: StrandLoop | undefined
  /** Dealt out to blocks first. */
  readonly outer: StrandLoop
  /** Neighbouring iterations are for neighbouring threads. */
  readonly inner: StrandLoop | undefined
  /** Stay within a thread, outside of the reductions. */
  readonly middle: readonly StrandLoop[]
  /** Reductions into one element, outer before inner. */
  readonly sums: readonly StrandLoop[]
  /** True if several iterations of `outer` update one element. */
  readonly meets: boolean
}

/** `undefined` if no loop can be partitioned, or all loops combine into one element. */
export function dealt({ loops }: Strand): Dealt | undefined {
  const sums = loops.filter((l) => l.role === 'reduction' && l.reduce)
  const others = loops.filter((l) => !sums.includes(l))
  const contiguous = others.findLast((l) => l.role === 'contiguous' && l.needs.size === 0 && l.constant !== 1)
  const rows = others.filter((l) => l !== contiguous)
  const first = rows[0]
  // What is stored under a sum is reached by it alone.
  if (first && first.needs.size > 0) return undefined
  const meeting = first?.reduce ?? false
  const leading = meeting ? 1 : rows.findIndex((l) => l.needs.size > 0 || l.reduce || l.constant !== null)
  const heads = rows.slice(0, leading < 0 ? rows.length : Math.max(1, leading))
  const outer = heads.at(-1) ?? contiguous
  if (!outer) return undefined
  const lead = heads.length > 1 ? heads.at(-2) : undefined
  const rest = rows.filter((l) => l !== outer && l !== lead)
  const inner =
    contiguous && contiguous !== outer
      ? contiguous
      : rest.findLast(
          (l) => l.constant !== 1 && !l.reduce && ![...l.needs].some((v) => sums.some((x) => x.var === v)),
        )
  return { lead, outer, inner, middle: rest.filter((l) => l !== inner), sums, meets: meeting }
}

/** True if the trip counts of loops around a reduction depend on the data. */
export const isRagged = (around: readonly StrandLoop[]): boolean => around.some((l) => l.needs.size > 0)

/** Threads whose neighbours exchange registers, without their block. */
export const WARP = 32

/** Values that leave room for others do already. */
export const within = (values: readonly number[], most: number): readonly number[] => {
  const fitting = values.filter((v) => v <= most)
  return fitting.length > 0 ? fitting : values.slice(0, 1)
}

/** `guess`, or the largest value that is smaller. */
export const atMost = (values: readonly number[], guess: number): number =>
  values.findLast((v) => v <= guess) ?? values[0]!

/** True if the loop's size is given and a multiple of `by`. */
export function divides(by: number, { size }: StrandLoop, { sizes }: Around): boolean {
  const given = size === null ? undefined : sizes.get(size)
  return given !== undefined && given > 0 && given % by === 0
}

/** Requires a multiple of `by` where the given sizes are. */
export function requireOf<K extends Schedulable<K>>(
  draft: Draft<K>,
  loop: StrandLoop,
  by: number,
  around: Around,
): void {
  if (by === 1 || !divides(by, loop, around)) return
  draft.step({ kind: 'require', size: loop.size!, relation: 'multiple', by })
}

/** Unrolling of a reduction loop: number of iterations in flight. */
export interface Ahead {
  readonly by: number
  readonly predicated: boolean
}

export function chooseAhead(name: string, d: Decisions, guess = 4): Ahead {
  const by = d.choose(`${name}.ahead`, [1, 2, 4, 8], guess)
  return { by, predicated: by > 1 && d.choose(`${name}.rest`, ['predicated', 'apart']) === 'predicated' }
}

/** Vectors of f32 that are one access. */
const VECTOR = 4

/** Default number of lanes: one vector per lane for a loop of known size, otherwise `otherwise`. */
export function lanesGuess(
  values: readonly number[],
  loop: StrandLoop | undefined,
  { sizes }: Around,
  otherwise: number,
): number {
  const given = loop?.size ? sizes.get(loop.size) : undefined
  return atMost(values, given === undefined ? otherwise : Math.ceil(given / VECTOR))
}
