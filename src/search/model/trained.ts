/** Trained cost models by device kind: those of the package, and those set by the user. */
import { fail } from '../../ast/diagnostic.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import type { Coefficients } from './analytic.ts'
import { FEATURE_NAMES } from './features.ts'
import type { Trees } from './trees.ts'

/** Of this form of the file; another is another number. */
const VERSION = 1

/** A trained model, as `data/models/KIND.json` holds it. */
export interface CostModel {
  readonly version: number
  /** Kind of device; other kinds have other terms. */
  readonly kind: DeviceKind
  /** Chip on which the model was measured. */
  readonly chip: string
  /** Features used by the trees, in their order. */
  readonly features: readonly string[]
  readonly coefficients: Coefficients
  /** Of the logarithm of the correction. */
  readonly trees: Trees
}

/** A device, as far as a model of it is told from others of its kind. */
export interface ModelledDevice {
  readonly name: string
  readonly driver?: string | undefined
  readonly isSoftware?: boolean | undefined
}

/**
 * The model's chip if it differs from the device's: its predictions then rank schedules but are not accurate. CPUs are not
 * distinguished, because their devices are named after their compiler.
 */
export const otherChip = (chip: string, kind: DeviceKind, device: string | undefined): string | null =>
  kind === 'cpu' || chip === device ? null : chip

let read: (kind: DeviceKind) => unknown = () => null
let readCalibrated: (kind: DeviceKind, device: ModelledDevice | undefined) => CostModel | null = () => null
/** Those of the package, and of devices that were calibrated. */
const packaged = new Map<DeviceKind, CostModel | null>()
const calibrated = new Map<string, CostModel | null>()
/** Those that are used instead. */
const others = new Map<DeviceKind, CostModel | null>()

/** Sets the source of the package's models: a browser has no files. */
export function readModelsBy(reader: (kind: DeviceKind) => unknown): void {
  read = reader
  packaged.clear()
}

/** Sets the source of models of calibrated devices. Without a device: the model of the only device of its kind. */
export function readCalibratedBy(reader: typeof readCalibrated): void {
  readCalibrated = reader
  calibrated.clear()
}

/**
 * The model for a kind of device; `null` where there is none. Of a device: the one that calibration gave, unless that of the
 * package was made on such a chip.
 */
export function costModel(kind: DeviceKind, device?: ModelledDevice): CostModel | null {
  const other = others.get(kind)
  if (other !== undefined) return other
  const shipped = packagedModel(kind)
  if (shipped && device && shipped.chip === device.name) return shipped
  const key = JSON.stringify([kind, device?.name, device?.driver])
  let own = calibrated.get(key)
  if (own === undefined) {
    own = readCalibrated(kind, device)
    calibrated.set(key, own)
  }
  return own ?? shipped
}

/**
 * The model that schedules are chosen by when a kernel is compiled. A software adapter has little in common with the chips that
 * models of its kind are made on, so only its own counts (`spt calibrate`), or the one that `useCostModel` gave.
 */
export function choosingModel(kind: DeviceKind, device?: ModelledDevice): CostModel | null {
  const model = costModel(kind, device)
  return model && device?.isSoftware && model !== others.get(kind) && model.chip !== device.name
    ? null
    : model
}

/** That of the package; `null` where there is none. */
export function packagedModel(kind: DeviceKind): CostModel | null {
  let known = packaged.get(kind)
  if (known === undefined) {
    const given = read(kind)
    known = isCostModel(given) && given.kind === kind ? given : null
    packaged.set(kind, known)
  }
  return known
}

/**
 * From now on schedules are compared by this model on devices of that kind; by none with `null`, and with `undefined` by that
 * of the package again.
 * @throws SptError `search/other-model` where it was trained for another version; `api/argument`
 */
export function useCostModel(kind: DeviceKind, model: CostModel | null | undefined): void {
  if (!DEVICE_KINDS.includes(kind))
    fail({
      code: 'api/argument',
      message: `there is no kind of device ${String(kind)}`,
      expected: DEVICE_KINDS.join(', '),
    })
  if (model) expectModel(model, kind)
  if (model === undefined) others.delete(kind)
  else others.set(kind, model)
}

/** @throws SptError `search/other-model` */
export function expectModel(model: unknown, kind: DeviceKind): asserts model is CostModel {
  if (!isCostModel(model))
    fail({
      code: 'search/other-model',
      message: 'this is not a cost model of this version of sparsetile',
      expected: `version ${VERSION}, a kind of device, and the features ${FEATURE_NAMES.join(', ')}`,
      hint: 'train it again: spt calibrate --train',
    })
  if (model.kind !== kind)
    fail({
      code: 'search/other-model',
      message: `this is a cost model of ${model.kind}, not of ${kind}`,
      expected: `a model that was made on ${kind}`,
    })
}

/** Trees of other features would be read as if they were of these. */
export function isCostModel(given: unknown): given is CostModel {
  const model = given as Partial<CostModel> | null | undefined
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
