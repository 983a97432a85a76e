/** Predicted milliseconds of a scheduled kernel on some data: an analytic bound times a learned correction. */
import type { Kernel1 } from '../ir/coordinates/stage1.ts'
import { getOrAdd } from '../ir/memoize.ts'
import type { Compilation } from '../run/compile/compile.ts'
import { formatKey } from '../run/compile/compiled-program.ts'
import type { Tensor } from '../storage/tensor.ts'
import { analyticTime, type Parts, partsOf } from './analytic.ts'
import { featuresOf } from './learned/features.ts'
import { type CostModel, evaluateTrees } from './learned/model.ts'
import { sizeNameOf } from './matrix/outer-dimension.ts'
import { Samples } from './matrix/rows.ts'
import { type MatrixStatistics, type Rows, statisticsOf } from './matrix/statistics.ts'
import { type Structure, structureOf } from './matrix/structure.ts'
import { type Terms, termsOf } from './terms.ts'
import { workOf } from './work/walk.ts'

export interface Prediction {
  readonly milliseconds: number
  /** Milliseconds of each limit alone, before the correction. */
  readonly parts: Parts
  /** Factor by which the trees multiply the analytic time. */
  readonly correction: number
  readonly terms: Terms
}

export interface ModelData {
  /** Sparse tensors, by the name that the kernel declares. */
  readonly tensors: Readonly<Record<string, Tensor>>
  /** Lists and sets that formats take as inputs. */
  readonly formatInputs?: Readonly<Record<string, Tensor>> | undefined
  readonly params: Readonly<Record<string, number>>
  readonly statistics: MatrixStatistics | null
  readonly samples?: Samples | undefined
  /** Index-array structures by format, for the same tensors; sizes of dense dimensions may differ. */
  readonly structures: Map<string, Structure>
}

/** Data of sparse tensors; reads their elements once. */
export function modelDataOf(tensors: Readonly<Record<string, Tensor>>): Omit<ModelData, 'params'> {
  const [first] = Object.values(tensors)
  const samples = new Samples()
  const rows = first && samples.rowsOf(first)
  return { tensors, statistics: rows ? statisticsOf(rows) : null, samples, structures: new Map() }
}

/** Terms of a compiled kernel on some data. @throws SptError as `bindInputs` */
export function termsOfCompilation(compilation: Compilation, { structures, ...data }: ModelData): Terms {
  const { kernel, loops } = compilation
  const key = formatKey(compilation)
  // Computed from the loops before any schedule step, so the structure depends on the format alone.
  const formatStructure = getOrAdd(structures, key, () => structureOf(kernel, compilation.positions, data))
  const structure = {
    ...formatStructure,
    params: new Map([...formatStructure.params, ...Object.entries(data.params)]),
  }
  return termsOf(loops, workOf(loops, structure), structure, data.statistics)
}

/** Predicts the time of a compiled kernel. @throws SptError as `bindInputs` */
export function predictTime(model: CostModel, compilation: Compilation, data: ModelData): Prediction {
  const terms = termsOfCompilation(compilation, data)
  const parts = partsOf(terms, model.coefficients)
  const features = featuresOf(terms, parts, model.coefficients, data.statistics)
  const correction = Math.exp(evaluateTrees(model.trees, features))
  return { milliseconds: correction * analyticTime(parts, model.coefficients), parts, correction, terms }
}

// Sends the model's data to other threads: the rows of a matrix, in shared memory.

export interface TransferableData
  extends Pick<ModelData, 'tensors' | 'formatInputs' | 'params' | 'statistics'> {
  /** Rows of the only tensor, which is sent without its elements. */
  readonly rows: Rows | null
}

/** Maximum number of elements of tensors that are sent in full. */
const MAX_ELEMENTS = 1 << 20

/** Data for another thread; `null` if they are too large to send. */
export function toTransferable(kernel: Kernel1, data: ModelData): TransferableData | null {
  const { formatInputs = {}, params, statistics, samples = new Samples() } = data
  const tensors = Object.entries(data.tensors)
  const [first] = tensors
  if (first && tensors.length === 1 && sizeNameOf(kernel, first[0], 0) !== undefined) {
    const rows = samples.rowsOf(first[1])
    if (rows)
      return {
        formatInputs,
        params,
        statistics,
        tensors: { [first[0]]: withoutElements(first[1]) },
        rows: shareRows(rows),
      }
  }
  const elements = [...tensors, ...Object.entries(formatInputs)].reduce((n, [, t]) => n + elementCount(t), 0)
  return elements > MAX_ELEMENTS
    ? null
    : { formatInputs, params, statistics, tensors: data.tensors, rows: null }
}

export function fromTransferable({ rows, ...data }: TransferableData): ModelData {
  const samples = new Samples()
  if (rows) for (const t of Object.values(data.tensors)) samples.setRows(t, rows)
  return { ...data, samples, structures: new Map() }
}

function shareRows({ indptr, indices, ...sizes }: Rows): Rows {
  const shareArray = (source: ArrayLike<number>): Int32Array => {
    const array = new Int32Array(new SharedArrayBuffer(4 * source.length))
    array.set(source)
    return array
  }
  return { ...sizes, indptr: shareArray(indptr), indices: shareArray(indices) }
}

const withoutElements = ({ shape, dtype }: Tensor): Tensor => ({
  kind: 'coords',
  shape,
  coords: shape.map(() => new Int32Array(0)),
  values: null,
  dtype,
})

function elementCount(t: Tensor): number {
  if (t.kind === 'coords') return t.shape.length * (t.coords[0]?.length ?? 0)
  if (t.kind === 'dense') return t.values.length
  return Object.values(t.arrays).reduce((n, a) => n + (a.indptr?.length ?? 0) + (a.indices?.length ?? 0), 0)
}
