/** Atomic updates: how many there are of one element, and how many meet there. */

import type { Expr, Load } from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { Lane } from './coalescing.ts'
import { WARP } from './coalescing.ts'
import { type Frame, isBlock, threadsAround } from './frames.ts'
import { groupsOf } from './groups.ts'
import type { Place } from './place.ts'
import { type Recurrence, reuseWithin } from './recurrence.ts'
import type { Structure } from './structure.ts'

/** Contention of atomic updates. */
export interface Updates {
  /** Of the element that has most. */
  readonly most: number
  /** Warps that update it at one time. */
  readonly warps: number
  /** Threads of a warp that update one element at once, the mean. */
  readonly together: number
}

/** Warps that a chip has at work at one time; only its magnitude matters. */
const AT_WORK = (132 * 2048) / WARP

/** Of the statements of a launch, which are met once for each length that segments may have. */
export class AtomicUpdates {
  readonly #structure: Structure
  /** Updates of a position, the mean over the lengths so far. */
  readonly #mean = new Map<Load, number>()

  constructor(structure: Structure) {
    this.#structure = structure
  }

  /** @param per - Updates of a thread, one position after the other, that are made as one */
  of(t: Load, p: Place, lanes: readonly Lane[], per = 1): Updates {
    const vars = freeVars(t)
    const read = t.index
      .map((e) => levelsOf(e, this.#structure))
      .filter((l) => l.from !== null)
      // Where several dimensions are read, an element is met as seldom as the one that is met least.
      .reduce<Levels | null>((a, b) => (a && a.most <= b.most ? a : b), null)
    const own = read?.from ? freeVars(read.from) : new Set<string>()
    let [positions, here] = [1, 1]
    for (const { loop, extent } of p.frames)
      if (loop && vars.has(loop.var)) positions *= extent
      else if (loop) here *= extent
    const mean = (this.#mean.get(t) ?? 0) + (positions > 0 ? p.times / positions : 0)
    this.#mean.set(t, mean)
    const most = Math.max(here, mean * (read?.most ?? 1))
    const asking = groupsOf(lanes, new Set(lanes.map((l) => l.variable))).warp
    const neighbours = groupsOf(lanes, own).warp
    const beside = groupsOf(lanes, new Set([...vars].filter((v) => !own.has(v)))).warp
    // Of all that are at work, those at the element: as many as it has of all updates.
    const share = positions > 0 ? Math.min(1, ((read?.most ?? 1) * beside) / positions) : 0
    return {
      most: most / per,
      warps: warpsOf(p.frames) * share,
      together: asking / Math.max(1, beside * (read?.different(neighbours) ?? neighbours)),
    }
  }
}

function warpsOf(frames: readonly Frame[]): number {
  const blocks = frames.reduce((n, f) => (isBlock(f.loop) ? n * Math.max(1, f.extent) : n), 1)
  return Math.min(AT_WORK, blocks * Math.ceil(threadsAround(frames) / WARP))
}

/** An index that is read: of one value the positions that have it, at most and in the mean. */
interface Levels {
  /** Position at which the index array is read; null for a computed index. */
  readonly from: Expr | null
  readonly most: number
  readonly mean: number
  /** Values of so many positions that follow each other. */
  different(positions: number): number
}

const PLAIN: Levels = { from: null, most: 1, mean: 1, different: (n) => n }

/** Of a tree's level by level: a segment has as many positions as those of its elements together. */
function levelsOf(e: Expr, structure: Structure): Levels {
  if (e.kind === 'binary') {
    const [a, b] = [levelsOf(e.a, structure), levelsOf(e.b, structure)]
    return a.from ? a : b
  }
  if (e.kind === 'search') {
    const of = structure.lengths.get(e.buffer)
    if (!of || of.count === 0) return PLAIN
    const held = of.count * (1 - (of.bins.find((b) => b.length === 0)?.share ?? 0))
    const one = 1 / Math.max(1, of.sum / Math.max(1, held))
    return above(e.value, structure, of.longest, 1 / one, (n) => 1 + (n - 1) * one)
  }
  if (e.kind === 'load') {
    const each = structure.recurrence.get(e.buffer)?.each
    const [at] = e.index
    if (!each || !at) return PLAIN
    return above(at, structure, each.most, reuseWithin(each, each.elements), (n) => differentOf(each, n))
  }
  return PLAIN
}

const differentOf = (each: Recurrence, positions: number): number => positions / reuseWithin(each, positions)

function above(
  at: Expr,
  structure: Structure,
  most: number,
  mean: number,
  different: (positions: number) => number,
): Levels {
  const below = levelsOf(at, structure)
  return {
    from: below.from ?? at,
    most: Math.max(most * below.mean, below.most),
    mean: mean * below.mean,
    different: (n) => different(Math.max(1, below.different(n))),
  }
}
