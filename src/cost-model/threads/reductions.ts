/** Writes of reductions, and the exchanges between threads that they require. */
import type { Expr, Load, Search } from '../../ir/expressions/expr.ts'
import { freeVars, walkExpr } from '../../ir/expressions/expr-tree.ts'
import type { Reduce } from '../../ir/statements/loops.ts'
import { type Recurrence, reuseWithin } from '../matrix/index-facts.ts'
import type { Structure } from '../matrix/structure.ts'
import type { Accesses } from '../work/accesses.ts'
import { type Lane, WARP } from '../work/coalescing.ts'
import type { LaunchSums } from '../work/launch-sums.ts'
import { type Frame, isBlock, isThread, type Place, threadCount } from '../work/place.ts'
import { countSpills, distinctValues } from './thread-groups.ts'

/** Serial exchanges of a thread: within a warp, and within a block, with barriers. */
interface Synchronisation {
  readonly exchanges: number
  readonly barriers: number
}

/** Adds the writes and exchanges of reductions to the sums of a launch. */
export class Reductions {
  readonly #updates: AtomicUpdates

  constructor(
    private readonly accesses: Accesses,
    private readonly structure: Structure,
    private readonly sums: LaunchSums,
  ) {
    this.#updates = new AtomicUpdates(structure)
  }

  reduce(s: Reduce, p: Place, lanes: readonly Lane[]): Synchronisation {
    const accumulate = p.frames.findLast((f) => f.loop?.mode.kind === 'accumulate')
    const threadLoops = p.frames.filter((f) => f.loop?.reduce && isThread(f.loop))
    let [exchanges, barriers] = [0, 0]
    for (const t of s.targets) {
      const buffer = this.accesses.buffer(t.buffer)
      if (accumulate) barriers += this.#segmented(s, t, accumulate, p, lanes)
      else if (s.atomic) this.#atomic(t, p, lanes)
      else if (threadLoops.length > 0) {
        const sync = this.#crossThread(t, threadLoops, p, lanes)
        exchanges += sync.exchanges
        barriers += sync.barriers
      } else if (buffer?.scope === 'register') countSpills(this.sums, buffer, t, p, 2 * p.times)
      else if (buffer) this.accesses.update(t, p, lanes, p.times + (s.init ? p.starts : 0))
    }
    return { exchanges, barriers }
  }

  /** Atomic updates of one element by threads of a warp are serialised. */
  #atomic(t: Load, p: Place, lanes: readonly Lane[]): void {
    this.accesses.write('atomics', t, p, lanes, p.times)
    this.#contend(this.#updates.estimate(t, p, lanes), p.times)
  }

  #contend({ maxPerElement, warps, threadsPerElement }: Updates, times: number): void {
    // Update i of n concurrent updates waits for i - 1 updates: (n - 1) / 2 on average.
    this.sums.conflicts += (times * (Math.max(1, threadsPerElement) - 1)) / 2
    this.sums.contention = Math.max(this.sums.contention, maxPerElement)
    this.sums.retries = Math.max(this.sums.retries, maxPerElement * warps)
  }

  /** Threads accumulate in registers, combined at the end by shuffles along x, or through shared memory. */
  #crossThread(t: Load, threadLoops: readonly Frame[], p: Place, lanes: readonly Lane[]): Synchronisation {
    let [exchanges, barriers] = [0, 0]
    for (const { loop, extent } of threadLoops) {
      const steps = Math.log2(Math.max(1, extent))
      if (loop?.mode.kind === 'bind' && loop.mode.to === 'thread.x') {
        this.sums.exchanges += p.starts * extent * steps
        exchanges += steps
      } else {
        this.sums.passed += p.starts * extent
        barriers += steps
      }
    }
    const writers = lanes.filter((l) => !threadLoops.some((f) => f.loop?.var === l.variable))
    this.accesses.write('stores', t, p, writers, p.starts)
    return { exchanges, barriers }
  }

  /** Merge-path chunks: one write per segment that overlaps a chunk. @returns Number of barriers */
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
    this.accesses.write('atomics', t, p, lanes, atomics)
    this.accesses.write('stores', t, p, lanes, updates - atomics)
    if (s.atomic) this.#contend(this.#updates.estimate(t, p, lanes, Math.max(1, extent * groups)), 0)
    if (!isWithinBlock) return 0
    this.sums.passed += chunks * elements
    return Math.log2(groups + 1)
  }

  #offsetsOf(t: Load) {
    let search: Search | undefined
    for (const e of t.index)
      walkExpr(e, (x) => {
        if (x.kind === 'search') search ??= x
      })
    return search && this.structure.lengths.get(search.buffer)
  }
}

// Atomic updates: the number per element, and their contention.

