/**
 * Analytic time: combines the limits of a kernel, computed from its terms and the device's peak rates. It grows with every
 * term that counts work, on every device.
 */
import type { Terms } from './terms.ts'

/** Peak rates and overheads of a device, as measured by calibration. Times in milliseconds, rates per millisecond. */
export interface Coefficients {
  /** Of a launch, and of clearing a buffer, whatever it holds. */
  readonly launch: number
  readonly clear: number
  /** Milliseconds of a kernel before and after its launches. */
  readonly begin?: number | undefined
  /** Bytes a millisecond of memory, of its last cache, of the caches of its multiprocessors, and how many bytes the last one holds. */
  readonly memory: number
  readonly cache: number
  readonly nearCache?: number | undefined
  readonly cacheBytes: number
  /** Accesses of single threads, neighbours' together as one of each. */
  readonly requests: number
  /** Cache lines that the requests of warps touch. */
  readonly lines?: number | undefined
  /** Operations of floats, and of matrix units. */
  readonly operations: number
  readonly matrix: number
  /**
   * Bytes that atomic updates change; those of a warp's threads that wait for others of the same element; and one of many of
   * one element. Updates that are loops of compare and swap are tried again for each warp that is at the same element.
   */
  readonly atomics: number
  readonly conflicts?: number | undefined
  readonly contended?: number | undefined
  readonly retries?: number | undefined
  /** Milliseconds of one round of reads that are under way together. */
  readonly latency: number
  /**
   * Latencies in milliseconds: start and end of a wave of blocks, a dependent read, a step of a search, an exchange within a
   * warp, one within a block, a near-cache miss. Absent ones cost nothing.
   */
  readonly wave?: number | undefined
  readonly hop?: number | undefined
  readonly probe?: number | undefined
  readonly exchange?: number | undefined
  readonly barrier?: number | undefined
  readonly miss?: number | undefined
  /**
   * Additional milliseconds per iteration of the longest thread: at the end no other thread hides the latency of its few
   * reads in flight; also if the data exceed the last cache.
   */
  readonly wait?: number | undefined
  readonly farWait?: number | undefined
  /** Milliseconds of one statement in a thread's dependent sequence. */
  readonly step: number
  /** Threads at work at one time. */
  readonly threads: number
  /** Values that threads of a warp, and through shared memory those of a block, exchange. */
  readonly exchanges: number
  readonly passed?: number | undefined
  readonly searches: number
  readonly shared: number
  /**
   * Serial devices (one thread per processor): accesses of elements, additional cost of functions such as `exp`, iterations
   * of loops with conditions, and loop entries. Absent ones cost nothing.
   */
  readonly accesses?: number | undefined
  readonly functions?: number | undefined
  readonly branches?: number | undefined
  readonly entries?: number | undefined
  /** Ends of loops that were not foreseen, and accesses to what did not stay in registers. */
  readonly surprises?: number | undefined
  readonly spills?: number | undefined
  /** Exponent of the norm that combines the limits: 1 adds them up, larger values let them overlap; 2. */
  readonly norm?: number | undefined
}

export const PART_NAMES = [
  'launches',
  'memory',
  'cache',
  'near cache',
  'requests',
  'operations',
  'atomics',
  'latency',
  'longest thread',
  'exchanges',
  'searches',
  'shared memory',
  'accesses',
  'functions',
  'branches',
] as const
export type PartName = (typeof PART_NAMES)[number]

/** Milliseconds of each limit alone. */
export type Parts = Readonly<Record<PartName, number>>

const at = (amount: number, rate: number | undefined): number => (rate === undefined ? 0 : amount / rate)

/** Milliseconds that one thread waits: sum of counts times latencies. */
const waited = (w: Waits, c: Coefficients): number =>
  w.rounds * c.latency +
  w.hops * (c.hop ?? 0) +
  w.probes * (c.probe ?? 0) +
  w.exchanges * (c.exchange ?? 0) +
  w.barriers * (c.barrier ?? 0) +
  w.misses * (c.miss ?? 0)

export function partsOf(t: Terms, c: Coefficients): Parts {
  // What does not stay in the cache comes from memory as often as it is gathered anew.
  const missing = Math.max(0, 1 - c.cacheBytes / Math.max(1, t.gatherSweep))
  const fromMemory = t.footprint + missing * t.gatherAgain
  // Without a near cache of its own, it is the one that keeps what is gathered again.
  const read =
    c.nearCache === undefined
      ? t.gatherBytes / Math.max(1, t.blockReuse) + t.loadBytes - t.gatherBytes
      : t.freshBytes
  const far = Math.max(0, 1 - (NEAR_HALF * c.cacheBytes) / Math.max(1, t.footprint))
  const waves: Waits = {
    rounds: t.waveRounds,
    hops: t.waveHops,
    probes: t.waveProbes,
    exchanges: t.waveExchanges,
    barriers: t.waveBarriers,
    misses: t.waveMisses,
  }
  const longest: Waits = {
    rounds: t.longestRounds,
    hops: t.longestHops,
    probes: t.longestProbes,
    exchanges: t.longestExchanges,
    barriers: t.longestBarriers,
    misses: t.longestMisses,
  }
  return {
    launches: (c.begin ?? 0) + t.launches * c.launch + t.clears * c.clear + t.clearedBytes / c.cache,
    memory: fromMemory / (t.footprint > c.cacheBytes ? c.memory : c.cache),
    cache: (read + t.storeBytes) / c.cache,
    'near cache': at(t.loadBytes, c.nearCache),
    requests: (t.loadRequests + t.storeRequests) / c.requests + at(t.lines, c.lines),
    operations: t.operations / c.operations + t.matrixOperations / c.matrix,
    atomics:
      t.atomicBytes / c.atomics +
      at(t.conflicts, c.conflicts) +
      at(t.contention, c.contended) +
      at(t.retries, c.retries),
    latency: t.waves * (c.wave ?? 0) + waited(waves, c),
    'longest thread':
      waited(longest, c) +
      t.longestWaits * ((c.wait ?? 0) + far * (c.farWait ?? 0)) +
      t.longestSteps * c.step,
    exchanges: t.exchanges / c.exchanges + at(t.passed, c.passed),
    searches: t.searches / c.searches,
    'shared memory': t.sharedBytes / c.shared,
    accesses: at(t.elements, c.accesses) + at(t.spills, c.spills),
    functions: at(t.functions, c.functions),
    branches: at(t.branches, c.branches) + at(t.entries, c.entries) + at(t.surprises, c.surprises),
  }
}

interface Waits {
  readonly rounds: number
  readonly hops: number
  readonly probes: number
  readonly exchanges: number
  readonly barriers: number
  readonly misses: number
}

/** The last cache is in halves: what is in the other one is far away. */
const NEAR_HALF = 0.5

/** Between the greatest of them and their sum: limits overlap, but not wholly. */
const NORM = 2

/** Analytic time: launches are serial, all other limits overlap. */
export function analyticTime(parts: Parts, { norm = NORM }: Pick<Coefficients, 'norm'>): number {
  let power = 0
  for (const name of PART_NAMES) if (name !== 'launches') power += parts[name] ** norm
  return parts.launches + power ** (1 / norm)
}
