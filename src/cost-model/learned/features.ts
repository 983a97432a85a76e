/** Features of the learned correction: ratios, which are independent of the data's size, and a few magnitudes. */
import { analyticTime, type Coefficients, PART_NAMES, type PartName, type Parts } from '../analytic.ts'
import { BLOCKS, type MatrixStatistics, WINDOWS } from '../matrix/statistics.ts'
import type { Terms } from '../terms.ts'

/** Limits of serial devices, whose learned correction does not use them. */
const SERIAL_PARTS: ReadonlySet<PartName> = new Set(['accesses', 'functions', 'branches'])
const SHARES = PART_NAMES.filter((p) => !SERIAL_PARTS.has(p))

const STATISTICS = ['rowGini', 'columnGini', 'emptyRows', 'bandwidth', 'gap', 'adjacent'] as const

const log = (x: number): number => Math.log2(Math.max(x, 1e-9))
const ratio = (a: number, b: number): number => log((a + 1) / (b + 1))

interface Facts {
  readonly t: Terms
  readonly parts: Parts
  readonly c: Coefficients
  readonly s: MatrixStatistics | null
  readonly time: number
}

type Feature = readonly [name: string, value: (facts: Facts) => number]

const FEATURES: readonly Feature[] = [
  ['log time', ({ time }) => log(time)],
  ...SHARES.map((p): Feature => [`share of ${p}`, ({ parts, time }) => parts[p] / Math.max(time, 1e-12)]),
  ['blocks at one time', ({ t, c }) => log((t.blocks * t.blockThreads) / c.threads)],
  ['log block threads', ({ t }) => log(t.blockThreads)],
  ['log gather run', ({ t }) => log(t.gatherRun)],
  ['log bytes of a load', ({ t }) => ratio(t.loadBytes, t.loadRequests)],
  ['log lines of a load', ({ t }) => ratio(32 * t.lines, t.loadRequests)],
  ['log loads of a store', ({ t }) => ratio(t.loadRequests, t.storeRequests + t.atomicRequests)],
  ['log operations of a byte', ({ t }) => ratio(t.operations + t.matrixOperations, t.footprint)],
  ['log statements of a gather', ({ t }) => ratio(t.statements, t.gatherElements)],
  ['log imbalance', ({ t }) => log(t.imbalance)],
  ['log waits', ({ t }) => log(t.rounds)],
  ['log longest waits', ({ t }) => log(t.longestRounds)],
  ['log longest rounds apart', ({ t }) => log(t.longestWaits)],
  ['log waves', ({ t }) => log(t.waves)],
  ['log rounds of a wave', ({ t }) => ratio(t.waveRounds, t.waves)],
  ['log hops of a round', ({ t }) => ratio(t.waveHops, t.waveRounds)],
  ['log misses of a round', ({ t }) => ratio(t.waveMisses, t.waveRounds)],
  ['log barriers', ({ t }) => log(t.longestBarriers + 1)],
  ['log contention', ({ t }) => log(t.contention + 1)],
  ['log kept bytes', ({ t }) => ratio(t.loadBytes, t.freshBytes)],
  ['log gathers of a sweep in the cache', ({ t, c }) => log(t.gatherSweep / c.cacheBytes)],
  ['log steps of a wait', ({ t }) => ratio(t.steps, t.rounds)],
  ['log gathers in the cache', ({ t, c }) => log(t.gatherFootprint / c.cacheBytes)],
  ['log reuse of a block', ({ t }) => log(t.blockReuse)],
  ['log reuse of the chip', ({ t }) => log(t.chipReuse)],
  ['log padding', ({ t }) => log(t.padding)],
  ['log elements', ({ s }) => log(s?.nonzeros ?? 0)],
  ['log mean row', ({ s }) => log(s && s.rows > 0 ? s.nonzeros / s.rows : 0)],
  ['log longest row', ({ s }) => log(s?.rowLengths.longest ?? 0)],
  ['log rows of a column', ({ s }) => ratio(s?.rows ?? 0, s?.columns ?? 0)],
  ...STATISTICS.map((name): Feature => [name, ({ s }) => s?.[name] ?? 0]),
  ...BLOCKS.map((b): Feature => [`density of ${b}`, ({ s }) => s?.blockDensity.get(b) ?? 0]),
  ...WINDOWS.map((w): Feature => [`log reuse of ${w}`, ({ s }) => log(s?.reuse.get(w) ?? 1)]),
  ['atomics', ({ t }) => (t.atomicRequests > 0 ? 1 : 0)],
  ['launches', ({ t }) => t.launches],
]

/** Names of the features in their order: part of a trained model. */
export const FEATURE_NAMES: readonly string[] = FEATURES.map(([name]) => name)

/** Feature vector of the learned correction, in the order of `FEATURE_NAMES`. */
export function featuresOf(
  t: Terms,
  parts: Parts,
  c: Coefficients,
  s: MatrixStatistics | null,
): Float64Array {
  const facts = { t, parts, c, s, time: analyticTime(parts, c) }
  return Float64Array.from(FEATURES, ([, value]) => value(facts))
}
