/**
 * Time from terms and what a device can do: what limits a kernel, each by itself, put together. It grows with every term
 * that counts work, whatever the device.
 */
import type { Terms } from './terms.ts'

/** What a device does at most, as calibration measures it. Milliseconds, and amounts a millisecond. */
export interface Coefficients {
  /** Of a launch, and of clearing a buffer, whatever it holds. */
  readonly launch: number
  readonly clear: number
  /** Bytes a millisecond of memory, and of its last cache, and how many bytes that holds. */
  readonly memory: number
  readonly cache: number
  readonly cacheBytes: number
  /** Accesses of single threads, neighbours' together as one of each. */
  readonly requests: number
  /** Operations of floats, and of matrix units. */
  readonly operations: number
  readonly matrix: number
  /** Bytes that atomic updates change. */
  readonly atomics: number
  /** Of one wait for memory. */
  readonly latency: number
  /** Of a statement of one thread, of those that follow each other. */
  readonly step: number
  /** Threads at work at one time. */
  readonly threads: number
  readonly exchanges: number
  readonly searches: number
  readonly shared: number
  /**
   * Of a device on which one thread does one thing after the other: accesses of elements, functions such as `exp` besides that
   * they are operations, iterations of loops with conditions, and entries of loops. Without them they cost nothing.
   */
  readonly accesses?: number | undefined
  readonly functions?: number | undefined
  readonly branches?: number | undefined
  readonly entries?: number | undefined
  /** Ends of loops that were not foreseen, and accesses to what did not stay in registers. */
  readonly surprises?: number | undefined
  readonly spills?: number | undefined
  /** How limits are put together: 1 adds them up, larger ones let them overlap; 2. */
  readonly norm?: number | undefined
}

export const PART_NAMES = [
  'launches',
  'memory',
  'cache',
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

export function partsOf(t: Terms, c: Coefficients): Parts {
  const gathers = t.gatherBytes / Math.max(1, t.blockReuse)
  const streams = t.loadBytes - t.gatherBytes
  const moved = gathers + streams + t.storeBytes
  // What does not stay in the cache comes from memory as often as it is gathered anew.
  const missing = Math.max(0, 1 - c.cacheBytes / Math.max(1, t.gatherFootprint))
  const fromMemory = t.footprint + (missing * t.gatherBytes) / Math.max(1, t.chipReuse)
  const waves = Math.max(1, (t.blocks * t.blockThreads) / c.threads)
  return {
    launches: t.launches * c.launch + t.clears * c.clear + t.clearedBytes / c.cache,
    memory: fromMemory / (t.footprint > c.cacheBytes ? c.memory : c.cache),
    cache: moved / c.cache,
    requests: (t.loadRequests + t.storeRequests) / c.requests,
    operations: t.operations / c.operations + t.matrixOperations / c.matrix,
    atomics: t.atomicBytes / c.atomics,
    latency: t.rounds * waves * c.latency,
    'longest thread': t.longestRounds * c.latency + t.longestSteps * c.step,
    exchanges: t.exchanges / c.exchanges,
    searches: t.searches / c.searches,
    'shared memory': t.sharedBytes / c.shared,
    accesses: at(t.elements, c.accesses) + at(t.spills, c.spills),
    functions: at(t.functions, c.functions),
    branches: at(t.branches, c.branches) + at(t.entries, c.entries) + at(t.surprises, c.surprises),
  }
}

/** Between the greatest of them and their sum: limits overlap, but not wholly. */
const NORM = 2

/** Launches wait for each other; all else goes on at one time. */
export function analyticTime(parts: Parts, { norm = NORM }: Pick<Coefficients, 'norm'>): number {
  let power = 0
  for (const name of PART_NAMES) if (name !== 'launches') power += parts[name] ** norm
  return parts.launches + power ** (1 / norm)
}
