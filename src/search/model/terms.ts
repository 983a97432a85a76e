/**
 * The terms that a cost is predicted from: of a kernel's expected work on some data, named numbers that mean the same
 * whatever the kernel is.
 */

import { DTYPE_BYTES } from '../../ir/dtype.ts'
import { mentionsAny } from '../../ir/expr-tree.ts'
import type { Kernel2 } from '../../ir/loops.ts'
import { SECTOR, WARP } from './coalescing.ts'
import { elementsOf } from './elements.ts'
import type { MatrixStatistics } from './statistics.ts'
import type { Structure } from './structure.ts'
import type { Serial, Steps } from './thread-steps.ts'
import type { KernelWork, LaunchWork, Traffic, Way } from './work.ts'

/** By name; all finite and not negative. */
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
  // Waves of blocks that a chip has at work at one time, and what the longest thread of a block does one after the other, in all
  // waves: `Steps` says what each is.
  'waves',
  'waveRounds',
  'waveHops',
  'waveProbes',
  'waveExchanges',
  'waveBarriers',
  'waveMisses',
  // The same of the longest thread of all; `longestWaits`: its rounds as if nothing were unrolled.
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

/** Threads that a chip has at work at one time: a wave; only its magnitude matters. */
const AT_WORK = 132 * 2048

const sum = <T>(xs: Iterable<T>, of: (x: T) => number): number => {
  let n = 0
  for (const x of xs) n += of(x)
  return n
}

/** Statistics of the sparse operand where there is one. */
export function termsOf(
  kernel: Kernel2,
  work: KernelWork,
  structure: Structure,
  statistics: MatrixStatistics | null,
): Terms {
  // Launches without threads are none.
  const launches = work.launches.filter((l) => l.statements > 0)
  const { clears } = work
  const all = (way: Way, of: (t: Traffic) => number): number =>
    sum(launches, (l) => sum(l.traffic[way].values(), of))
  const bytesOf = new Map(
    kernel.buffers.map((b) => [b.name, DTYPE_BYTES[b.dtype] * elementsOf(b, structure)]),
  )
  const touched = (ways: readonly Way[], which: (t: Traffic) => boolean = () => true): number => {
    const names = new Set(
      launches.flatMap((l) =>
        ways.flatMap((w) => [...l.traffic[w]].filter(([, t]) => which(t)).map(([n]) => n)),
      ),
    )
    return sum(names, (n) => bytesOf.get(n) ?? 0)
  }
  const gathered = all('loads', (t) => t.gathered)
  const runs = all('loads', (t) => t.runs)
  const threads = sum(launches, (l) => l.blocks * l.threads)
  const weighted = (of: (l: LaunchWork) => number): number =>
    threads === 0 ? 0 : sum(launches, (l) => l.blocks * l.threads * of(l)) / threads
  const longest = sum(launches, (l) => l.serial.steps.most)
  const mean = sum(launches, (l) => l.serial.steps.mean)
  const wavesOf = (l: LaunchWork): number => Math.max(1, (l.blocks * l.threads) / AT_WORK)
  const inWaves = (of: (s: Steps) => Serial): number => sum(launches, (l) => wavesOf(l) * of(l.serial).block)
  const most = (of: (s: Steps) => Serial): number => sum(launches, (l) => of(l.serial).most)
  const reused = (of: (t: Traffic) => number): number => (gathered === 0 ? 1 : gathered / all('loads', of))
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
      all('loads', (t) => t.elements) +
      all('stores', (t) => t.elements) +
      all('atomics', (t) => 2 * t.elements),
    loadRequests: all('loads', (t) => t.requests),
    loadBytes: SECTOR * all('loads', (t) => t.sectors),
    gatherBytes: SECTOR * all('loads', (t) => (t.gathered > 0 ? t.sectors : 0)),
    gatherSweep: Math.max(0, ...launches.flatMap((l) => [...l.traffic.loads.values()].map((t) => t.sweep))),
    gatherAgain:
      SECTOR * all('loads', (t) => (t.gathered > 0 ? (t.sectors * t.firstOfChip) / t.gathered : 0)),
    freshBytes: SECTOR * all('loads', (t) => t.fresh),
    gatherRun: gathered === 0 ? 0 : runs / gathered,
    gatherElements: gathered,
    lines: all('loads', (t) => t.lines) + all('stores', (t) => t.lines) + all('atomics', (t) => t.lines),
    storeRequests: all('stores', (t) => t.requests),
    storeBytes: SECTOR * all('stores', (t) => t.sectors),
    atomicRequests: all('atomics', (t) => t.requests),
    atomicBytes: SECTOR * all('atomics', (t) => t.sectors),
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
    steps: mean,
    longestSteps: longest,
    rounds: sum(launches, (l) => l.serial.rounds.mean),
    waves: sum(launches, wavesOf),
    waveRounds: inWaves((s) => s.rounds),
    waveHops: inWaves((s) => s.hops),
    waveProbes: inWaves((s) => s.probes),
    waveExchanges: inWaves((s) => s.exchanges),
    waveBarriers: inWaves((s) => s.barriers),
    waveMisses: inWaves((s) => s.misses),
    longestRounds: most((s) => s.rounds),
    longestHops: most((s) => s.hops),
    longestProbes: most((s) => s.probes),
    longestExchanges: most((s) => s.exchanges),
    longestBarriers: most((s) => s.barriers),
    longestMisses: most((s) => s.misses),
    // Compilers keep few reads under way, for as many threads as a multiprocessor has room for. Of blocks of one warp it has
    // room for half as many, and rounds are as they are written.
    longestWaits: sum(launches, (l) => (l.threads <= WARP ? l.serial.rounds : l.serial.waits).most),
    imbalance: mean === 0 ? 1 : longest / mean,
    blockReuse: reused((t) => t.first),
    chipReuse: reused((t) => t.firstOfChip),
    padding: statistics && statistics.nonzeros > 0 ? slotsOf(kernel, structure) / statistics.nonzeros : 1,
  }
}

/** Elements of what the sparse operand is stored in: the arrays whose length is a count. */
function slotsOf(kernel: Kernel2, s: Structure): number {
  const isSparse = (b: Kernel2['buffers'][number]): boolean =>
    b.role === 'in' && b.shape.some((e) => mentionsAny(e, s.counts))
  return sum(kernel.buffers.filter(isSparse), (b) => elementsOf(b, s))
}
