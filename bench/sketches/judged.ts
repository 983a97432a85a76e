/** Kernels that the auto-scheduler is judged on, and what they are run on. */
import { coords, type Tensor } from '../../src/node.ts'
import { Random } from '../../src/run/bind/random-tensors.ts'
import { FAMILIES } from '../families.ts'
import type { DataSet } from '../verify-all/data.ts'

export interface Judged {
  /** Of the folder `kernels/`. */
  readonly file: string
  readonly kernel: string
  /** The tensor or axis that the data are bound to. */
  readonly sparse: string
  /** Dimensions of the data; 0: none. */
  readonly order: 0 | 2 | 3
  readonly params: Readonly<Record<string, number>>
  /** Beside the declared one, on devices with threads. */
  readonly formats: Readonly<Record<string, readonly string[]>>
}

const MATRIX = [
  '',
  'coo',
  'rows_by_length(64)',
  'rows_by_length(128)',
  'rows_by_length(256)',
  'hyb(1, 5)',
  'column_ranges_by_length(2)',
]
const TREE = ['', 'relation_buckets(4)']

export const JUDGED: readonly Judged[] = [
  { file: 'spmm', kernel: 'spmm', sparse: 'A', order: 2, params: { d: 128 }, formats: { A: MATRIX } },
  { file: 'sddmm', kernel: 'sddmm', sparse: 'A', order: 2, params: { d: 128 }, formats: { A: MATRIX } },
  { file: 'spmv', kernel: 'spmv', sparse: 'A', order: 2, params: {}, formats: { A: MATRIX } },
  { file: 'softmax', kernel: 'softmax', sparse: 'A', order: 2, params: {}, formats: { A: MATRIX } },
  {
    file: 'attention',
    kernel: 'attention',
    sparse: 'j',
    order: 2,
    params: { d: 64, e: 64, scale: 0.125 },
    formats: { S: ['', 'hyb(1, 5)'] },
  },
  {
    file: 'gemm',
    kernel: 'gemm',
    sparse: '',
    order: 0,
    params: { m: 384, n: 384, k: 384, alpha: 1 },
    formats: {},
  },
  { file: 'rgcn', kernel: 'rgcn', sparse: 'A', order: 3, params: { d: 32, e: 32 }, formats: { A: TREE } },
  {
    file: 'rgcn',
    kernel: 'rgcn_transform',
    sparse: 'A',
    order: 3,
    params: { d: 32, e: 32 },
    formats: { A: TREE },
  },
  {
    file: 'tensor-products',
    kernel: 'mttkrp',
    sparse: 'A',
    order: 3,
    params: { d: 32 },
    formats: { A: ['', 'csf'] },
  },
]

/** Sizes of dense matrices on a GPU. */
export const LARGE = { m: 2048, n: 2048, k: 2048 }

/** What stands in where there are no data: one power law, and a tree of three such relations. */
export function synthetic(rows: number): readonly DataSet[] {
  const made = [1, 2, 3].map((seed) => FAMILIES['power-law']!.make(rows, new Random(seed)))
  const [m, n] = made[0]!.shape
  const one = (k: number) => ({ rows: [...made[k]!.rows], columns: [...made[k]!.columns] })
  const all = [0, 1, 2].map(one)
  const at = (of: (e: { rows: number[]; columns: number[] }, k: number) => number[]): number[] =>
    all.flatMap(of)
  const matrix = coords([m, n], [one(0).rows, one(0).columns])
  const tree = coords([3, m, n], [at((e, k) => e.rows.map(() => k)), at((e) => e.rows), at((e) => e.columns)])
  return [
    { kind: 'matrix', name: 'power-law', tensor: matrix },
    { kind: 'triples', name: 'power-law', tensor: tree },
  ]
}

/** What a data set gives a kernel; values are random where there are none. */
export function tensorsFor(of: Judged, data: DataSet): Readonly<Record<string, Tensor>> | undefined {
  if (of.order === 0) return {}
  if (data.kind !== (of.order === 2 ? 'matrix' : 'triples')) return undefined
  const { shape, coords: columns } = data.tensor
  const values =
    of.sparse === 'j' ? null : Float32Array.from(columns[0]!, (_, e) => ((e * 7919) % 17) / 8 - 1)
  return { [of.sparse]: { kind: 'coords', shape, coords: columns, values, dtype: 'f32' } }
}
