/**
 * Walks Stage II with expected trip counts: executions and traffic of each statement, without lowering. Loops multiply,
 * guards and conditions scale by their probability, and costs that depend on the length of a segment are averaged over the
 * lengths. A load counts once per iteration of the innermost loop on which its address depends, because compilers hoist it
 * out of the others.
 */

import { walkExpr } from '../../ir/expressions/expr-tree.ts'
import { levelOf } from '../../ir/instructions/hardware-axes.ts'
import { memoize } from '../../ir/memoize.ts'
import type { Buffer, For, If, Kernel2, Reduce, Stmt, Store } from '../../ir/statements/loops.ts'
import type { Body } from '../../ir/statements/tree.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import type { Structure } from '../matrix/structure.ts'
import { Reductions } from '../threads/reductions.ts'
import {
  cooperatingThreads,
  countBranches,
  distinctValues,
  longestOverMean,
  tileLanes,
} from '../threads/thread-groups.ts'
import {
  addCase,
  addRows,
  IDLE,
  mixRows,
  type Row,
  repeatRow,
  scaleMeanSteps,
  stepsOf,
  toOneStep,
  uniformRow,
  zeroRow,
} from '../threads/thread-steps.ts'
import { Accesses } from './accesses.ts'
import { elementsOf, expectedValue, probabilityOf, type Segment } from './estimates.ts'
import { type KernelWork, LaunchSums, type LaunchWork } from './launch-sums.ts'
import type { Narrowing, Place } from './place.ts'
import { applyGuards, blockCount, frameOf, inFrame, narrow, rootPlace, threadCount } from './place.ts'
import { operationsOf, readsOf, segmentsOf } from './statements.ts'

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
  readonly #sums = new LaunchSums()
  readonly #accesses: Accesses
  readonly #reductions: Reductions
  readonly #threads = new Map<string, number>()
  #blocks = 1
  /** Number of threads that cooperate on one iteration: in instructions and register tiles. */
  #cooperating = 1
  /** Steps of searches that the loop over a chunk makes once, before it. */
  #hoistedProbes = 0

  constructor(
    buffers: ReadonlyMap<string, Buffer>,
    private readonly structure: Structure,
  ) {
    this.#accesses = new Accesses(buffers, structure, this.#sums, () => this.#threadsOfBlock())
    this.#reductions = new Reductions(this.#accesses, structure, this.#sums)
  }

  launch(top: For): LaunchWork {
    this.#cooperating = cooperatingThreads(top)
    const serial = stepsOf(this.#stmt(top, rootPlace(this.structure)))
    return { ...this.#sums, blocks: this.#blocks, threads: this.#threadsOfBlock(), serial }
  }

  #threadsOfBlock(): number {
    return [...this.#threads.values()].reduce((n, x) => n * x, this.#cooperating)
  }

  #body(body: Body, p: Place): Row {
    let sum = IDLE
    for (const s of body) sum = addRows(sum, this.#stmt(s, p))
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

  /** Visits once for each length that the segments may have, and averages. */
  #split(segments: readonly Segment[], p: Place, visit: (p: Place) => Row): Row {
    const segment = segments.find((s) => !p.lengths.has(s.key))
    if (!segment) return visit(p)
    const lengths = this.structure.lengths.get(segment.offsets)
    const cases = lengths?.bins ?? []
    // Threads of a warp and of a block wait for the one with the longest segment.
    const groups = distinctValues(p.lanes, segment.vars)
    const longestOf = this.structure.meanMaxima.get(segment.offsets)
    const [inWarp, inBlock] = [
      longestOverMean(longestOf, groups.warp),
      longestOverMean(longestOf, groups.block),
    ]
    const longestLength = cases.at(-1)?.length
    let sum = zeroRow()
    for (const { length, share } of cases) {
      p.lengths.set(segment.key, length)
      const row = this.#split(segments, { ...p, times: p.times * share, starts: p.starts * share }, visit)
      // The longest segment of the last bin exceeds the bin's mean: waits and steps grow with it.
      const longest = longestLength === length && length > 0 ? lengths!.longest / length : 1
      sum = addCase(sum, row, { share, inWarp, inBlock, longest })
    }
    p.lengths.delete(segment.key)
    return sum
  }

  #loop(s: For, p: Place): Row {
    let extent = expectedValue(s.extent, p)
    if (Number.isNaN(extent)) extent = 1
    if (extent <= 0 && !s.reduce) return IDLE
    // The last iteration of a predicated unrolled loop is complete; loads beyond the end repeat earlier ones.
    let useful = p.useful
    if (s.mode.kind === 'unroll' && s.mode.predicated && s.mode.factor !== null) {
      const padded = Math.ceil(extent / s.mode.factor) * s.mode.factor
      if (padded > 0) useful *= extent / padded
      extent = padded
    }
    p.ranges.set(s.var, { start: 0, extent })
    const { share, guards: held } = applyGuards(s, p)
    const { mode } = s
    if (mode.kind === 'bind') {
      if (levelOf(mode.to) === 'block') this.#blocks = Math.max(this.#blocks, blockCount(p.frames, extent))
      else this.#threads.set(mode.to, Math.max(this.#threads.get(mode.to) ?? 1, extent))
    }
    const sharers = s.cooperative ? threadCount(p.frames) * this.#cooperating : 1
    const times = (p.times * extent * share) / sharers
    const starts = s.reduce ? p.starts : (p.starts * extent * share) / sharers
    countBranches(this.#sums, this.structure, s, p, extent, share / sharers)
    const frame = frameOf(s, (extent * share) / sharers, times)
    const outerProbes = this.#hoistedProbes
    this.#hoistedProbes = 0
    const inner = this.#body(s.body, inFrame(p, frame, { starts, useful, guards: held }))
    const body = mode.kind === 'instr' ? toOneStep(inner) : inner
    p.ranges.delete(s.var)
    const loopProbes = this.#hoistedProbes
    this.#hoistedProbes = Math.max(outerProbes, mode.kind === 'accumulate' ? 0 : loopProbes)
    if (mode.kind === 'bind') return scaleMeanSteps(body, share)
    const trips = Math.max(0, (extent * share) / sharers)
    return repeatRow(s, body, trips, useful / p.useful, {
      hops: this.#isExtentLoaded(s, p) ? 1 : 0,
      probes: mode.kind === 'accumulate' ? loopProbes : 0,
    })
  }

  /** True if the loop's trip count is loaded from global memory. */
  #isExtentLoaded(s: For, p: Place): boolean {
    if (p.frames.length === 0) return false
    return loadedBuffers(s).some((name) => this.#accesses.buffer(name)?.scope === 'global')
  }

  #if(s: If, p: Place): Row {
    const share = probabilityOf(s.cond, p)
    this.#sums.branches += p.times
    const branch = (body: Body, part: number, narrowing: Narrowing | null): Row => {
      if (body.length === 0 || part === 0) return IDLE
      if (narrowing) p.ranges.set(narrowing.name, narrowing.part)
      const row = this.#body(
        body,
        inFrame(p, frameOf(null, part, p.times * part), { starts: p.starts * part }),
      )
      if (narrowing) p.ranges.set(narrowing.name, narrowing.whole)
      return row
    }
    const then = branch(s.then, share, narrow(s.cond, p, true))
    const other = branch(s.else, 1 - share, narrow(s.cond, p, false))
    return mixRows(share, then, other)
  }

  #leaf(s: Store | Reduce, p: Place): Row {
    const tile = this.#cooperating > 1 ? tileLanes(s, p, (name) => this.#accesses.buffer(name)) : null
    const sharers = tile ? this.#cooperating : 1
    const lanes = tile ? [...tile, ...p.lanes] : p.lanes
    const reads = this.#accesses.reads(readsOf(s), p, lanes)
    this.#hoistedProbes = Math.max(this.#hoistedProbes, reads.hoistedProbes)
    const isMatrix = p.frames.some((f) => f.loop?.mode.kind === 'instr')
    const { n, functions } = operationsOf(s)
    this.#sums.statements += p.times
    this.#sums.functions += functions * p.times
    this.#sums[isMatrix ? 'matrixOperations' : 'operations'] += n * p.times
    if (s.kind === 'store') this.#accesses.write('stores', s, p, lanes, p.times)
    const sync = s.kind === 'store' ? undefined : this.#reductions.reduce(s, p, lanes)
    return uniformRow({
      steps: 1 / sharers,
      rounds: reads.rounds,
      waits: reads.rounds,
      hops: reads.hops,
      probes: reads.probes,
      misses: reads.misses / sharers,
      exchanges: sync?.exchanges ?? 0,
      barriers: sync?.barriers ?? 0,
    })
  }
}

/** Names of the buffers from which the loop's extent is loaded. */
const loadedBuffers = memoize((s: For): readonly string[] => {
  const names: string[] = []
  walkExpr(s.extent, (x) => {
    if (x.kind === 'load') names.push(x.buffer)
  })
  return names
})
