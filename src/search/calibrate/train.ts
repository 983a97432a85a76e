/** Trains a device's cost model on records: fitted coefficients, and boosted trees on residuals if these predict better. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { analyticTime, partsOf } from '../../cost-model/analytic.ts'
import { DEFAULT_BOOSTING, fitTrees } from '../../cost-model/learned/boosting.ts'
import { featuresOf } from '../../cost-model/learned/features.ts'
import { fitCoefficients, learnableNames, type TimedTerms } from '../../cost-model/learned/fitting.ts'
import type { CostModel, Trees } from '../../cost-model/learned/model.ts'
import { evaluateTrees } from '../../cost-model/learned/model.ts'
import type { Calibration } from '../../cost-model/learned/trained-models.ts'
import { TERM_NAMES, type Terms } from '../../cost-model/terms.ts'
import type { Device } from '../../runtime/device.ts'
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
  /** Mean of |log(expected / measured)| over left-out studies, of the previous model and the trained one. */
  readonly before: number
  readonly after: number
}

/** A trial with its study, the unit of cross-validation. */
export interface StudySample extends TimedTerms {
  readonly study: string
}

const MIN_SAMPLES = 40
const FOLDS = 5
/** A small forest, because there are few samples. */
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
    return failWith(
      'calibrate/not-calibrated',
      `${device.name} is not calibrated, so there is no model of it to train`,
      {
        expected: 'a calibration of this device, driver and version',
        hint: `spt calibrate --device ${device.kind}`,
      },
    )
  return trainedModel(base, samplesOf(records, device))
}

/** Measured trials of the device with cost-model terms and at least two samples. */
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
  if (samples.length < MIN_SAMPLES)
    failWith(
      'calibrate/few-records',
      `the records have ${samples.length} measured trials of this device with terms of the cost model`,
      { expected: `at least ${MIN_SAMPLES}`, hint: 'spt tune FILE --bind … --trials 64' },
    )
  // A single study is split by its trials.
  const foldOf = (s: StudySample, k: number): number =>
    (studies.length > 1 ? studies.indexOf(s.study) : k) % FOLDS
  const parts = [...new Set(samples.map(foldOf))]
  const errors = parts.map((part) => {
    const leftOut = samples.filter((s, k) => foldOf(s, k) === part)
    const training = samples.filter((s, k) => foldOf(s, k) !== part)
    const fit = refit(base, training)
    return [base, fit, withTrees(fit, training)].map((model) => totalError(model, leftOut))
  })
  const [before, plain, corrected] = [0, 1, 2].map(
    (m) => errors.reduce((sum, e) => sum + e[m]!, 0) / samples.length,
  ) as [number, number, number]
  const after = Math.min(plain, corrected)
  if (!(after < before))
    failWith(
      'calibrate/no-gain',
      `trained on these records, the model is ${percent(after)} off on trials that were left out, and ${percent(before)} as it is`,
      { expected: 'records of more kernels, data or sizes', hint: 'the model stays unchanged' },
    )
  const fit = refit(base, samples)
  const model = corrected < plain ? withTrees(fit, samples) : fit
  return { ...base, ...model, trained: { samples: samples.length, studies: studies.length, before, after } }
}

const percent = (error: number): string => `${Math.round(100 * (Math.exp(error) - 1))} %`

const NO_TREES: Trees = { roots: [], feature: [], value: [], right: [] }

function refit(base: CostModel, samples: readonly TimedTerms[]): CostModel {
  const from = base.coefficients
  const { coefficients } = fitCoefficients(samples, from, { names: learnableNames(from) })
  return { ...base, coefficients, trees: NO_TREES }
}

/** Trees use the kernel's terms alone, because records do not contain statistics of the data. */
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
