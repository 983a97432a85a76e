/** Writes of reductions, and the exchanges between threads for them. */
import type { Load, Search } from '../../ir/expr.ts'
import { walkExpr } from '../../ir/expr-tree.ts'
import type { Reduce } from '../../ir/loops.ts'
import type { Accesses } from './accesses.ts'
import type { Lane } from './coalescing.ts'
import { type Frame, isThread } from './frames.ts'
import { countSpills } from './one-thread.ts'
import type { Place } from './place.ts'
import type { Structure } from './structure.ts'
import type { Sums } from './sums.ts'
import { AtomicUpdates, type Updates } from './updates.ts'

/** Serial exchanges of a thread: within a warp, and within a block, with barriers. */
export interface Meetings {
  readonly exchanges: number
  readonly barriers: number
}

export class Reductions {
  readonly #accesses: Accesses
  readonly #structure: Structure
  readonly #sums: Sums
  readonly #updates: AtomicUpdates

  constructor(accesses: Accesses, structure: Structure, sums: Sums) {
    this.#accesses = accesses
    this.#structure = structure
    this.#sums = sums
    this.#updates = new AtomicUpdates(structure)
  }

  reduce(s: Reduce, p: Place, lanes: readonly Lane[]): Meetings {
    const accumulate = p.frames.findLast((f) => f.loop?.mode.kind === 'accumulate')
    const across = p.frames.filter((f) => f.loop?.reduce && isThread(f.loop))
    let [exchanges, barriers] = [0, 0]
    for (const t of s.targets) {
      const buffer = this.#accesses.buffer(t.buffer)
      if (accumulate) barriers += this.#segmented(s, t, accumulate, p, lanes)
      else if (s.atomic) this.#atomic(t, p, lanes)
      else if (across.length > 0) {
        const met = this.#across(t, across, p, lanes)
        exchanges += met.exchanges
        barriers += met.barriers
      } else if (buffer?.scope === 'register') countSpills(this.#sums, buffer, t, p, 2 * p.times)
      else if (buffer) this.#accesses.update(t, p, lanes, p.times + (s.init ? p.starts : 0))
    }
    return { exchanges, barriers }
  }

  /** Updates of one element wait for each other; those of a warp at once. */
  #atomic(t: Load, p: Place, lanes: readonly Lane[]): void {
    this.#accesses.write('atomics', t, p, lanes, p.times)
    this.#meet(this.#updates.of(t, p, lanes), p.times)
  }

  #meet({ most, warps, together }: Updates, times: number): void {
    // Of several at once the first is done at once, the last after all others.
    this.#sums.conflicts += (times * (Math.max(1, together) - 1)) / 2
    this.#sums.contention = Math.max(this.#sums.contention, most)
    this.#sums.retries = Math.max(this.#sums.retries, most * warps)
  }

  /** Every thread has a register of its own; they are added up at the end: by neighbours in x, or through shared memory. */
  #across(t: Load, across: readonly Frame[], p: Place, lanes: readonly Lane[]): Meetings {
    let [exchanges, barriers] = [0, 0]
    for (const { loop, extent } of across) {
      const turns = Math.log2(Math.max(1, extent))
      if (loop?.mode.kind === 'bind' && loop.mode.to === 'thread.x') {
        this.#sums.exchanges += p.starts * extent * turns
        exchanges += turns
      } else {
        this.#sums.passed += p.starts * extent
        barriers += turns
      }
    }
    const writers = lanes.filter((l) => !across.some((f) => f.loop?.var === l.variable))
    this.#accesses.write('stores', t, p, writers, p.starts)
    return { exchanges, barriers }
  }

  /**
   * Equal shares of positions: a result is written once for each segment that a share has part of.
   * @returns barriers
   */
  #segmented(s: Reduce, t: Load, { loop, extent, times }: Frame, p: Place, lanes: readonly Lane[]): number {
    const offsets = this.#offsetsOf(t)
    const ends = offsets ? offsets.count * (1 - (offsets.bins.find((b) => b.length === 0)?.share ?? 0)) : 0
    const positions = Math.max(1, offsets?.sum ?? 1)
    const shares = extent > 0 ? times / extent : 0
    const each = Math.min(extent, 1 + (extent * ends) / positions)
    const elements = times > 0 ? p.times / times : 0
    const updates = shares * each * elements
    const within = loop?.mode.kind === 'accumulate' && loop.mode.within !== undefined
    const groups = within
      ? Math.max(1, p.frames.find((x) => isThread(x.loop) && x.loop?.reduce)?.extent ?? 1)
      : 1
    const atomics = s.atomic ? Math.min(updates, (2 * shares * elements) / groups) : 0
    this.#accesses.write('atomics', t, p, lanes, atomics)
    this.#accesses.write('stores', t, p, lanes, updates - atomics)
    if (s.atomic) this.#meet(this.#updates.of(t, p, lanes, Math.max(1, extent * groups)), 0)
    if (!within) return 0
    this.#sums.passed += shares * elements
    return Math.log2(groups + 1)
  }

  #offsetsOf(t: Load) {
    let found: Search | undefined
    for (const e of t.index)
      walkExpr(e, (x) => {
        if (x.kind === 'search') found ??= x
      })
    return found && this.#structure.lengths.get(found.buffer)
  }
}
