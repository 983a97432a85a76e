/** Stored results of `spt calibrate`; files that are damaged or of another version are ignored. */

import type { ModelledDevice } from '../../cost-model/learned/model.ts'
import {
  type Calibration,
  isCalibration,
  setCalibrationReader,
  setModelReader,
} from '../../cost-model/learned/trained-models.ts'
import { chipOf, storedCalibration, storedCalibrations } from '../../io/package/calibrations.ts'
import { packagedCostModel } from '../../io/package/package.ts'
import { type Ceilings, readCeilingsBy } from '../../run/explain/roofline.ts'
import type { DeviceKind } from '../../runtime/device.ts'

type Env = Readonly<Record<string, string | undefined>>

/** `unusable`: the file is damaged or of another version. */
type Stored = Calibration | 'none' | 'unusable'

/** Calibration of a device; without a known driver, the latest for any driver. */
export function calibrationOf(
  kind: DeviceKind,
  device: ModelledDevice | undefined,
  env: Env = process.env,
): Stored {
  // A host has one kind of CPU, but may have several other devices.
  if (!device && kind !== 'cpu') return 'none'
  const chip = chipOf({ kind, name: device?.name, driver: device?.driver })
  const isOwn = (given: unknown): given is Calibration =>
    isCalibration(given) && given.kind === kind && given.chip === chip.name
  if (chip.driver === '') {
    const all = storedCalibrations(kind, env)
    return all.find(isOwn) ?? (all.some((c) => !isCalibration(c)) ? 'unusable' : 'none')
  }
  const given = storedCalibration(chip, env)
  return given === null ? 'none' : isOwn(given) ? given : 'unusable'
}

function calibratedModel(kind: DeviceKind, device: ModelledDevice | undefined): Calibration | null {
  const found = calibrationOf(kind, device)
  return typeof found === 'string' ? null : found
}

/** Ceilings from the latest calibration with any driver. */
function calibratedCeilings(kind: DeviceKind, name: string): Ceilings | undefined {
  const found = calibrationOf(kind, { name })
  if (typeof found === 'string') return undefined
  return { ...found.ceilings, tf32: Number.POSITIVE_INFINITY, f16: Number.POSITIVE_INFINITY }
}

/** Installs the file sources of models and ceilings: the package, and the user's cache. */
export function installStoredModels(): void {
  setModelReader(packagedCostModel)
  setCalibrationReader(calibratedModel)
  readCeilingsBy(calibratedCeilings)
}
