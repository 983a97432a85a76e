/** Cost models that were made by calibrating a device: coefficients that are its own, with the correction of its kind. */
import { fail } from '../../ast/diagnostic.ts'
import type { Ceilings } from '../../runtime/ceilings.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import type { Coefficients } from './analytic.ts'
import { type CostModel, isCostModel, packagedModel } from './trained.ts'

/** A cost model of one device, with its calibration results. */
export interface Calibration extends CostModel {
  /** Driver and its version. */
  readonly driver: string
  readonly ceilings: Pick<Ceilings, 'memory' | 'cache' | 'cacheBytes' | 'f32'>
  /** Mean of |log(expected / measured)| over what was measured. */
  readonly error: number
  readonly kernels: readonly CalibratedKernel[]
}

/** Prediction error of a kernel, on its data and under its schedules. */
export interface CalibratedKernel {
  readonly name: string
  readonly samples: number
  /** Expected over measured: geometric mean. */
  readonly ratio: number
  /** Mean of |log(expected / measured)|. */
  readonly error: number
}

/** Initial model of a fit; coefficients that cannot be fitted keep its values. @throws SptError `search/no-model` */
export function startOf(kind: DeviceKind): CostModel {
  const like = packagedModel(kind) ?? packagedModel('cuda')
  return (
    like ??
    fail({
      code: 'search/no-model',
      message: 'the package has no cost model to begin with',
      expected: 'the files of data/models',
    })
  )
}

const positive = (x: unknown): boolean => typeof x === 'number' && x > 0 && Number.isFinite(x)

/** True for a calibration that this version can use. */
export function isCalibration(given: unknown): given is Calibration {
  if (!isCostModel(given)) return false
  const { driver, ceilings, coefficients } = given as Partial<Calibration>
  const { memory, cache, cacheBytes, f32 } = ceilings ?? {}
  return (
    typeof driver === 'string' &&
    [memory, cache, cacheBytes, f32].every(positive) &&
    hasAll(coefficients!, startOf(given.kind).coefficients)
  )
}

/** The same coefficients, positive where those are. */
const hasAll = (a: Coefficients, b: Coefficients): boolean =>
  (Object.keys(b) as (keyof Coefficients)[]).every((n) => (b[n]! > 0 ? positive(a[n]) : a[n] === b[n]))
