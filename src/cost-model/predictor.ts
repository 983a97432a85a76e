/**
 * The cost model for automatic selection. Hosts with files install it, and `useCostModel`; a page without a model does not load
 * its code.
 */
import type { DeviceKind } from '../runtime/device.ts'
import type { CostModel, ModelledDevice } from './learned/model.ts'
import type { modelDataOf, predictTime } from './prediction.ts'

interface Predictor {
  selectionModel(kind: DeviceKind, device?: ModelledDevice): CostModel | null
  readonly modelDataOf: typeof modelDataOf
  readonly predictTime: typeof predictTime
}

let installed: Predictor | null = null

export function installPredictor(predictor: Predictor): void {
  installed = predictor
}

/** Null if no model was installed. */
export const installedPredictor = (): Predictor | null => installed
