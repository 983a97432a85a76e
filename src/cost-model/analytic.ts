/** Analytic time: combines the limits of a kernel, from its terms and a device's peak rates; it grows with all work. */
import type { Terms } from './terms.ts'

/** Peak rates and overheads of a device, as measured by calibration. Times in milliseconds, rates per millisecond. */
export interface Coefficients {
  /** Milliseconds of a launch, and of zero-filling a buffer of any size. */
  readonly launch: number
  readonly clear: number
  /** Milliseconds of a kernel before and after its launches. */
  readonly begin?: number | undefined
  /** Bytes per millisecond of memory, the last-level cache and the caches of SMs; bytes of the last-level cache. */
  readonly memory: number
  readonly cache: number
  readonly nearCache?: number | undefined
  readonly cacheBytes: number
  /** Memory requests of single threads; a vector access is one request. */
  readonly requests: number
  /** Cache lines that the requests of warps touch. */
  readonly lines?: number | undefined
  /** Floating-point operations, and operations of matrix units. */
  readonly operations: number
  readonly matrix: number
  /**
   * Bytes of atomic updates; updates of one element by threads of one warp, which are serialised; updates of the most
   * frequent element; repetitions of updates that are compare-and-swap loops, one for each warp that updates the same
   * element.
   */
  readonly atomics: number
  readonly conflicts?: number | undefined
  readonly contended?: number | undefined
  readonly retries?: number | undefined
  /** Milliseconds of one round of loads in flight together. */
  readonly latency: number
  /**
   * Latencies in milliseconds: start and end of a wave of blocks, a dependent load, a step of a search, an exchange
   * within a warp, one within a block, a near-cache miss. Absent ones cost nothing.
   */
  readonly wave?: number | undefined
  readonly hop?: number | undefined
  readonly probe?: number | undefined
  readonly exchange?: number | undefined
  readonly barrier?: number | undefined
  readonly miss?: number | undefined
  /**
   * Additional milliseconds per iteration of the longest thread: at the end no other thread hides the latency of its
   * few loads in flight. `farWait` is added if the data exceed the last-level cache.
   */
  readonly wait?: number | undefined
  readonly farWait?: number | undefined
  /** Milliseconds of one statement in a thread's dependent sequence. */
  readonly step: number
  /** Number of threads that run concurrently. */
  readonly threads: number
  /** Values exchanged by threads of a warp, and by those of a block through shared memory. */
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
  /** Loop exits that branch prediction misses, and accesses to arrays that do not stay in registers. */
  readonly surprises?: number | undefined
  readonly spills?: number | undefined
  /** Exponent of the norm that combines the limits: 1 adds them up, larger values let them overlap; default 2. */
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

/** Milliseconds of an amount of work at a rate; 0 if the device has no such rate. */
const timeAt = (amount: number, rate: number | undefined): number => (rate === undefined ? 0 : amount / rate)

/** Evaluated millions of times by a fit, so terms are read by constant names. */
export function partsOf(t: Terms, c: Coefficients): Parts {
  // The share of gathered data that the last-level cache does not hold is loaded from memory at every first use.
  const missShare = Math.max(0, 1 - c.cacheBytes / Math.max(1, t.gatherSweep))
  const memoryBytes = t.footprint + missShare * t.gatherAgain
  // Without a near cache, the last-level cache serves repeated gathers.
  const readBytes =
    c.nearCache === undefined
      ? t.gatherBytes / Math.max(1, t.blockReuse) + t.loadBytes - t.gatherBytes
      : t.freshBytes
  const farShare = Math.max(0, 1 - (NEAR_HALF * c.cacheBytes) / Math.max(1, t.footprint))
  return {
    launches: (c.begin ?? 0) + t.launches * c.launch + t.clears * c.clear + t.clearedBytes / c.cache,
    memory: memoryBytes / (t.footprint > c.cacheBytes ? c.memory : c.cache),
    cache: (readBytes + t.storeBytes) / c.cache,
    'near cache': timeAt(t.loadBytes, c.nearCache),
    requests: (t.loadRequests + t.storeRequests) / c.requests + timeAt(t.lines, c.lines),
    operations: t.operations / c.operations + t.matrixOperations / c.matrix,
    atomics:
      t.atomicBytes / c.atomics +
      timeAt(t.conflicts, c.conflicts) +
      timeAt(t.contention, c.contended) +
      timeAt(t.retries, c.retries),
    latency:
      t.waves * (c.wave ?? 0) +
      (t.waveRounds * c.latency +
        t.waveHops * (c.hop ?? 0) +
        t.waveProbes * (c.probe ?? 0) +
        t.waveExchanges * (c.exchange ?? 0) +
        t.waveBarriers * (c.barrier ?? 0) +
        t.waveMisses * (c.miss ?? 0)),
    'longest thread':
      t.longestRounds * c.latency +
      t.longestHops * (c.hop ?? 0) +
      t.longestProbes * (c.probe ?? 0) +
      t.longestExchanges * (c.exchange ?? 0) +
      t.longestBarriers * (c.barrier ?? 0) +
      t.longestMisses * (c.miss ?? 0) +
      t.longestWaits * ((c.wait ?? 0) + farShare * (c.farWait ?? 0)) +
      t.longestSteps * c.step,
    exchanges: t.exchanges / c.exchanges + timeAt(t.passed, c.passed),
    searches: t.searches / c.searches,
    'shared memory': t.sharedBytes / c.shared,
    accesses: timeAt(t.elements, c.accesses) + timeAt(t.spills, c.spills),
    functions: timeAt(t.functions, c.functions),
    branches:
      timeAt(t.branches, c.branches) + timeAt(t.entries, c.entries) + timeAt(t.surprises, c.surprises),
  }
}

/** The last-level cache consists of two halves; the half attached to other SMs is slower. */
const NEAR_HALF = 0.5

/** Norm of 2: between the maximum of the limits and their sum, because they overlap only in part. */
const NORM = 2

/** Analytic time: launches are serial, all other limits overlap. */
export function analyticTime(parts: Parts, { norm = NORM }: Pick<Coefficients, 'norm'>): number {
  let power = 0
  for (const name of PART_NAMES) if (name !== 'launches') power += parts[name] ** norm
  return parts.launches + power ** (1 / norm)
}
