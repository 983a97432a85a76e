/** The cost model as a predictor of schedules on some data, and as a prior of searches. */
import { declaredOf, expectInputs, type RunInputs, sizesOf, valuesIn } from '../../api/inputs/bound-inputs.ts'
import { besideDeclared, checkBound } from '../../api/inputs/format-input-binding.ts'
import { expectKernel, type Kernel } from '../../api/kernels/kernel.ts'
import { failWith, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument, expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import {
  COUNT,
  expectFields,
  expectValue,
  expectValues,
  FUNCTION,
  oneOf,
  RECORD,
} from '../../ast/diagnostics/value-kinds.ts'
import { runSync } from '../../ast/work.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import type { CostModel } from '../../cost-model/learned/model.ts'
import { costModel, expectModel, otherChip } from '../../cost-model/learned/trained-models.ts'
import { type ModelData, modelDataOf, toTransferable } from '../../cost-model/prediction.ts'
import { sparseTensors } from '../../run/bind/binding-names.ts'
import type { Device, DeviceKind } from '../../runtime/device.ts'
import { installStoredModels } from '../calibrate/stored.ts'
import { countSteps } from '../spaces/point-walks.ts'
import type { KernelSpace, Point, StrategyFactory, StrategyOptions } from '../types.ts'
import { priorOf } from './expected.ts'
import { MIN_SHARED, Ranking } from './index.ts'
import { costOf, createPredictor, type Predict, rankingOrigin, registerPredictor } from './origin.ts'

export { costModel, otherChip } from '../../cost-model/learned/trained-models.ts'
export type { Prediction } from '../../cost-model/prediction.ts'

installStoredModels()

export interface PredictorOptions {
  /** A device, or a kind of device; `cuda`. */
  readonly device?: DeviceKind | Device | undefined
  /** Tensors and sizes, as for `bind`; of dense tensors the shapes count. */
  readonly inputs: RunInputs
  /** Default: the model calibrated on the device, otherwise the package's. */
  readonly model?: CostModel | undefined
}

/**
 * Analyses the data once; the returned function predicts schedules of the kernel.
 * ```ts
 * const predict = predictor(kernel, { device: 'cuda', inputs })
 * predict(kernel.schedule('balanced')).milliseconds
 * ```
 * @throws SptError `search/no-model` if the package has none for the device, `search/other-model`, `search/too-large`;
 * as `bindInputs`
 */
export function predictor(kernel: Kernel, options: PredictorOptions): Predict {
  expectKernel(kernel)
  expectOptions('predictor', options, ['device', 'inputs', 'model'])
  const { device = 'cuda', inputs } = options
  expectValue('device', typeof device === 'string' ? device : device?.kind, oneOf(DEVICE_KINDS))
  expectValues(options, { model: RECORD })
  const kind = typeof device === 'string' ? device : device.kind
  if (options.model) expectModel(options.model, kind)
  const model = options.model ?? costModel(kind, typeof device === 'string' ? undefined : device)
  if (!model)
    return failWith('search/no-model', `there is no trained cost model for ${kind}`, {
      expected: DEVICE_KINDS.filter((k) => costModel(k)).join(', ') || 'a device with one',
      hint: 'calibrate the device (spt calibrate), search without a prior, or give a `model`',
    })
  const { source } = kernel
  const data = modelInputs(kernel, inputs)
  const predict = createPredictor(model, kind, data)
  registerPredictor(predict, () => {
    const sent = toTransferable(source, data)
    return sent && { kind, model, data: sent }
  })
  return predict
}

/** Statistics of inputs that predictions use, computed in one pass. @throws SptError as `predictor` */
export function modelInputs(kernel: Kernel, inputs: RunInputs): ModelData {
  const { source } = kernel
  expectInputs(inputs)
  const { tensors = {} } = inputs
  const used = kernel.allFormatInputs
  checkBound(kernel.compilation.kernel, Object.keys(tensors), used)
  const values = valuesIn(source, { ...inputs, tensors: declaredOf(source, tensors, used) })
  const params = Object.fromEntries(sizesOf(source, { ...values, resident: {} }))
  return {
    ...modelDataOf(sparseTensors(source, values.tensors)),
    formatInputs: besideDeclared(source, tensors, used),
    params,
  }
}

export interface PriorOptions {
  /** Additional threads for 128 points or more; default: one for each further processor if there are at least 4, at most 15. */
  readonly threads?: number | undefined
}

/**
 * Expected milliseconds of points, for strategies (`StrategyOptions.prior`); infinity for rejected points and for those
 * without a prediction. The result of `predictor` is evaluated in several threads if the space belongs to a program or to
 * `sketches`.
 */
export function costPrior(
  space: KernelSpace<Kernel>,
  predict: Predict,
  options: PriorOptions = {},
): (points: readonly Point[]) => readonly number[] {
  expectArgument(typeof space?.kernel === 'function', 'space', space, 'a space of schedules')
  expectValue('the predictor', predict, { ...FUNCTION, expected: 'a result of predictor' })
  expectFields('costPrior', options, { threads: COUNT })
  const costHere = costOf(space, predict)
  const cost = (point: Point): number => costHere(point) ?? Number.POSITIVE_INFINITY
  const { threads } = options
  const ranking = new Ranking({ cost, origin: () => rankingOrigin(space, predict), threads })
  return priorOf(cost, {
    together: ranking.together,
    costs: (points) => ranking.costs(points),
    begin() {
      // Only counts points that need not be enumerated.
      const counted = space.remainderKey ? runSync(countSteps(space)) : null
      if (!counted?.isExact || counted.points >= MIN_SHARED) ranking.begin()
    },
  })
}

// Default prior of `tune`: the cost model of the device.

interface PriorContext {
  readonly kernel: Kernel
  readonly device: Device
  readonly inputs: RunInputs
  /** Strategies other than `model` have no prior. */
  readonly strategy?: string | StrategyFactory | undefined
  /** Called with a note if the model belongs to another chip, and with the reason if there is no prior. */
  readonly onNote?: ((note: string) => void) | undefined
}

/** Prior of the cost model, or `undefined`. @throws SptError as `predictor` if the strategy is `model` */
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
