/** Trained cost models by device kind: those of the package, those of a calibration, and those set by the user. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import type { Ceilings } from '../../run/explain/roofline.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import type { Coefficients } from '../analytic.ts'
import { modelDataOf, predictTime } from '../prediction.ts'
import { installPredictor } from '../predictor.ts'
import { FEATURE_NAMES } from './features.ts'
import type { CostModel, ModelledDevice } from './model.ts'

const VERSION = 1

/**
 * The model's chip if it differs from the device's: its predictions then rank schedules but are not accurate. CPU devices are
 * named after their compiler, so they are compared only if the caller passes the names of the host's `processor`.
 */
export const otherChip = (
  chip: string,
  kind: DeviceKind,
  device: string | undefined,
  processor?: readonly string[],
): string | null => (chip === device || (kind === 'cpu' && (processor?.includes(chip) ?? true)) ? null : chip)

let readPackaged: (kind: DeviceKind) => unknown = () => null
let readCalibrated: (kind: DeviceKind, device: ModelledDevice | undefined) => CostModel | null = () => null
const packagedModels = new Map<DeviceKind, CostModel | null>()
const calibratedModels = new Map<string, CostModel | null>()
/** Models set by `useCostModel`; `null` disables predictions. */
const overrides = new Map<DeviceKind, CostModel | null>()

/** Sets the source of the package's models: a browser has no files. */
export function setModelReader(reader: (kind: DeviceKind) => unknown): void {
  installPredictor({ selectionModel, modelDataOf, predictTime })
  readPackaged = reader
  packagedModels.clear()
}

/** Sets the source of models of calibrated devices. Without a device: the model of the only device of its kind. */
export function setCalibrationReader(reader: typeof readCalibrated): void {
  readCalibrated = reader
  calibratedModels.clear()
}

/** The cost model of a kind of device, or `null`; a device's calibration has priority over a model of another chip. */
export function costModel(kind: DeviceKind, device?: ModelledDevice): CostModel | null {
  const override = overrides.get(kind)
  if (override !== undefined) return override
  const packaged = packagedModel(kind)
  if (packaged && device && packaged.chip === device.name) return packaged
  const key = JSON.stringify([kind, device?.name, device?.driver])
  if (!calibratedModels.has(key)) calibratedModels.set(key, readCalibrated(kind, device))
  return calibratedModels.get(key) ?? packaged
}

/**
 * The model by which `auto` selects schedules when a kernel is compiled. Software adapters have little in common with
 * the chips of packaged models, so only their calibration (`spt calibrate`) or a model set by `useCostModel` is used.
 */
function selectionModel(kind: DeviceKind, device?: ModelledDevice): CostModel | null {
  const model = costModel(kind, device)
  return model && device?.isSoftware && model !== overrides.get(kind) && model.chip !== device.name
    ? null
    : model
}

export function packagedModel(kind: DeviceKind): CostModel | null {
  if (!packagedModels.has(kind)) {
    const stored = readPackaged(kind)
    packagedModels.set(kind, isCostModel(stored) && stored.kind === kind ? stored : null)
  }
  return packagedModels.get(kind)!
}

/**
 * Sets the cost model for a kind of device; `null` disables predictions, and `undefined` restores the package's model.
 * @throws SptError `search/other-model` if it was trained for another version; `api/argument`
 */
export function useCostModel(kind: DeviceKind, model: CostModel | null | undefined): void {
  if (!DEVICE_KINDS.includes(kind))
    failWith('api/argument', `there is no kind of device ${String(kind)}`, {
      expected: DEVICE_KINDS.join(', '),
    })
  if (model) expectModel(model, kind)
  installPredictor({ selectionModel, modelDataOf, predictTime })
  if (model === undefined) overrides.delete(kind)
  else overrides.set(kind, model)
}

/** @throws SptError `search/other-model` */
export function expectModel(model: unknown, kind: DeviceKind): asserts model is CostModel {
  if (!isCostModel(model))
    failWith('search/other-model', 'this is not a cost model of this version of sparsetile', {
      expected: `version ${VERSION}, a kind of device, and the features ${FEATURE_NAMES.join(', ')}`,
      hint: 'train the model again: spt calibrate --train',
    })
  if (model.kind !== kind)
    failWith('search/other-model', `this is a cost model of ${model.kind}, not of ${kind}`, {
      expected: `a model that was made on ${kind}`,
    })
}

/** True for a model of this version, with exactly these features. */
function isCostModel(value: unknown): value is CostModel {
  const model = value as Partial<CostModel> | null | undefined
  return (
    model?.version === VERSION &&
    DEVICE_KINDS.includes(model.kind as DeviceKind) &&
    Array.isArray(model.features) &&
    model.features.join() === FEATURE_NAMES.join() &&
    Array.isArray(model.trees?.roots) &&
    typeof model.coefficients === 'object' &&
    model.coefficients !== null
  )
}

// Cost models of calibrated devices: own coefficients, with the learned correction of their kind.

/** A cost model of one device, with its calibration results. */
export interface Calibration extends CostModel {
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
    failWith('search/no-model', 'the package has no cost model to begin with', {
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
