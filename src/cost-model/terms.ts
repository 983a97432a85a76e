/**
 * Terms of the cost model: named numbers computed from a kernel's expected work on some data, with the same meaning for
 * every kernel.
 */

import { mentionsSome } from '../ir/expressions/expr-tree.ts'
import type { Kernel2 } from '../ir/statements/loops.ts'
import { DTYPE_BYTES } from '../ir/values/dtype.ts'
import type { MatrixStatistics } from './matrix/statistics.ts'
import type { Structure } from './matrix/structure.ts'
import type { Serial, Steps } from './threads/thread-steps.ts'
import { SECTOR, WARP } from './work/coalescing.ts'
import { elementsOf } from './work/estimates.ts'
import type { AccessKind, KernelWork, LaunchWork, Traffic } from './work/work.ts'

/** Values by name; all finite and not negative. */
export type Terms = Readonly<Record<TermName, number>>

export const TERM_NAMES = [
  'launches',
  'clears',
  'clearedBytes',
  'operations',
  'matrixOperations',
  'functions',
  'statements',
  'entries',
  'branches',
  'surprises',
  'spills',
  'elements',
  'loadRequests',
  'loadBytes',
  'gatherBytes',
  'gatherSweep',
  'gatherAgain',
  'freshBytes',
  'gatherRun',
  'gatherElements',
  'lines',
  'storeRequests',
  'storeBytes',
  'atomicRequests',
  'atomicBytes',
  'conflicts',
  'contention',
  'retries',
  'searches',
  'exchanges',
  'passed',
  'sharedBytes',
  'footprint',
  'gatherFootprint',
  'writtenFootprint',
  'blocks',
  'blockThreads',
  'warps',
  'steps',
  'longestSteps',
  'rounds',
  // Waves of concurrent blocks, and the serial work of the longest thread of a block, summed over the waves; units are
  // given at `Steps`.
  'waves',
  'waveRounds',
  'waveHops',
  'waveProbes',
  'waveExchanges',
  'waveBarriers',
  'waveMisses',
  // Serial work of the longest thread of all; `longestWaits` counts its rounds as if nothing were unrolled.
  'longestRounds',
  'longestHops',
  'longestProbes',
  'longestExchanges',
  'longestBarriers',
  'longestMisses',
  'longestWaits',
  'imbalance',
  'blockReuse',
  'chipReuse',
  'padding',
] as const
export type TermName = (typeof TERM_NAMES)[number]

/** Threads that run concurrently on a chip (one wave); only the magnitude matters. */
const CONCURRENT_THREADS = 132 * 2048

const sum = <T>(xs: Iterable<T>, measure: (x: T) => number): number => {
  let n = 0
  for (const x of xs) n += measure(x)
  return n
}

