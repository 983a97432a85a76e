/** Atomic updates: the number per element, and their contention. */

import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { type Recurrence, reuseWithin } from '../matrix/recurrence.ts'
import type { Structure } from '../matrix/structure.ts'
import type { Lane } from '../work/coalescing.ts'
import { WARP } from '../work/coalescing.ts'
import { type Frame, isBlock, threadCount } from '../work/frames.ts'
import type { Place } from '../work/place.ts'
import { distinctValues } from './thread-groups.ts'

/** Contention of atomic updates. */
export interface Updates {
  /** Updates of the most frequent element. */
  readonly maxPerElement: number
  /** Warps that update that element concurrently. */
  readonly warps: number
  /** Threads of a warp that update one element in the same instruction, on average. */
  readonly threadsPerElement: number
}

/** Warps that run concurrently on a chip; only the magnitude matters. */
const CONCURRENT_WARPS = (132 * 2048) / WARP

/**
 * Contention of the atomic updates of a launch. The walk visits a statement once for each length that segments may
 * have.
 */
export class AtomicUpdates {
  readonly #structure: Structure
  /** Mean number of updates per position, accumulated over the lengths so far. */
  readonly #mean = new Map<Load, number>()

  constructor(structure: Structure) {
    this.#structure = structure
  }

  /**
   * Contention of the updates of `t`. @param per - Updates of a thread at consecutive positions that are combined into
   * one
   */
  estimate(t: Load, p: Place, lanes: readonly Lane[], per = 1): Updates {
    const vars = freeVars(t)
    const level = t.index
      .map((e) => levelsOf(e, this.#structure))
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

/**
 * Levels of an index that is loaded through a tree of formats: a segment has as many positions as its elements
 * together.
 */
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
