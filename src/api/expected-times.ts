/** What the cost model expects of schedules on what is bound. */
import { SptError } from '../ast/diagnostic.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import type { Compilation } from '../run/compile.ts'
import type { DeviceKind } from '../runtime/device.ts'
import { type ModelData, modelDataOf, predicted } from '../search/model/prediction.ts'
import { costModel } from '../search/model/trained.ts'
import type { Tensor } from '../storage/tensor.ts'

/**
 * Expected milliseconds of kernels on a kind of device; `null` of those whose formats the data do not fit, and of all where
 * there is no model or nothing with structure.
 * @param sparse - The tensors with structure, under the names of `source`
 */
export function expectedTimes(
  kind: DeviceKind,
  source: Kernel1,
  sparse: Readonly<Record<string, Tensor>>,
  sizes: ReadonlyMap<string, number>,
  kernels: readonly Compilation[],
): readonly (number | null)[] {
  const model = costModel(kind)
  if (!model || Object.keys(sparse).length === 0) return kernels.map(() => null)
  const data = dataOf(source, sparse, sizes)
  return kernels.map((kernel) => {
    try {
      const { milliseconds } = predicted(model, kernel, data)
      return Number.isFinite(milliseconds) ? milliseconds : null
    } catch (e) {
      // Binding says it better.
      if (e instanceof SptError) return null
      throw e
    }
  })
}

/** What is known of tensors with these arrays: finding it takes milliseconds, and most data are bound again. */
interface Known {
  readonly arrays: readonly object[]
  readonly sizes: string
  readonly data: ModelData
}
const known = new WeakMap<Kernel1, WeakMap<object, Known>>()

function dataOf(
  source: Kernel1,
  tensors: Readonly<Record<string, Tensor>>,
  sizes: ReadonlyMap<string, number>,
): ModelData {
  const params = Object.fromEntries(sizes)
  const arrays = Object.values(tensors).flatMap(indexArrays)
  const shapes = JSON.stringify(Object.entries(tensors).map(([name, t]) => [name, t.shape]))
  const [key] = arrays
  if (!key) return modelDataOf(tensors, params)
  const ofKernel = known.get(source) ?? new WeakMap<object, Known>()
  known.set(source, ofKernel)
  const before = ofKernel.get(key)
  const isSame =
    before?.sizes === shapes &&
    before.arrays.length === arrays.length &&
    before.arrays.every((a, k) => a === arrays[k])
  const data = isSame ? before.data : modelDataOf(tensors, params)
  if (!isSame) ofKernel.set(key, { arrays, sizes: shapes, data })
  return { ...data, params }
}

function indexArrays(t: Tensor): readonly object[] {
  if (t.kind === 'dense') return [t.values]
  if (t.kind === 'coords') return t.coords
  return Object.values(t.arrays).flatMap((level) => Object.values(level).filter((a) => a !== undefined))
}
