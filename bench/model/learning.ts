/** Learning and judging of the cost model: the correction that trees learn, and how well what it likes best does. */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { analyticTime, type Coefficients, type Parts, partsOf } from '../../src/search/model/analytic.ts'
import { featuresOf } from '../../src/search/model/features.ts'
import type { Trees } from '../../src/search/model/trees.ts'
import { rankCorrelation } from '../../src/search/rank-correlation.ts'
import { type Boosting, boosted, USUAL } from './boosting.ts'
import { caseOf, type Sample } from './dataset.ts'
import { type Measured, recordsIn } from './records.ts'

/**
 * Of an H100, in milliseconds and amounts a millisecond, as far as they matter: trees put right what is wrong with them by the
 * same factor everywhere.
 */
export const H100: Coefficients = {
  launch: 0.0022,
  clear: 0.0018,
  memory: 2.6e9,
  cache: 5.5e9,
  cacheBytes: 50e6,
  requests: 4e9,
  operations: 45e9,
  matrix: 400e9,
  atomics: 2.5e9,
  latency: 0.0009,
  step: 8e-6,
  threads: 132 * 1536,
  exchanges: 4e9,
  searches: 1e9,
  shared: 2e10,
}

/** What `collect` wrote, as it was kept. */
export const kept = (path: string): Measured[] => recordsIn(gunzipSync(readFileSync(path)).toString())

export interface Row {
  readonly sample: Sample
  /** Milliseconds that were measured: of short kernels, those back to back and a launch tell more than an event does. */
  readonly time: number
  readonly parts: Parts
  readonly analytic: number
  readonly features: Float64Array
}

const LAUNCH_US = 2.6

export const rowOf = (sample: Sample, coefficients: Coefficients): Row => {
  const { median, back, terms, statistics } = sample
  const parts = partsOf(terms, coefficients)
  return {
    sample,
    time: (back ? Math.min(median, back + LAUNCH_US) : median) / 1000,
    parts,
    analytic: analyticTime(parts, coefficients),
    features: featuresOf(terms, parts, coefficients, statistics),
  }
}

export const learned = (rows: readonly Row[], options: Boosting = USUAL): Trees =>
  boosted(
    rows.map((r) => r.features),
    rows.map((r) => Math.log(r.time / r.analytic)),
    rows.map(() => 1),
    options,
  )

export interface Verdict {
  readonly cases: number
  /** Best time over the time of what is predicted to be the fastest: geometric mean and least. */
  readonly mean: number
  readonly worst: number
  readonly worstOf: string
  /** The same of the fastest of the four that are predicted to be. */
  readonly four: number
  /** Spearman's rank correlation of predictions with times, mean over cases. */
  readonly spearman: number
}

/** Cases with fewer kernels say little. */
const LEAST = 8

export function judged(rows: readonly Row[], predicted: ReadonlyMap<Row, number>): Verdict {
  const cases = new Map<string, Row[]>()
  for (const r of rows) {
    const own = cases.get(caseOf(r.sample))
    if (own) own.push(r)
    else cases.set(caseOf(r.sample), [r])
  }
  let [log, logFour, rank, count, worst, worstOf] = [0, 0, 0, 0, 1, '']
  for (const [name, own] of cases) {
    if (own.length < LEAST) continue
    const order = own.toSorted((a, b) => predicted.get(a)! - predicted.get(b)!)
    const best = Math.min(...own.map((r) => r.time))
    const share = best / order[0]!.time
    count++
    log += Math.log(share)
    logFour += Math.log(best / Math.min(...order.slice(0, 4).map((r) => r.time)))
    rank += rankCorrelation(
      own.map((r) => predicted.get(r)!),
      own.map((r) => r.time),
    )
    if (share < worst) [worst, worstOf] = [share, `${name} ${order[0]!.sample.candidate}`]
  }
  return {
    cases: count,
    mean: Math.exp(log / count),
    worst,
    worstOf,
    four: Math.exp(logFour / count),
    spearman: rank / count,
  }
}
