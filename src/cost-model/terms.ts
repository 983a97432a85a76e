/** Terms of the cost model: numbers from a kernel's expected work on data, with one meaning for all kernels. */

import { mentionsSome } from '../ir/expressions/expr-tree.ts'
import type { Kernel2 } from '../ir/statements/loops.ts'
import { DTYPE_BYTES } from '../ir/values/dtype.ts'
import type { MatrixStatistics } from './matrix/statistics.ts'
import type { Structure } from './matrix/structure.ts'
import type { Serial, Steps } from './threads/thread-steps.ts'
import { SECTOR, WARP } from './work/coalescing.ts'
import { elementsOf } from './work/estimates.ts'
import type { AccessKind, KernelWork, LaunchWork, Traffic } from './work/launch-sums.ts'

/** Threads that run concurrently on a chip (one wave); only the magnitude matters. */
const CONCURRENT_THREADS = 132 * 2048

const sum = <T>(xs: Iterable<T>, measure: (x: T) => number): number => {
  let n = 0
  for (const x of xs) n += measure(x)
  return n
}

const waveCount = (l: LaunchWork): number => Math.max(1, (l.blocks * l.threads) / CONCURRENT_THREADS)

class TermSource {
  readonly launches: readonly LaunchWork[]
  /** Slots in which the sparse operand is stored, divided by its elements. */
  readonly padding: number
  readonly #bytes: ReadonlyMap<string, number>

  constructor(
    kernel: Kernel2,
    readonly work: KernelWork,
    structure: Structure,
    statistics: MatrixStatistics | null,
  ) {
    // Launches without statements do not run.
    this.launches = work.launches.filter((l) => l.statements > 0)
    this.#bytes = new Map(
      kernel.buffers.map((b) => [b.name, DTYPE_BYTES[b.dtype] * elementsOf(b, structure)]),
    )
    const nonzeros = statistics?.nonzeros ?? 0
    this.padding = nonzeros > 0 ? slotsOf(kernel, structure) / nonzeros : 1
  }

  sum(measure: (l: LaunchWork) => number): number {
    return sum(this.launches, measure)
  }

  total(kind: AccessKind, field: (t: Traffic) => number): number {
    return this.sum((l) => sum(l.traffic[kind].values(), field))
  }

  /** Bytes of the arrays that are accessed in these ways. */
  touched(kinds: readonly AccessKind[], isIncluded: (t: Traffic) => boolean = () => true): number {
    const names = this.launches.flatMap((l) =>
      kinds.flatMap((kind) => [...l.traffic[kind]].filter(([, t]) => isIncluded(t)).map(([name]) => name)),
    )
    return sum(new Set(names), (name) => this.#bytes.get(name) ?? 0)
  }

  /** Mean over the launches, weighted by threads. */
  mean(measure: (l: LaunchWork) => number): number {
    const threads = this.sum((l) => l.blocks * l.threads)
    return threads === 0 ? 0 : this.sum((l) => l.blocks * l.threads * measure(l)) / threads
  }

  perWave(counter: (s: Steps) => Serial): number {
    return this.sum((l) => waveCount(l) * counter(l.serial).block)
  }

  longest(counter: (s: Steps) => Serial): number {
    return this.sum((l) => counter(l.serial).max)
  }

  get gathered(): number {
    return this.total('loads', (t) => t.gathered)
  }

  reuse(field: (t: Traffic) => number): number {
    return this.gathered === 0 ? 1 : this.gathered / this.total('loads', field)
  }
}