interface Updates {
  /** Updates of the most frequent element. */
  readonly maxPerElement: number
  /** Warps that update that element concurrently. */
  readonly warps: number
  /** Threads of a warp that update one element in the same instruction, on average. */
  readonly threadsPerElement: number
}

/** Warps that run concurrently on a chip; only the magnitude matters. */
const CONCURRENT_WARPS = (132 * 2048) / WARP

/** Contention of atomic updates. The walk visits a statement once for each length of segments. */
class AtomicUpdates {
  /** Mean number of updates per position, accumulated over the lengths so far. */
  readonly #mean = new Map<Load, number>()

  constructor(private readonly structure: Structure) {}

  /** @param per - Updates of a thread at consecutive positions that are combined into one */
  estimate(t: Load, p: Place, lanes: readonly Lane[], per = 1): Updates {
    const vars = freeVars(t)
    const level = t.index
      .map((e) => levelsOf(e, this.structure))
      .filter((l) => l.from !== null)
      // If several dimensions are loaded indices, the one with the least contention bounds the updates of an element.
      .reduce<IndexLevels | null>((a, b) => (a && a.max <= b.max ? a : b), null)
    const indexVars = level?.from ? freeVars(level.from) : new Set<string>()
    let [positions, sameElement] = [1, 1]
    for (const { loop, extent } of p.frames)
      if (loop && vars.has(loop.var)) positions *= extent
      else if (loop) sameElement *= extent
    const mean = (this.#mean.get(t) ?? 0) + (positions > 0 ? p.times / positions : 0)
    this.#mean.set(t, mean)
    const max = Math.max(sameElement, mean * (level?.max ?? 1))
    const threads = distinctValues(lanes, new Set(lanes.map((l) => l.variable))).warp
    const neighbours = distinctValues(lanes, indexVars).warp
    const otherGroups = distinctValues(lanes, new Set([...vars].filter((v) => !indexVars.has(v)))).warp
    // Share of the concurrent updates that go to this element.
    const share = positions > 0 ? Math.min(1, ((level?.max ?? 1) * otherGroups) / positions) : 0
    return {
      maxPerElement: max / per,
      warps: concurrentWarps(p.frames) * share,
      threadsPerElement: threads / Math.max(1, otherGroups * (level?.distinct(neighbours) ?? neighbours)),
    }
  }
}

function concurrentWarps(frames: readonly Frame[]): number {
  const blocks = frames.reduce((n, f) => (isBlock(f.loop) ? n * Math.max(1, f.extent) : n), 1)
  return Math.min(CONCURRENT_WARPS, blocks * Math.ceil(threadCount(frames) / WARP))
}

/** A loaded index: the number of positions with one value, at most and on average. */
interface IndexLevels {
  /** Position at which the index array is read; null for a computed index. */
  readonly from: Expr | null
  readonly max: number
  readonly mean: number
  /** Number of distinct values in this many consecutive positions. */
  distinct(positions: number): number
}

const PLAIN: IndexLevels = { from: null, max: 1, mean: 1, distinct: (n) => n }

/** Levels of an index loaded through a tree of formats: a segment has the positions of all its elements. */
function levelsOf(e: Expr, structure: Structure): IndexLevels {
  if (e.kind === 'binary') {
    const [a, b] = [levelsOf(e.a, structure), levelsOf(e.b, structure)]
    return a.from ? a : b
  }
  if (e.kind === 'search') {
    const lengths = structure.lengths.get(e.buffer)
    if (!lengths || lengths.count === 0) return PLAIN
    const nonempty = lengths.count * (1 - (lengths.bins.find((b) => b.length === 0)?.share ?? 0))
    const segmentsPerPosition = 1 / Math.max(1, lengths.sum / Math.max(1, nonempty))
    return composeLevels(
      e.value,
      structure,
      lengths.longest,
      1 / segmentsPerPosition,
      (n) => 1 + (n - 1) * segmentsPerPosition,
    )
  }
  if (e.kind === 'load') {
    const each = structure.recurrence.get(e.buffer)?.each
    const [index] = e.index
    if (!each || !index) return PLAIN
    return composeLevels(index, structure, each.maxFrequency, reuseWithin(each, each.elements), (n) =>
      distinctOf(each, n),
    )
  }
  return PLAIN
}

const distinctOf = (each: Recurrence, positions: number): number => positions / reuseWithin(each, positions)

function composeLevels(
  index: Expr,
  structure: Structure,
  max: number,
  mean: number,
  distinct: (positions: number) => number,
): IndexLevels {
  const inner = levelsOf(index, structure)
  return {
    from: inner.from ?? index,
    max: Math.max(max * inner.mean, inner.max),
    mean: mean * inner.mean,
    distinct: (n) => distinct(Math.max(1, inner.distinct(n))),
  }
}
