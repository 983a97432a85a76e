/** Learning of the cost model: what a device does at most, and the correction that trees learn. */

import { analyticTime, type Coefficients, partsOf } from '../../src/cost-model/analytic.ts'
import { type BoostingOptions, DEFAULT_BOOSTING, fitTrees } from '../../src/cost-model/learned/boosting.ts'
import { FEATURE_NAMES, featuresOf } from '../../src/cost-model/learned/features.ts'
import { type CostModel, evaluateTrees, type Trees } from '../../src/cost-model/learned/model.ts'
import { together } from '../support.ts'
import { coefficientsOf } from './coefficients.ts'
import { caseOf, familyOf, isDrawn, type Sample } from './dataset.ts'
import type { Measured } from './records.ts'

const LAUNCH_US = 2.6

/** Milliseconds that were measured: of short kernels, those back to back and a launch tell more than an event does. */
export const timeOf = ({ median, back }: Measured): number =>
  (back ? Math.min(median!, back + LAUNCH_US) : median!) / 1000

interface Row {
  readonly time: number
  readonly analytic: number
  readonly features: Float64Array
}

const rowOf = (sample: Sample, coefficients: Coefficients): Row => {
  const { terms, statistics } = sample
  const parts = partsOf(terms, coefficients)
  return {
    time: timeOf(sample),
    analytic: analyticTime(parts, coefficients),
    features: featuresOf(terms, parts, coefficients, statistics),
  }
}

const learned = (rows: readonly Row[], weights: readonly number[], options: BoostingOptions): Trees =>
  fitTrees(
    rows.map((r) => r.features),
    rows.map((r) => Math.log(r.time / r.analytic)),
    weights,
    options,
  )

/** Of what is much slower than the fastest of its case, so much counts at least. */
const LEAST_WEIGHT = 0.05

/** What may be chosen counts most: each as the fastest's time of its case over its own. */
function weightsOf(samples: readonly Sample[]): readonly number[] {
  const best = new Map(
    [...together(samples, caseOf)].map(([name, own]) => [name, Math.min(...own.map(timeOf))]),
  )
  return samples.map((s) => (s.weight ?? 1) * Math.max(LEAST_WEIGHT, best.get(caseOf(s))! / timeOf(s)))
}

/** The same from the same samples in the same order. */
export function trained(samples: readonly Sample[], options: BoostingOptions = DEFAULT_BOOSTING): CostModel {
  const [first] = samples
  const kind = first?.device ?? 'cuda'
  const coefficients = coefficientsOf(
    samples.map((s) => ({ terms: s.terms, milliseconds: timeOf(s), weight: s.weight })),
    kind,
  )
  const trees = learned(
    samples.map((s) => rowOf(s, coefficients)),
    weightsOf(samples),
    options,
  )
  return {
    version: 1,
    kind,
    chip: first?.chip ?? '',
    features: FEATURE_NAMES,
    coefficients,
    trees,
  }
}

/** Milliseconds that a model expects. */
export function expectedBy({ coefficients, trees }: CostModel, sample: Sample): number {
  const { analytic, features } = rowOf(sample, coefficients)
  return analytic * Math.exp(evaluateTrees(trees, features))
}

/** What a model that has seen none of a group says of it. */
export interface LeftOut {
  /** A family; `REAL`: all matrices that are of none. */
  readonly group: string
  readonly model: CostModel
}

export const REAL = 'real matrices'

export const groupOf = (m: Measured): string => (isDrawn(m) ? familyOf(m) : REAL)

/**
 * Models for each family, of the others, and for real matrices, of all families: real ones are in none. `more`: what models
 * learn from besides.
 */
export function* leavingOut(samples: readonly Sample[], more: readonly Sample[] = []): Generator<LeftOut> {
  const drawn = [...samples, ...more].filter(isDrawn)
  for (const group of new Set(samples.map(groupOf)))
    yield { group, model: trained(drawn.filter((s) => groupOf(s) !== group)) }
}
