/** Features of the learned correction: ratios, which are independent of the data's size, and a few magnitudes. */
import { analyticTime, type Coefficients, PART_NAMES, type PartName, type Parts } from '../analytic.ts'
import { BLOCKS, type MatrixStatistics, WINDOWS } from '../matrix/statistics.ts'
import type { Terms } from '../terms.ts'

/** Limits of serial devices, whose learned correction does not use them. */
const SERIAL_PARTS: ReadonlySet<PartName> = new Set(['accesses', 'functions', 'branches'])
const SHARES = PART_NAMES.filter((p) => !SERIAL_PARTS.has(p))

const STATISTICS = ['rowGini', 'columnGini', 'emptyRows', 'bandwidth', 'gap', 'adjacent'] as const

/** One name for each feature, in their order: part of a trained model. */
export const FEATURE_NAMES: readonly string[] = [
  'log time',
  ...SHARES.map((p) => `share of ${p}`),
  'blocks at one time',
  'log block threads',
  'log gather run',
  'log bytes of a load',
  'log lines of a load',
  'log loads of a store',
  'log operations of a byte',
  'log statements of a gather',
  'log imbalance',
  'log waits',
  'log longest waits',
  'log longest rounds apart',
  'log waves',
  'log rounds of a wave',
  'log hops of a round',
  'log misses of a round',
  'log barriers',
  'log contention',
  'log kept bytes',
  'log gathers of a sweep in the cache',
  'log steps of a wait',
  'log gathers in the cache',
  'log reuse of a block',
  'log reuse of the chip',
  'log padding',
  'log elements',
  'log mean row',
  'log longest row',
  'log rows of a column',
  ...STATISTICS,
  ...BLOCKS.map((b) => `density of ${b}`),
  ...WINDOWS.map((w) => `log reuse of ${w}`),
  'atomics',
  'launches',
]

const log = (x: number): number => Math.log2(Math.max(x, 1e-9))
const ratio = (a: number, b: number): number => log((a + 1) / (b + 1))

/** Feature vector of the learned correction, in the order of `FEATURE_NAMES`. */
export function featuresOf(
  t: Terms,
  parts: Parts,
  c: Coefficients,
  s: MatrixStatistics | null,
): Float64Array {
  const time = analyticTime(parts, c)
  const perRow = s && s.rows > 0 ? s.nonzeros / s.rows : 0
  return Float64Array.from([
    log(time),
    ...SHARES.map((p) => parts[p] / Math.max(time, 1e-12)),
    log((t.blocks * t.blockThreads) / c.threads),
    log(t.blockThreads),
    log(t.gatherRun),
    ratio(t.loadBytes, t.loadRequests),
    ratio(32 * t.lines, t.loadRequests),
    ratio(t.loadRequests, t.storeRequests + t.atomicRequests),
    ratio(t.operations + t.matrixOperations, t.footprint),
    ratio(t.statements, t.gatherElements),
    log(t.imbalance),
    log(t.rounds),
    log(t.longestRounds),
    log(t.longestWaits),
    log(t.waves),
    ratio(t.waveRounds, t.waves),
    ratio(t.waveHops, t.waveRounds),
    ratio(t.waveMisses, t.waveRounds),
    log(t.longestBarriers + 1),
    log(t.contention + 1),
    ratio(t.loadBytes, t.freshBytes),
    log(t.gatherSweep / c.cacheBytes),
    ratio(t.steps, t.rounds),
    log(t.gatherFootprint / c.cacheBytes),
    log(t.blockReuse),
    log(t.chipReuse),
    log(t.padding),
    log(s?.nonzeros ?? 0),
    log(perRow),
    log(s?.rowLengths.longest ?? 0),
    ratio(s?.rows ?? 0, s?.columns ?? 0),
    ...STATISTICS.map((name) => s?.[name] ?? 0),
    ...BLOCKS.map((b) => s?.blockDensity.get(b) ?? 0),
    ...WINDOWS.map((w) => log(s?.reuse.get(w) ?? 1)),
    t.atomicRequests > 0 ? 1 : 0,
    t.launches,
  ])
}
