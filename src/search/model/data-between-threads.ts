/** What is predicted from, as another thread gets it: of a large matrix its samples, which are all that is looked at. */
import type { Kernel1 } from '../../ir/stage1.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { sizeOf } from './outer-dimension.ts'
import type { ModelData } from './prediction.ts'
import { type Sample, Samples } from './rows.ts'
import { SAMPLED } from './structure.ts'

export interface SentData extends Pick<ModelData, 'tensors' | 'params' | 'statistics'> {
  /** Of rows and of columns of the only tensor, which is sent without its elements. */
  readonly drawn: readonly Sample[] | null
}

/** Elements of tensors that are sent whole. */
const MOST = 1 << 20

/** `null`: too much to send. */
export function sentData(kernel: Kernel1, data: ModelData): SentData | null {
  const { params, statistics, samples = new Samples() } = data
  const tensors = Object.entries(data.tensors)
  const [first] = tensors
  if (first && tensors.length === 1 && sizeOf(kernel, first[0], 0) !== undefined) {
    const drawn = ([0, 1] as const).flatMap((along) => samples.of(first[1], along, SAMPLED) ?? [])
    if (drawn.length > 0)
      return { params, statistics, tensors: { [first[0]]: withoutElements(first[1]) }, drawn }
  }
  const elements = tensors.reduce((n, [, t]) => n + elementsOf(t), 0)
  return elements > MOST ? null : { params, statistics, tensors: data.tensors, drawn: null }
}

export function receivedData({ drawn, ...data }: SentData): ModelData {
  const samples = new Samples()
  if (drawn) for (const t of Object.values(data.tensors)) samples.put(t, SAMPLED, drawn)
  return { ...data, samples, structures: new Map() }
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
