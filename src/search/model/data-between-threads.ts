/** Sends the model's data to other threads: the rows of a matrix, in shared memory. */
import type { Kernel1 } from '../../ir/stage1.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { sizeOf } from './outer-dimension.ts'
import type { ModelData } from './prediction.ts'
import { Samples } from './rows.ts'
import type { Rows } from './statistics.ts'

export interface SentData extends Pick<ModelData, 'tensors' | 'beside' | 'params' | 'statistics'> {
  /** Of the only tensor, which is sent without its elements. */
  readonly rows: Rows | null
}

/** Elements of tensors that are sent whole. */
const MOST = 1 << 20

/** `null`: too much to send. */
export function sentData(kernel: Kernel1, data: ModelData): SentData | null {
  const { beside = {}, params, statistics, samples = new Samples() } = data
  const tensors = Object.entries(data.tensors)
  const [first] = tensors
  if (first && tensors.length === 1 && sizeOf(kernel, first[0], 0) !== undefined) {
    const rows = samples.rowsOf(first[1])
    if (rows)
      return {
        beside,
        params,
        statistics,
        tensors: { [first[0]]: withoutElements(first[1]) },
        rows: shared(rows),
      }
  }
  const elements = [...tensors, ...Object.entries(beside)].reduce((n, [, t]) => n + elementsOf(t), 0)
  return elements > MOST ? null : { beside, params, statistics, tensors: data.tensors, rows: null }
}

export function receivedData({ rows, ...data }: SentData): ModelData {
  const samples = new Samples()
  if (rows) for (const t of Object.values(data.tensors)) samples.put(t, rows)
  return { ...data, samples, structures: new Map() }
}

function shared({ indptr, indices, ...of }: Rows): Rows {
  const copy = (from: ArrayLike<number>): Int32Array => {
    const out = new Int32Array(new SharedArrayBuffer(4 * from.length))
    out.set(from)
    return out
  }
  return { ...of, indptr: copy(indptr), indices: copy(indices) }
}

const withoutElements = ({ shape, dtype }: Tensor): Tensor => ({
  kind: 'coords',
  shape,
  coords: shape.map(() => new Int32Array(0)),
  values: null,
  dtype,
})

function elementsOf(t: Tensor): number {
  if (t.kind === 'coords') return t.shape.length * (t.coords[0]?.length ?? 0)
  if (t.kind === 'dense') return t.values.length
  return Object.values(t.arrays).reduce((n, a) => n + (a.indptr?.length ?? 0) + (a.indices?.length ?? 0), 0)
}
