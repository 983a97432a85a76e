/** Predicted times of schedules on bound data, by the cost model. */

import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { CostModel } from '../../cost-model/learned/model.ts'
import type { MatrixStatistics } from '../../cost-model/matrix/statistics.ts'
import type { ModelData } from '../../cost-model/prediction.ts'
import { installedPredictor } from '../../cost-model/predictor.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import { runOn } from '../../run/compile/program.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { ArrayCache } from '../dispatch/fill-ratio.ts'

/**
 * Predicted milliseconds of kernels. `null` for kernels whose formats the data do not fit, and for all kernels without a model or sparse
 * tensors.
 * @param sparse - Sparse tensors, under the names of `source`
 * @param beside - List and set arguments of formats
 */
export function predictedTimes(
  model: CostModel | null,
  kind: DeviceKind,
  source: Kernel1,
  sparse: Readonly<Record<string, Tensor>>,
  sizes: ReadonlyMap<string, number>,
  kernels: readonly Compilation[],
  beside: Readonly<Record<string, Tensor>> = {},
): readonly (number | null)[] {
  if (!model || Object.keys(sparse).length === 0) return kernels.map(() => null)
  const found = resultOrError(() => knownOf(source, sparse, beside))
  if (found instanceof SptError) return kernels.map(() => null)
  const { data, times } = found
  const params = Object.fromEntries(sizes)
  const key = JSON.stringify([model.chip, params])
  return kernels.map((kernel) => {
    const ofKernel = getOrAdd(times, kernel, () => new Map<string, Expected>())
    const before = ofKernel.get(key)
    if (before?.model === model) return before.milliseconds
    const milliseconds = expected(model, kind, kernel, { ...data, params })
    ofKernel.set(key, { model, milliseconds })
    return milliseconds
  })
}

/** Statistics of the sparse tensors, and a cache of results per kernel on these data. */
export function statisticsFor(
  source: Kernel1,
  sparse: Readonly<Record<string, Tensor>>,
): { readonly statistics: MatrixStatistics | null; readonly remembered: WeakMap<object, unknown> } {
  const { data, remembered } = knownOf(source, sparse)
  return { statistics: data.statistics, remembered }
}

/**
 * Predicts the time of the kernel that actually runs: loop nests without thread axes are bound to threads on GPUs. `null` without a finite
 * prediction.
 */
function expected(model: CostModel, kind: DeviceKind, kernel: Compilation, data: ModelData): number | null {
  try {
    const { milliseconds } = predictor().predictTime(model, runOn(kernel, kind), data)
    return Number.isFinite(milliseconds) ? milliseconds : null
  } catch (e) {
    // Binding reports the error with more detail.
    if (e instanceof SptError) return null
    throw e
  }
}

/** A cost model is data, and whoever gave the model installed the code. */
const predictor = () => installedPredictor()!

interface Expected {
  readonly model: CostModel
  readonly milliseconds: number | null
}

interface Known {
  readonly data: Omit<ModelData, 'params'>
  /** Predicted times by kernel, and by chip and sizes. */
  readonly times: WeakMap<Compilation, Map<string, Expected>>
  readonly remembered: WeakMap<object, unknown>
}
const known = new ArrayCache<Known>()

const knownOf = (
  source: Kernel1,
  tensors: Readonly<Record<string, Tensor>>,
  beside: Readonly<Record<string, Tensor>> = {},
): Known =>
  known.of(source, [...Object.entries(tensors), ...Object.entries(beside)], () => ({
    data: { ...predictor().modelDataOf(tensors), formatInputs: beside },
    times: new WeakMap(),
    remembered: new WeakMap(),
  }))
