/** Sends the model's data to other threads: the rows of a matrix, in shared memory. */
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Tensor } from '../../storage/tensor.ts'
import type { ModelData } from '../prediction.ts'
import { sizeNameOf } from './outer-dimension.ts'
import { Samples } from './rows.ts'
import type { Rows } from './statistics.ts'

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
