/** Writes of reductions, and the exchanges between threads that they require. */
import type { Load, Search } from '../../ir/expressions/expr.ts'
import { walkExpr } from '../../ir/expressions/expr-tree.ts'
import type { Reduce } from '../../ir/statements/loops.ts'
import type { Structure } from '../matrix/structure.ts'
import type { Accesses } from '../work/accesses.ts'
import type { Lane } from '../work/coalescing.ts'
import { type Frame, isThread } from '../work/frames.ts'
import type { LaunchSums } from '../work/launch-sums.ts'
import type { Place } from '../work/place.ts'
import { countSpills } from './thread-costs.ts'
import { AtomicUpdates, type Updates } from './updates.ts'

/** Serial exchanges of a thread: within a warp, and within a block, with barriers. */
export interface Synchronisation {
  readonly exchanges: number
  readonly barriers: number
}

/** Adds the writes and exchanges of reductions to the sums of a launch. */
export class Reductions {
  readonly #accesses: Accesses
  readonly #structure: Structure
  readonly #sums: LaunchSums
  readonly #updates: AtomicUpdates

  constructor(accesses: Accesses, structure: Structure, sums: LaunchSums) {
    this.#accesses = accesses
    this.#structure = structure
    this.#sums = sums
    this.#updates = new AtomicUpdates(structure)
  }

  reduce(s: Reduce, p: Place, lanes: readonly Lane[]): Synchronisation {
    const accumulate = p.frames.findLast((f) => f.loop?.mode.kind === 'accumulate')
    const threadLoops = p.frames.filter((f) => f.loop?.reduce && isThread(f.loop))
    let [exchanges, barriers] = [0, 0]
    for (const t of s.targets) {
      const buffer = this.#accesses.buffer(t.buffer)
      if (accumulate) barriers += this.#segmented(s, t, accumulate, p, lanes)
      else if (s.atomic) this.#atomic(t, p, lanes)
      else if (threadLoops.length > 0) {
        const sync = this.#crossThread(t, threadLoops, p, lanes)
        exchanges += sync.exchanges
        barriers += sync.barriers
      } else if (buffer?.scope === 'register') countSpills(this.#sums, buffer, t, p, 2 * p.times)
      else if (buffer) this.#accesses.update(t, p, lanes, p.times + (s.init ? p.starts : 0))
    }
    return { exchanges, barriers }
  }

  /** Atomic updates of one element by threads of a warp are serialised. */
  #atomic(t: Load, p: Place, lanes: readonly Lane[]): void {
    this.#accesses.write('atomics', t, p, lanes, p.times)
    this.#contend(this.#updates.estimate(t, p, lanes), p.times)
  }

  #contend({ maxPerElement, warps, threadsPerElement }: Updates, times: number): void {
    // Update i of n concurrent updates waits for i - 1 updates: (n - 1) / 2 on average.
    this.#sums.conflicts += (times * (Math.max(1, threadsPerElement) - 1)) / 2
    this.#sums.contention = Math.max(this.#sums.contention, maxPerElement)
    this.#sums.retries = Math.max(this.#sums.retries, maxPerElement * warps)
  }

  /**
   * Every thread accumulates into its own register. The registers are combined at the end: by shuffles within a warp
   * along x, otherwise through shared memory.
   */
  #crossThread(t: Load, threadLoops: readonly Frame[], p: Place, lanes: readonly Lane[]): Synchronisation {
    let [exchanges, barriers] = [0, 0]
    for (const { loop, extent } of threadLoops) {
      const steps = Math.log2(Math.max(1, extent))
      if (loop?.mode.kind === 'bind' && loop.mode.to === 'thread.x') {
        this.#sums.exchanges += p.starts * extent * steps
        exchanges += steps
      } else {
        this.#sums.passed += p.starts * extent
        barriers += steps
      }
    }
    const writers = lanes.filter((l) => !threadLoops.some((f) => f.loop?.var === l.variable))
    this.#accesses.write('stores', t, p, writers, p.starts)
    return { exchanges, barriers }
  }

  /**
   * Merge-path chunks of positions: a result is written once for each segment that overlaps a chunk.
   * @returns Number of barriers
   */
  #segmented(s: Reduce, t: Load, { loop, extent, times }: Frame, p: Place, lanes: readonly Lane[]): number {
    const offsets = this.#offsetsOf(t)
    const nonempty = offsets
      ? offsets.count * (1 - (offsets.bins.find((b) => b.length === 0)?.share ?? 0))
      : 0
    const positions = Math.max(1, offsets?.sum ?? 1)
    const chunks = extent > 0 ? times / extent : 0
    const segmentsPerChunk = Math.min(extent, 1 + (extent * nonempty) / positions)
    const elements = times > 0 ? p.times / times : 0
    const updates = chunks * segmentsPerChunk * elements
    const isWithinBlock = loop?.mode.kind === 'accumulate' && loop.mode.within !== undefined
    const groups = isWithinBlock
      ? Math.max(1, p.frames.find((x) => isThread(x.loop) && x.loop?.reduce)?.extent ?? 1)
      : 1
    const atomics = s.atomic ? Math.min(updates, (2 * chunks * elements) / groups) : 0
    this.#accesses.write('atomics', t, p, lanes, atomics)
    this.#accesses.write('stores', t, p, lanes, updates - atomics)
    if (s.atomic) this.#contend(this.#updates.estimate(t, p, lanes, Math.max(1, extent * groups)), 0)
    if (!isWithinBlock) return 0
    this.#sums.passed += chunks * elements
    return Math.log2(groups + 1)
  }

  #offsetsOf(t: Load) {
    let search: Search | undefined
    for (const e of t.index)
      walkExpr(e, (x) => {
        if (x.kind === 'search') search ??= x
      })
    return search && this.#structure.lengths.get(search.buffer)
  }
}
