/**
 * The cost model: expected milliseconds of kernels on some data, without lowering them past Stage II and without measuring.
 * What limits a kernel, by terms of its loops (`model/terms.ts`), times a correction that was learned on generated families
 * of matrices (`bench/train-model.ts`).
 */
import { readFileSync } from 'node:fs'
import { type RunInputs, valuesIn } from '../api/bound-inputs.ts'
import { formatKey } from '../api/format-key.ts'
import type { Kernel } from '../api/kernel.ts'
import { sizesOf } from '../api/statistics.ts'
import { fail } from '../ast/diagnostic.ts'
import { packageFolder } from '../io/package.ts'
import { axesOfBinding } from '../run/bind/binding-names.ts'
import { allAxesOf, isStructured } from '../run/bind/caller-tensors.ts'
import type { DeviceKind } from '../runtime/device.ts'
import type { Tensor } from '../storage/tensor.ts'
import { analyticTime, type Coefficients, type Parts, partsOf } from './model/analytic.ts'
import { FEATURE_NAMES, featuresOf } from './model/features.ts'
import { rowsOf } from './model/rows.ts'
import { type MatrixStatistics, statisticsOf } from './model/statistics.ts'
import { type Structure, structureOf } from './model/structure.ts'
import { type Terms, termsOf } from './model/terms.ts'
import { type Trees, treesAt } from './model/trees.ts'
import { workOf } from './model/walk.ts'
import type { KernelSpace, Point } from './types.ts'

/** Of this form of the file; another is another number. */
const VERSION = 1

/** A trained model, as `data/models/KIND.json` holds it. */
export interface CostModel {
  readonly version: number
  /** What it was measured on. */
  readonly chip: string
  /** What the trees look at, in their order. */
  readonly features: readonly string[]
  readonly coefficients: Coefficients
  /** Of the logarithm of the correction. */
  readonly trees: Trees
}

export interface Prediction {
  readonly milliseconds: number
  /** Milliseconds of each limit alone, before the correction. */
  readonly parts: Parts
  /** What the trees multiply the analytic time by. */
  readonly correction: number
  readonly terms: Terms
}

const models = new Map<string, CostModel | null>()

/** The model that comes with the package for a kind of device; `null` where there is none. */
export function costModel(kind: DeviceKind): CostModel | null {
  const known = models.get(kind)
  if (known !== undefined) return known
  const read = shipped(kind)
  models.set(kind, read)
  return read
}

function shipped(kind: string): CostModel | null {
  const folder = packageFolder()
  if (!folder) return null
  let model: CostModel
  try {
    model = JSON.parse(readFileSync(new URL(`data/models/${kind}.json`, folder), 'utf8'))
  } catch {
    return null
  }
  // Trees of other features would be read as if they were of these.
  const isOurs = model.version === VERSION && model.features?.join() === FEATURE_NAMES.join()
  return isOurs ? model : null
}

export interface PredictorOptions {
  /** The kind of device; `cuda`. */
  readonly device?: DeviceKind | undefined
  /** Tensors and sizes, as for `prepare`; of dense tensors the shapes count. */
  readonly inputs: RunInputs
  /** Default: the one of the package. */
  readonly model?: CostModel | undefined
}

/**
 * Looks at the data once; what it gives predicts schedules of the kernel.
 * ```ts
 * const predict = predictor(kernel, { device: 'cuda', inputs })
 * predict(kernel.schedule('balanced')).milliseconds
 * ```
 * @throws SptError `search/no-model` where the package has none for the device; as `bindInputs`
 */
export function predictor(kernel: Kernel, options: PredictorOptions): (scheduled: Kernel) => Prediction {
  const { device = 'cuda', inputs } = options
  const model = options.model ?? costModel(device)
  if (!model)
    return fail({
      code: 'search/no-model',
      message: `there is no trained cost model for ${device}`,
      expected: 'cuda',
      hint: 'search without a prior, or train one (bench/train-model.ts) and give it as `model`',
    })
  const data = dataOf(kernel, inputs)
  const structures = new Map<string, Structure>()
  return (scheduled) => {
    const terms = termsOn(scheduled, data, structures)
    const parts = partsOf(terms, model.coefficients)
    const features = featuresOf(terms, parts, model.coefficients, data.statistics)
    const correction = Math.exp(treesAt(model.trees, features))
    return { milliseconds: correction * analyticTime(parts), parts, correction, terms }
  }
}

/** Expected milliseconds of points, as strategies take it (`StrategyOptions.prior`); those that are refused cost infinity. */
export const costPrior =
  (space: KernelSpace<Kernel>, predict: (scheduled: Kernel) => Prediction) =>
  (points: readonly Point[]): readonly number[] =>
    points.map((point) => {
      try {
        return predict(space.kernel(point)).milliseconds
      } catch {
        return Number.POSITIVE_INFINITY
      }
    })

/** What is predicted from. */
export interface ModelData {
  readonly tensors: Readonly<Record<string, Tensor>>
  readonly params: Readonly<Record<string, number>>
  readonly statistics: MatrixStatistics | null
}

/**
 * Terms of a scheduled kernel on data. `structures`: of the same tensors, by how they are stored; sizes of what is dense may
 * be others.
 * @throws SptError as `bindInputs`
 */
export function termsOn(scheduled: Kernel, data: ModelData, structures: Map<string, Structure>): Terms {
  const { compilation } = scheduled
  const { kernel, loops } = compilation
  const key = formatKey(compilation)
  const known = structures.get(key) ?? structureOf(kernel, loops, data)
  structures.set(key, known)
  const structure = { ...known, params: new Map([...known.params, ...Object.entries(data.params)]) }
  return termsOf(loops, workOf(loops, structure), structure, data.statistics)
}

/** Sparse tensors, and sizes also from the shapes of dense ones. */
function dataOf(kernel: Kernel, inputs: RunInputs): ModelData {
  const { source } = kernel
  const values = valuesIn(source, inputs)
  const axes = allAxesOf(source)
  const isSparse = (name: string): boolean => axesOfBinding(source, name).some((a) => isStructured(axes, a))
  const sparse = Object.fromEntries(Object.entries(values.tensors).filter(([name]) => isSparse(name)))
  const [first] = Object.values(sparse)
  const rows = first && rowsOf(first)
  const params = Object.fromEntries(sizesOf(source, { ...values, resident: {} }))
  return { tensors: sparse, params, statistics: rows ? statisticsOf(rows) : null }
}
