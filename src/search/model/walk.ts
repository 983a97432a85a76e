/**
 * Stage II with expected trip counts: how often each statement runs and what it moves, without lowering. Loops multiply,
 * guards and conditions take their share, and what depends on the length of a segment is averaged over the lengths there are.
 * A load counts as often as the innermost loop runs that its address depends on: compilers keep it from there on.
 */

import { DTYPE_BYTES } from '../../ir/dtype.ts'
import { someExpr } from '../../ir/expr-tree.ts'
import { levelOf } from '../../ir/hardware-axes.ts'
import type { Buffer, For, If, Kernel2, Reduce, Stmt, Store } from '../../ir/loops.ts'
import type { Body } from '../../ir/tree.ts'
import { Accesses } from './accesses.ts'
import { elementsOf } from './elements.ts'
import { expected, type Known, type Range, type Segment, shareOf } from './estimates.ts'
import { blocksWith, type Frame, lanesOf, threadsAround } from './frames.ts'
import { groupsOf, waitingFor } from './groups.ts'
import { countBranches } from './one-thread.ts'
import { guarded, narrowed, type Place } from './place.ts'
import { Reductions } from './reductions.ts'
import { operationsOf, readsIn, segmentsOf } from './statement-facts.ts'
import type { Structure } from './structure.ts'
import { Sums } from './sums.ts'
import { both, eachOf, either, IDLE, type Steps, same, timesAround } from './thread-steps.ts'
import type { KernelWork, LaunchWork } from './work.ts'

/** Lengths that a segment may have. */
interface Case {
  readonly length: number
  readonly share: number
}

export function workOf(kernel: Kernel2, structure: Structure): KernelWork {
  const buffers = new Map(kernel.buffers.map((b) => [b.name, b]))
  const clears = kernel.body.flatMap((s) => {
    const b = s.kind === 'fill' ? buffers.get(s.buffer) : undefined
    return b ? [{ bytes: DTYPE_BYTES[b.dtype] * elementsOf(b, structure) }] : []
  })
  const launches = kernel.body.flatMap((s) =>
    s.kind === 'for' ? [new Walk(buffers, structure).launch(s)] : [],
  )
  return { launches, clears }
}

class Walk {
  readonly #structure: Structure
  readonly #sums = new Sums()
  readonly #accesses: Accesses
  readonly #reductions: Reductions
  readonly #threads = new Map<string, number>()
  #blocks = 1
  /** Steps of searches that the loop over a share makes before it. */
  #before = 0

  constructor(buffers: ReadonlyMap<string, Buffer>, structure: Structure) {
    this.#structure = structure
    this.#accesses = new Accesses(buffers, structure, this.#sums, () => this.#threadsOfBlock())
    this.#reductions = new Reductions(this.#accesses, structure, this.#sums)
  }

  launch(top: For): LaunchWork {
    const { params, filled } = this.#structure
    const place: Place = {
      params,
      filled,
      ranges: new Map(),
      lengths: new Map(),
      times: 1,
      starts: 1,
      useful: 1,
      frames: [],
      held: [],
    }
    const serial = this.#stmt(top, place)
    return { blocks: this.#blocks, threads: this.#threadsOfBlock(), serial, ...this.#sums.result() }
  }

  #threadsOfBlock(): number {
    return [...this.#threads.values()].reduce((n, x) => n * x, 1)
  }

  #body(body: Body, p: Place): Steps {
    return body.reduce<Steps>((sum, s) => both(sum, this.#stmt(s, p)), IDLE)
  }

  #stmt(s: Stmt, p: Place): Steps {
    switch (s.kind) {
      case 'for':
        return this.#split(segmentsOf(s), p, (q) => this.#loop(s, q))
      case 'if':
        return this.#split(segmentsOf(s), p, (q) => this.#if(s, q))
      case 'alloc':
        this.#accesses.define(s.buffer)
        return IDLE
      case 'store':
      case 'reduce':
        return this.#leaf(s, p)
      default:
        return IDLE
    }
  }

  /** Once for each length that the segments may have. */
  #split(segments: readonly Segment[], p: Place, visit: (p: Place) => Steps): Steps {
    const open = segments.find((s) => !p.lengths.has(s.key))
    if (!open) return visit(p)
    const lengths = this.#structure.lengths.get(open.offsets)
    const cases: readonly Case[] = lengths?.bins ?? []
    const at = (length: number, share: number): Place => ({
      ...p,
      times: p.times * share,
      starts: p.starts * share,
      lengths: new Map(p.lengths).set(open.key, length),
    })
    // Threads of a warp and of a block wait for the one with the longest segment.
    const groups = groupsOf(lanesOf(p.frames), open.vars)
    const longest = this.#structure.longestOf.get(open.offsets)
    const [inWarp, inBlock] = [waitingFor(longest, groups.warp), waitingFor(longest, groups.block)]
    let sum = IDLE
    for (const { length, share } of cases) {
      const one = this.#split(segments, at(length, share), visit)
      // The longest of a bin is longer than its mean: waits and steps grow with it.
      const last = cases.at(-1)!.length === length && length > 0 ? lengths!.longest / length : 1
      sum = eachOf((k) => ({
        mean: sum[k].mean + share * one[k].mean,
        warp: sum[k].warp + share * inWarp * one[k].warp,
        block: sum[k].block + share * inBlock * one[k].block,
        most: Math.max(sum[k].most, one[k].most * last),
      }))
    }
    return sum
  }