const TERMS = {
  launches: (k) => k.launches.length,
  clears: (k) => k.work.clears.length,
  clearedBytes: (k) => sum(k.work.clears, (c) => c.bytes),
  operations: (k) => k.sum((l) => l.operations),
  matrixOperations: (k) => k.sum((l) => l.matrixOperations),
  functions: (k) => k.sum((l) => l.functions),
  statements: (k) => k.sum((l) => l.statements),
  entries: (k) => k.sum((l) => l.entries),
  branches: (k) => k.sum((l) => l.branches),
  surprises: (k) => k.sum((l) => l.surprises),
  spills: (k) => k.sum((l) => l.spills),
  elements: (k) =>
    k.total('loads', (t) => t.elements) +
    k.total('stores', (t) => t.elements) +
    k.total('atomics', (t) => 2 * t.elements),
  loadRequests: (k) => k.total('loads', (t) => t.requests),
  loadBytes: (k) => SECTOR * k.total('loads', (t) => t.sectors),
  gatherBytes: (k) => SECTOR * k.total('loads', (t) => (t.gathered > 0 ? t.sectors : 0)),
  gatherSweep: (k) =>
    Math.max(0, ...k.launches.flatMap((l) => [...l.traffic.loads.values()].map((t) => t.sweep))),
  gatherAgain: (k) =>
    SECTOR * k.total('loads', (t) => (t.gathered > 0 ? (t.sectors * t.firstOfChip) / t.gathered : 0)),
  freshBytes: (k) => SECTOR * k.total('loads', (t) => t.fresh),
  gatherRun: (k) => (k.gathered === 0 ? 0 : k.total('loads', (t) => t.runs) / k.gathered),
  gatherElements: (k) => k.gathered,
  lines: (k) =>
    k.total('loads', (t) => t.lines) + k.total('stores', (t) => t.lines) + k.total('atomics', (t) => t.lines),
  storeRequests: (k) => k.total('stores', (t) => t.requests),
  storeBytes: (k) => SECTOR * k.total('stores', (t) => t.sectors),
  atomicRequests: (k) => k.total('atomics', (t) => t.requests),
  atomicBytes: (k) => SECTOR * k.total('atomics', (t) => t.sectors),
  conflicts: (k) => k.sum((l) => l.conflicts),
  contention: (k) => k.sum((l) => l.contention),
  retries: (k) => k.sum((l) => l.retries),
  searches: (k) => k.sum((l) => l.searches),
  exchanges: (k) => k.sum((l) => l.exchanges),
  passed: (k) => k.sum((l) => l.passed),
  sharedBytes: (k) => k.sum((l) => l.shared),
  footprint: (k) => k.touched(['loads', 'stores', 'atomics']),
  gatherFootprint: (k) => k.touched(['loads'], (t) => t.gathered > 0),
  writtenFootprint: (k) => k.touched(['stores', 'atomics']),
  blocks: (k) => k.sum((l) => l.blocks),
  blockThreads: (k) => k.mean((l) => l.threads),
  warps: (k) => k.sum((l) => l.blocks * Math.ceil(l.threads / WARP)),
  steps: (k) => k.sum((l) => l.serial.steps.mean),
  longestSteps: (k) => k.longest((s) => s.steps),
  rounds: (k) => k.sum((l) => l.serial.rounds.mean),
  // Waves of concurrent blocks, and the serial work of the longest thread of a block, summed over the waves; units are
  // given at `Steps`.
  waves: (k) => k.sum(waveCount),
  waveRounds: (k) => k.perWave((s) => s.rounds),
  waveHops: (k) => k.perWave((s) => s.hops),
  waveProbes: (k) => k.perWave((s) => s.probes),
  waveExchanges: (k) => k.perWave((s) => s.exchanges),
  waveBarriers: (k) => k.perWave((s) => s.barriers),
  waveMisses: (k) => k.perWave((s) => s.misses),
  // Serial work of the longest thread of all; `longestWaits` counts its rounds as if nothing were unrolled.
  longestRounds: (k) => k.longest((s) => s.rounds),
  longestHops: (k) => k.longest((s) => s.hops),
  longestProbes: (k) => k.longest((s) => s.probes),
  longestExchanges: (k) => k.longest((s) => s.exchanges),
  longestBarriers: (k) => k.longest((s) => s.barriers),
  longestMisses: (k) => k.longest((s) => s.misses),
  // Compilers keep few loads in flight, for as many threads as an SM has registers for. With blocks of one warp, half as
  // many threads are resident, and the rounds are those of the source.
  longestWaits: (k) => k.sum((l) => (l.threads <= WARP ? l.serial.rounds : l.serial.waits).max),
  imbalance: (k) => {
    const mean = k.sum((l) => l.serial.steps.mean)
    return mean === 0 ? 1 : k.longest((s) => s.steps) / mean
  },
  blockReuse: (k) => k.reuse((t) => t.first),
  chipReuse: (k) => k.reuse((t) => t.firstOfChip),
  padding: (k) => k.padding,
} as const satisfies Record<string, (k: TermSource) => number>

type TermName = keyof typeof TERMS
export const TERM_NAMES = Object.keys(TERMS) as readonly TermName[]

/** Values by name; all finite and not negative. */
export type Terms = Readonly<Record<TermName, number>>

/** Terms of a kernel; `statistics` describes the sparse operand if there is one. */
export function termsOf(
  kernel: Kernel2,
  work: KernelWork,
  structure: Structure,
  statistics: MatrixStatistics | null,
): Terms {
  const source = new TermSource(kernel, work, structure, statistics)
  return Object.fromEntries(TERM_NAMES.map((name) => [name, TERMS[name](source)])) as Terms
}

/** Number of slots in which the sparse operand is stored: elements of arrays whose length is a count. */
function slotsOf(kernel: Kernel2, s: Structure): number {
  const isSparse = (b: Kernel2['buffers'][number]): boolean =>
    b.role === 'in' && b.shape.some((e) => mentionsSome(e, s.counts))
  return sum(kernel.buffers.filter(isSparse), (b) => elementsOf(b, s))
}
