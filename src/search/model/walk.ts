/**
 * Walks Stage II with expected trip counts: executions and traffic of each statement, without lowering. Loops multiply,
 * guards and conditions scale by their probability, and costs that depend on the length of a segment are averaged over the
 * lengths. A load counts once per iteration of the innermost loop on which its address depends, because compilers hoist it
 * out of the others.
 */

import { DTYPE_BYTES } from '../../ir/dtype.ts'
import { walkExpr } from '../../ir/expr-tree.ts'
import { levelOf } from '../../ir/hardware-axes.ts'
import type { Buffer, For, If, Kernel2, Reduce, Stmt, Store } from '../../ir/loops.ts'
import { remembered } from '../../ir/remembered.ts'
import type { Body } from '../../ir/tree.ts'
import { Accesses } from './accesses.ts'
import { elementsOf } from './elements.ts'
import { expected, type Segment, shareOf } from './estimates.ts'
import { blocksWith, Frame, threadsAround } from './frames.ts'
import { groupsOf, waitingFor } from './groups.ts'
import { lanesOfTile, threadsTogether } from './held-together.ts'
import { countBranches } from './one-thread.ts'
import { guarded, type Narrowed, narrowed, Place } from './place.ts'
import { Reductions } from './reductions.ts'
import { operationsOf, readsIn, segmentsOf } from './statement-facts.ts'
import type { Structure } from './structure.ts'
import { Sums } from './sums.ts'
import {
  addCase,
  among,
  asOneStep,
  both,
  either,
  forgetRows,
  IDLE,
  type Row,
  same,
  stepsOf,
  timesAround,
  withMeanSteps,
} from './thread-steps.ts'
import type { KernelWork, LaunchWork } from './work.ts'

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
  /** Number of threads that cooperate on one iteration of the loops over threads: in instructions and register tiles. */
  #together = 1
  /** Steps of searches that the loop over a share makes before it. */
  #before = 0

  constructor(buffers: ReadonlyMap<string, Buffer>, structure: Structure) {
    this.#structure = structure
    this.#accesses = new Accesses(buffers, structure, this.#sums, () => this.#threadsOfBlock())
    this.#reductions = new Reductions(this.#accesses, structure, this.#sums)
  }

  launch(top: For): LaunchWork {
    forgetRows()
    this.#together = threadsTogether(top)
    const serial = stepsOf(this.#stmt(top, Place.outside(this.#structure)))
    return { blocks: this.#blocks, threads: this.#threadsOfBlock(), serial, ...this.#sums.result() }
  }

  #threadsOfBlock(): number {
    return [...this.#threads.values()].reduce((n, x) => n * x, this.#together)
  }

  #body(body: Body, p: Place): Row {
    let sum = IDLE
    for (const s of body) sum = both(sum, this.#stmt(s, p))
    return sum
  }

  #stmt(s: Stmt, p: Place): Row {
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
  #split(segments: readonly Segment[], p: Place, visit: (p: Place) => Row): Row {
    const open = segments.find((s) => !p.lengths.has(s.key))
    if (!open) return visit(p)
    const lengths = this.#structure.lengths.get(open.offsets)
    const cases = lengths?.bins ?? []
    // Threads of a warp and of a block wait for the one with the longest segment.
    const groups = groupsOf(p.lanes, open.vars)
    const longestOf = this.#structure.longestOf.get(open.offsets)
    const [inWarp, inBlock] = [waitingFor(longestOf, groups.warp), waitingFor(longestOf, groups.block)]
    const last = cases.at(-1)?.length
    const sum = among()
    for (const { length, share } of cases) {
      p.lengths.set(open.key, length)
      const one = this.#split(segments, p.inCase(share), visit)
      // The longest of a bin is longer than its mean: waits and steps grow with it.
      const longest = last === length && length > 0 ? lengths!.longest / length : 1
      addCase(sum, one, { share, inWarp, inBlock, longest })
    }
    p.lengths.delete(open.key)
    return sum
  }

  #loop(s: For, p: Place): Row {
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
    p.ranges.set(s.var, { lo: 0, extent })
    const { share, held } = guarded(s, p)
    const { mode } = s
    if (mode.kind === 'bind') {
      if (levelOf(mode.to) === 'block') this.#blocks = Math.max(this.#blocks, blocksWith(p.frames, extent))
      else this.#threads.set(mode.to, Math.max(this.#threads.get(mode.to) ?? 1, extent))
    }
    const sharers = s.cooperative ? threadsAround(p.frames) * this.#together : 1
    const times = (p.times * extent * share) / sharers
    const starts = s.reduce ? p.starts : (p.starts * extent * share) / sharers
    countBranches(this.#sums, this.#structure, s, p, extent, share / sharers)
    const frame = new Frame(s, (extent * share) / sharers, times)
    const before = this.#before
    this.#before = 0
    const inside = this.#body(s.body, p.inside(frame, starts, useful, held))
    const body = mode.kind === 'instr' ? asOneStep(inside) : inside
    p.ranges.delete(s.var)
    const searched = this.#before
    this.#before = Math.max(before, mode.kind === 'accumulate' ? 0 : searched)
    if (mode.kind === 'bind') return withMeanSteps(body, share)
    const trips = Math.max(0, (extent * share) / sharers)
    return timesAround(s, body, trips, useful / p.useful, {
      hops: this.#endIsRead(s, p) ? 1 : 0,
      probes: mode.kind === 'accumulate' ? searched : 0,
    })
  }

  /** True if the loop's trip count depends on global memory. */
  #endIsRead(s: For, p: Place): boolean {
    if (p.frames.length === 0) return false
    return loadedIn(s).some((name) => this.#accesses.buffer(name)?.scope === 'global')
  }

  #if(s: If, p: Place): Row {
    const share = shareOf(s.cond, p)
    this.#sums.branches += p.times
    const branch = (body: Body, part: number, narrow: Narrowed | null): Row => {
      if (body.length === 0 || part === 0) return IDLE
      if (narrow) p.ranges.set(narrow.name, narrow.part)
      const row = this.#body(body, p.under(new Frame(null, part, p.times * part)))
      if (narrow) p.ranges.set(narrow.name, narrow.whole)
      return row
    }
    const then = branch(s.then, share, narrowed(s.cond, p, true))
    const other = branch(s.else, 1 - share, narrowed(s.cond, p, false))
    return either(share, then, other)
  }

  #leaf(s: Store | Reduce, p: Place): Row {
    const tile = this.#together > 1 ? lanesOfTile(s, p, (name) => this.#accesses.buffer(name)) : null
    const sharers = tile ? this.#together : 1
    const lanes = tile ? [...tile, ...p.lanes] : p.lanes
    const reads = this.#accesses.reads(readsIn(s), p, lanes)
    this.#before = Math.max(this.#before, reads.before)
    const matrix = p.frames.some((f) => f.loop?.mode.kind === 'instr')
    this.#sums.statement(p.times, operationsOf(s), matrix)
    if (s.kind === 'store') this.#accesses.write('stores', s, p, lanes, p.times)
    const met = s.kind === 'store' ? undefined : this.#reductions.reduce(s, p, lanes)
    return same({
      steps: 1 / sharers,
      rounds: reads.rounds,
      waits: reads.rounds,
      hops: reads.hops,
      probes: reads.probes,
      misses: reads.misses / sharers,
      exchanges: met?.exchanges ?? 0,
      barriers: met?.barriers ?? 0,
    })
  }
}

/** Buffers that its extent is read from. */
const loadedIn = remembered((s: For): readonly string[] => {
  const out: string[] = []
  walkExpr(s.extent, (x) => {
    if (x.kind === 'load') out.push(x.buffer)
  })
  return out
})