  #loop(s: For, p: Place): Steps {
    let extent = expected(s.extent, p)
    if (Number.isNaN(extent)) extent = 1
    if (extent <= 0 && !s.reduce) return IDLE
    // The last round runs whole; what it reads beyond the end it has already.
    let useful = p.useful
    if (s.mode.kind === 'unroll' && s.mode.predicated && s.mode.factor !== null) {
      const whole = Math.ceil(extent / s.mode.factor) * s.mode.factor
      if (whole > 0) useful *= extent / whole
      extent = whole
    }
    const ranges = new Map<string, Range>(p.ranges).set(s.var, { lo: 0, extent })
    const inside = { ...p, ranges, useful }
    const { share, held } = guarded(s, inside)
    const { mode } = s
    if (mode.kind === 'bind') {
      if (levelOf(mode.to) === 'block') this.#blocks = Math.max(this.#blocks, blocksWith(p.frames, extent))
      else this.#threads.set(mode.to, Math.max(this.#threads.get(mode.to) ?? 1, extent))
    }
    const sharers = s.cooperative ? threadsAround(p.frames) : 1
    const times = (p.times * extent * share) / sharers
    const starts = s.reduce ? p.starts : (p.starts * extent * share) / sharers
    countBranches(this.#sums, this.#structure, s, p, extent, share / sharers)
    const frame: Frame = { loop: s, extent: (extent * share) / sharers, times, loaded: new Set() }
    const before = this.#before
    this.#before = 0
    const body = this.#body(s.body, {
      ...inside,
      times,
      starts,
      held,
      frames: [...p.frames, frame],
    })
    const searched = this.#before
    this.#before = Math.max(before, mode.kind === 'accumulate' ? 0 : searched)
    if (mode.kind === 'bind') return { ...body, steps: { ...body.steps, mean: body.steps.mean * share } }
    const trips = Math.max(0, (extent * share) / sharers)
    const entry = eachOf((k) =>
      same(
        k === 'hops' && this.#endIsRead(s, p)
          ? 1
          : k === 'probes' && mode.kind === 'accumulate'
            ? searched
            : 0,
      ),
    )
    return both(timesAround(s, body, trips, useful / p.useful), entry)
  }

  /** Whether how long it runs is read from memory. */
  #endIsRead(s: For, p: Place): boolean {
    if (p.frames.length === 0) return false
    return someExpr(s.extent, (x) => x.kind === 'load' && this.#accesses.buffer(x.buffer)?.scope === 'global')
  }

  #if(s: If, p: Place): Steps {
    const share = shareOf(s.cond, p)
    this.#sums.branches += p.times
    const branch = (body: Body, part: number, ranges: Known['ranges']): Steps => {
      if (body.length === 0 || part === 0) return IDLE
      const times = p.times * part
      const frame: Frame = { loop: null, extent: part, times, loaded: new Set() }
      return this.#body(body, { ...p, ranges, times, starts: p.starts * part, frames: [...p.frames, frame] })
    }
    const then = branch(s.then, share, narrowed(s.cond, p, true))
    const other = branch(s.else, 1 - share, narrowed(s.cond, p, false))
    return either(share, then, other)
  }

  #leaf(s: Store | Reduce, p: Place): Steps {
    const lanes = lanesOf(p.frames)
    const reads = this.#accesses.reads(readsIn(s), p, lanes)
    this.#before = Math.max(this.#before, reads.before)
    const matrix = p.frames.some((f) => f.loop?.mode.kind === 'instr')
    this.#sums.statement(p.times, operationsOf(s), matrix)
    if (s.kind === 'store') this.#accesses.write('stores', s, p, lanes, p.times)
    const met = s.kind === 'store' ? undefined : this.#reductions.reduce(s, p, lanes)
    return {
      steps: same(1),
      rounds: same(reads.rounds),
      waits: same(reads.rounds),
      hops: same(reads.hops),
      probes: same(reads.probes),
      misses: same(reads.misses),
      exchanges: same(met?.exchanges ?? 0),
      barriers: same(met?.barriers ?? 0),
    }
  }
}
