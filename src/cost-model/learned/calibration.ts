/**
 * Cost models made by calibrating a device: its own coefficients, with the learned correction of its kind of device.
 */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { Ceilings } from '../../runtime/ceilings.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import type { Coefficients } from '../analytic.ts'
import { type CostModel, isCostModel, packagedModel } from './trained-models.ts'

/** A cost model of one device, with its calibration results. */
export interface Calibration extends CostModel {
  /** Driver and its version. */
  readonly driver: string
  readonly ceilings: Pick<Ceilings, 'memory' | 'cache' | 'cacheBytes' | 'f32'>
  /** Mean of |log(expected / measured)| over the measured samples. */
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
export function initialModel(kind: DeviceKind): CostModel {
  const model = packagedModel(kind) ?? packagedModel('cuda')
  return (
    model ??
    fail({
      code: 'search/no-model',
      message: 'the package has no cost model to begin with',
      expected: 'the files of data/models',
    })
  )
}

const isPositive = (x: unknown): boolean => typeof x === 'number' && x > 0 && Number.isFinite(x)

/** True for a calibration that this version supports. */
export function isCalibration(value: unknown): value is Calibration {
  if (!isCostModel(value)) return false
  const { driver, ceilings, coefficients } = value as Partial<Calibration>
  const { memory, cache, cacheBytes, f32 } = ceilings ?? {}
  return (
    typeof driver === 'string' &&
    [memory, cache, cacheBytes, f32].every(isPositive) &&
    hasCoefficients(coefficients!, initialModel(value.kind).coefficients)
  )
}

/** True if every coefficient that is positive in `b` is positive in `a`, and the others are equal. */
const hasCoefficients = (a: Coefficients, b: Coefficients): boolean =>
  (Object.keys(b) as (keyof Coefficients)[]).every((n) => (b[n]! > 0 ? isPositive(a[n]) : a[n] === b[n]))
