/**
 * A cost model of one device from a user's own records: coefficients fitted to measured trials, and boosted trees for what they leave
 * (Friedman, 2001), where both predict studies better that they have not seen.
 */
import { fail } from '../../ast/diagnostic.ts'
import type { Device } from '../../runtime/device.ts'
import { analyticTime, partsOf } from '../model/analytic.ts'
import { DEFAULT_BOOSTING, fitTrees } from '../model/boosting.ts'
import type { Calibration } from '../model/calibration.ts'
import { featuresOf } from '../model/features.ts'
import { fitCoefficients, learnableNames, type TimedTerms } from '../model/fitting.ts'
import { TERM_NAMES, type Terms } from '../model/terms.ts'
import type { CostModel } from '../model/trained-models.ts'
import { evaluateTrees, type Trees } from '../model/trees.ts'
import { deviceIdentity } from '../records/identity.ts'
import type { Records } from '../records/index.ts'
import { calibrationOf } from './stored.ts'

/** A model that was trained on records of its device. */
export interface TrainedModel extends Calibration {
  readonly trained: Training
}

export interface Training {
  readonly samples: number
  readonly studies: number
  /** Mean of |log(expected / measured)| over studies that were left out: of the model before, and of the trained one. */
  readonly before: number
  readonly after: number
}

/** A trial, in the study that it is left out with. */
export interface StudySample extends TimedTerms {
  readonly study: string
}

/** Trials without which nothing is learned. */
const LEAST_SAMPLES = 40
/** Parts of the records that are left out in turn. */
const FOLDS = 5
/** Few samples want few trees. */
const TREES = { ...DEFAULT_BOOSTING, trees: 120, depth: 4, rate: 0.08, least: 6 }

/**
 * Trains the model of a calibrated device on its recorded trials; other devices are not affected.
 * @throws SptError `calibrate/not-calibrated`, `calibrate/few-records`, `calibrate/no-gain`
 */
export function trainOnRecords(
  device: Device,
  records: Records,
  env: Readonly<Record<string, string | undefined>> = process.env,
): TrainedModel {
  const base = calibrationOf(device.kind, device, env)
  if (typeof base === 'string')
    return fail({
      code: 'calibrate/not-calibrated',
      message: `${device.name} is not calibrated, so there is no model of it to train`,
      expected: 'a calibration of this device, driver and version',
      hint: `spt calibrate --device ${device.kind}`,
    })
  return trainedModel(base, samplesOf(records, device))
}

/** Measured trials of the device with the terms of the cost model, those of several samples. */
function samplesOf(records: Records, device: Device): readonly StudySample[] {
  const { kind, name, driver } = deviceIdentity(device)
  return records
    .studies({ device: name })
    .filter((s) => s.device.kind === kind && s.device.driver === driver)
    .flatMap(({ id }) =>
      records.query({ studies: [id], status: 'measured' }).flatMap(({ outcome, terms }) => {
        if (outcome.status !== 'measured' || outcome.timing.interval === null || !hasTerms(terms)) return []
        return [{ study: id, terms, milliseconds: outcome.timing.median }]
      }),
    )
}

const hasTerms = (terms: Readonly<Record<string, number>> | undefined): terms is Terms =>
  terms !== undefined && TERM_NAMES.every((n) => Number.isFinite(terms[n]))

/** @throws SptError `calibrate/few-records`, `calibrate/no-gain` */
export function trainedModel(base: Calibration, samples: readonly StudySample[]): TrainedModel {
  const studies = [...new Set(samples.map((s) => s.study))]
  if (samples.length < LEAST_SAMPLES)
    fail({
      code: 'calibrate/few-records',
      message: `the records have ${samples.length} measured trials of this device with terms of the cost model`,
      expected: `at least ${LEAST_SAMPLES}`,
      hint: 'spt tune FILE --bind … --trials 64',
    })
  // A single study is split by its trials.
  const foldOf = (s: StudySample, k: number): number =>
    (studies.length > 1 ? studies.indexOf(s.study) : k) % FOLDS
  const parts = [...new Set(samples.map(foldOf))]
  const errors = parts.map((part) => {
    const own = samples.filter((s, k) => foldOf(s, k) === part)
    const rest = samples.filter((s, k) => foldOf(s, k) !== part)
    const fit = refitted(base, rest)
    return [base, fit, withTrees(fit, rest)].map((model) => totalError(model, own))
  })
  const [before, plain, corrected] = [0, 1, 2].map(
    (m) => errors.reduce((sum, e) => sum + e[m]!, 0) / samples.length,
  ) as [number, number, number]
  const after = Math.min(plain, corrected)
  if (!(after < before))
    fail({
      code: 'calibrate/no-gain',
      message: `trained on these records, the model is ${percent(after)} off on trials that were left out, and ${percent(before)} as it is`,
      expected: 'records of more kernels, data or sizes',
      hint: 'the model stays as it is',
    })
  const fit = refitted(base, samples)
  const model = corrected < plain ? withTrees(fit, samples) : fit
  return { ...base, ...model, trained: { samples: samples.length, studies: studies.length, before, after } }
}

const percent = (error: number): string => `${Math.round(100 * (Math.exp(error) - 1))} %`

const NO_TREES: Trees = { roots: [], feature: [], value: [], right: [] }

function refitted(base: CostModel, samples: readonly TimedTerms[]): CostModel {
  const from = base.coefficients
  const { coefficients } = fitCoefficients(samples, from, { names: learnableNames(from) })
  return { ...base, coefficients, trees: NO_TREES }
}

/** Records do not keep the statistics of data: trees look at the kernel's terms alone. */
const rowOf = ({ coefficients }: CostModel, terms: Terms): { analytic: number; features: Float64Array } => {
  const parts = partsOf(terms, coefficients)
  return {
    analytic: Math.max(analyticTime(parts, coefficients), 1e-12),
    features: featuresOf(terms, parts, coefficients, null),
  }
}

function withTrees(model: CostModel, samples: readonly TimedTerms[]): CostModel {
  const rows = samples.map((s) => rowOf(model, s.terms))
  const targets = samples.map((s, k) => Math.log(s.milliseconds / rows[k]!.analytic))
  const features = rows.map((r) => r.features)
  return {
    ...model,
    trees: fitTrees(
      features,
      targets,
      samples.map(() => 1),
      TREES,
    ),
  }
}

function totalError(model: CostModel, samples: readonly TimedTerms[]): number {
  return samples.reduce((sum, s) => {
    const { analytic, features } = rowOf(model, s.terms)
    return (
      sum + Math.abs(Math.log((analytic * Math.exp(evaluateTrees(model.trees, features))) / s.milliseconds))
    )
  }, 0)
}
