/** Default prior of `tune`: the cost model of the device. */
import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Device } from '../../runtime/device.ts'
import { costModel, costPrior, otherChip, predictor } from '../ranking/cost-model.ts'
import type { KernelSpace, StrategyFactory, StrategyOptions } from '../types.ts'

export interface PriorContext {
  readonly kernel: Kernel
  readonly device: Device
  readonly inputs: RunInputs
  /** Strategies other than `model` have no prior. */
  readonly strategy?: string | StrategyFactory | undefined
  /** Called with a note if the model belongs to another chip, and with the reason if there is no prior. */
  readonly onNote?: ((note: string) => void) | undefined
}

/**
 * Prior given by the cost model; `undefined` if the device has no model, or the data are too large for it.
 * @throws SptError as `predictor` if the strategy is `model`
 */
export function defaultPrior(
  space: KernelSpace<Kernel>,
  { kernel, device, inputs, strategy, onNote }: PriorContext,
): StrategyOptions['prior'] {
  if (strategy !== undefined && strategy !== 'model') return undefined
  const model = costModel(device.kind, device)
  if (!model && strategy === undefined) return undefined
  const chip = model && otherChip(model.chip, device.kind, device.name)
  if (chip)
    onNote?.(`the cost model is of another device, ${chip}: spt calibrate --device ${device.kind} makes one`)
  const predict = resultOrError(() => predictor(kernel, { device, inputs }))
  if (!(predict instanceof SptError)) return costPrior(space, predict)
  const { code, message } = predict.diagnostics[0]!
  if (code !== 'search/too-large' || strategy !== undefined) throw predict
  onNote?.(`it is searched without the cost model: ${message}`)
  return undefined
}