/** Terms of a kernel; `statistics` describes the sparse operand if there is one. */
export function termsOf(
  kernel: Kernel2,
  work: KernelWork,
  structure: Structure,
  statistics: MatrixStatistics | null,
): Terms {
  // Launches without statements do not run.
  const launches = work.launches.filter((l) => l.statements > 0)
  const { clears } = work
  const total = (kind: AccessKind, field: (t: Traffic) => number): number =>
    sum(launches, (l) => sum(l.traffic[kind].values(), field))
  const bytesOf = new Map(
    kernel.buffers.map((b) => [b.name, DTYPE_BYTES[b.dtype] * elementsOf(b, structure)]),
  )
  const touched = (
    kinds: readonly AccessKind[],
    isIncluded: (t: Traffic) => boolean = () => true,
  ): number => {
    const names = new Set(
      launches.flatMap((l) =>
        kinds.flatMap((w) => [...l.traffic[w]].filter(([, t]) => isIncluded(t)).map(([n]) => n)),
      ),
    )
    return sum(names, (n) => bytesOf.get(n) ?? 0)
  }
  const gathered = total('loads', (t) => t.gathered)
  const runs = total('loads', (t) => t.runs)
  const threads = sum(launches, (l) => l.blocks * l.threads)
  const weighted = (measure: (l: LaunchWork) => number): number =>
    threads === 0 ? 0 : sum(launches, (l) => l.blocks * l.threads * measure(l)) / threads
  const longestSteps = sum(launches, (l) => l.serial.steps.max)
  const meanSteps = sum(launches, (l) => l.serial.steps.mean)
  const waveCount = (l: LaunchWork): number => Math.max(1, (l.blocks * l.threads) / CONCURRENT_THREADS)
  const perWave = (counter: (s: Steps) => Serial): number =>
    sum(launches, (l) => waveCount(l) * counter(l.serial).block)
  const longestThread = (counter: (s: Steps) => Serial): number => sum(launches, (l) => counter(l.serial).max)
  const reuse = (field: (t: Traffic) => number): number =>
    gathered === 0 ? 1 : gathered / total('loads', field)
  return {
    launches: launches.length,
    clears: clears.length,
    clearedBytes: sum(clears, (c) => c.bytes),
    operations: sum(launches, (l) => l.operations),
    matrixOperations: sum(launches, (l) => l.matrixOperations),
    functions: sum(launches, (l) => l.functions),
    statements: sum(launches, (l) => l.statements),
    entries: sum(launches, (l) => l.entries),
    branches: sum(launches, (l) => l.branches),
    surprises: sum(launches, (l) => l.surprises),
    spills: sum(launches, (l) => l.spills),
    elements:
      total('loads', (t) => t.elements) +
      total('stores', (t) => t.elements) +
      total('atomics', (t) => 2 * t.elements),
    loadRequests: total('loads', (t) => t.requests),
    loadBytes: SECTOR * total('loads', (t) => t.sectors),
    gatherBytes: SECTOR * total('loads', (t) => (t.gathered > 0 ? t.sectors : 0)),
    gatherSweep: Math.max(0, ...launches.flatMap((l) => [...l.traffic.loads.values()].map((t) => t.sweep))),
    gatherAgain:
      SECTOR * total('loads', (t) => (t.gathered > 0 ? (t.sectors * t.firstOfChip) / t.gathered : 0)),
    freshBytes: SECTOR * total('loads', (t) => t.fresh),
    gatherRun: gathered === 0 ? 0 : runs / gathered,
    gatherElements: gathered,
    lines:
      total('loads', (t) => t.lines) + total('stores', (t) => t.lines) + total('atomics', (t) => t.lines),
    storeRequests: total('stores', (t) => t.requests),
    storeBytes: SECTOR * total('stores', (t) => t.sectors),
    atomicRequests: total('atomics', (t) => t.requests),
    atomicBytes: SECTOR * total('atomics', (t) => t.sectors),
    conflicts: sum(launches, (l) => l.conflicts),
    contention: sum(launches, (l) => l.contention),
    retries: sum(launches, (l) => l.retries),
    searches: sum(launches, (l) => l.searches),
    exchanges: sum(launches, (l) => l.exchanges),
    passed: sum(launches, (l) => l.passed),
    sharedBytes: sum(launches, (l) => l.shared),
    footprint: touched(['loads', 'stores', 'atomics']),
    gatherFootprint: touched(['loads'], (t) => t.gathered > 0),
    writtenFootprint: touched(['stores', 'atomics']),
    blocks: sum(launches, (l) => l.blocks),
    blockThreads: weighted((l) => l.threads),
    warps: sum(launches, (l) => l.blocks * Math.ceil(l.threads / WARP)),
    steps: meanSteps,
    longestSteps: longestSteps,
    rounds: sum(launches, (l) => l.serial.rounds.mean),
    waves: sum(launches, waveCount),
    waveRounds: perWave((s) => s.rounds),
    waveHops: perWave((s) => s.hops),
    waveProbes: perWave((s) => s.probes),
    waveExchanges: perWave((s) => s.exchanges),
    waveBarriers: perWave((s) => s.barriers),
    waveMisses: perWave((s) => s.misses),
    longestRounds: longestThread((s) => s.rounds),
    longestHops: longestThread((s) => s.hops),
    longestProbes: longestThread((s) => s.probes),
    longestExchanges: longestThread((s) => s.exchanges),
    longestBarriers: longestThread((s) => s.barriers),
    longestMisses: longestThread((s) => s.misses),
    // Compilers keep few loads in flight, for as many threads as an SM has registers for. With blocks of one warp, half
    // as many threads are resident, and the rounds are those of the source.
    longestWaits: sum(launches, (l) => (l.threads <= WARP ? l.serial.rounds : l.serial.waits).max),
    imbalance: meanSteps === 0 ? 1 : longestSteps / meanSteps,
    blockReuse: reuse((t) => t.first),
    chipReuse: reuse((t) => t.firstOfChip),
    padding: statistics && statistics.nonzeros > 0 ? slotsOf(kernel, structure) / statistics.nonzeros : 1,
  }
}

/** Number of slots in which the sparse operand is stored: elements of arrays whose length is a count. */
function slotsOf(kernel: Kernel2, s: Structure): number {
  const isSparse = (b: Kernel2['buffers'][number]): boolean =>
    b.role === 'in' && b.shape.some((e) => mentionsSome(e, s.counts))
  return sum(kernel.buffers.filter(isSparse), (b) => elementsOf(b, s))
}
