/** Trained cost models by device kind: those of the package, and those set by the user. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import type { Coefficients } from '../analytic.ts'
import { FEATURE_NAMES } from './features.ts'
import type { Trees } from './trees.ts'

/** Version of the file format. */
const VERSION = 1

/** A trained model, as stored in `data/models/KIND.json`. */
export interface CostModel {
  readonly version: number
  /** Kind of device; other kinds have other terms. */
  readonly kind: DeviceKind
  /** Chip on which the model was measured. */
  readonly chip: string
  /** Features used by the trees, in their order. */
  readonly features: readonly string[]
  readonly coefficients: Coefficients
  /** Trees that predict the logarithm of the correction. */
  readonly trees: Trees
}

/** Properties by which a device is assigned its model. */
export interface ModelledDevice {
  readonly name: string
  readonly driver?: string | undefined
  readonly isSoftware?: boolean | undefined
}

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
/** Models of the package, and of calibrated devices. */
const packagedModels = new Map<DeviceKind, CostModel | null>()
const calibratedModels = new Map<string, CostModel | null>()
/** Models set by `useCostModel`; `null` disables predictions. */
const overrides = new Map<DeviceKind, CostModel | null>()

/** Sets the source of the package's models: a browser has no files. */
export function setModelReader(reader: (kind: DeviceKind) => unknown): void {
  readPackaged = reader
  packagedModels.clear()
}

/** Sets the source of models of calibrated devices. Without a device: the model of the only device of its kind. */
export function setCalibrationReader(reader: typeof readCalibrated): void {
  readCalibrated = reader
  calibratedModels.clear()
}

/**
 * The cost model for a kind of device; `null` if there is none. For a given device, its calibration has priority,
 * unless the package's model was trained on the same chip.
 */
export function costModel(kind: DeviceKind, device?: ModelledDevice): CostModel | null {
  const override = overrides.get(kind)
  if (override !== undefined) return override
  const packaged = packagedModel(kind)
  if (packaged && device && packaged.chip === device.name) return packaged
  const key = JSON.stringify([kind, device?.name, device?.driver])
  let calibrated = calibratedModels.get(key)
  if (calibrated === undefined) {
    calibrated = readCalibrated(kind, device)
    calibratedModels.set(key, calibrated)
  }
  return calibrated ?? packaged
}

/**
 * The model by which `auto` selects schedules when a kernel is compiled. Software adapters have little in common with
 * the chips of packaged models, so only their calibration (`spt calibrate`) or a model set by `useCostModel` is used.
 */
export function selectionModel(kind: DeviceKind, device?: ModelledDevice): CostModel | null {
  const model = costModel(kind, device)
  return model && device?.isSoftware && model !== overrides.get(kind) && model.chip !== device.name
    ? null
    : model
}

/** The package's model; `null` if there is none. */
export function packagedModel(kind: DeviceKind): CostModel | null {
  let model = packagedModels.get(kind)
  if (model === undefined) {
    const stored = readPackaged(kind)
    model = isCostModel(stored) && stored.kind === kind ? stored : null
    packagedModels.set(kind, model)
  }
  return model
}

/**
 * Sets the cost model for a kind of device; `null` disables predictions, and `undefined` restores the package's model.
 * @throws SptError `search/other-model` if it was trained for another version; `api/argument`
 */
export function useCostModel(kind: DeviceKind, model: CostModel | null | undefined): void {
  if (!DEVICE_KINDS.includes(kind))
    fail({
      code: 'api/argument',
      message: `there is no kind of device ${String(kind)}`,
      expected: DEVICE_KINDS.join(', '),
    })
  if (model) expectModel(model, kind)
  if (model === undefined) overrides.delete(kind)
  else overrides.set(kind, model)
}

/** @throws SptError `search/other-model` */
export function expectModel(model: unknown, kind: DeviceKind): asserts model is CostModel {
  if (!isCostModel(model))
    fail({
      code: 'search/other-model',
      message: 'this is not a cost model of this version of sparsetile',
      expected: `version ${VERSION}, a kind of device, and the features ${FEATURE_NAMES.join(', ')}`,
      hint: 'train the model again: spt calibrate --train',
    })
  if (model.kind !== kind)
    fail({
      code: 'search/other-model',
      message: `this is a cost model of ${model.kind}, not of ${kind}`,
      expected: `a model that was made on ${kind}`,
    })
}

/** True for a model of this version, with exactly these features. */
export function isCostModel(value: unknown): value is CostModel {
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
