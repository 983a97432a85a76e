/** Kernels that the auto-scheduler is judged on, and what they are run on. */
import { coords, type Tensor } from '../../src/node.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import type { Pattern } from '../families/edges.ts'
import { FAMILIES, generateMatrix } from '../families.ts'
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
}

export const JUDGED: readonly Judged[] = [
  { file: 'spmm', kernel: 'spmm', sparse: 'A', order: 2, params: { d: 128 } },
  { file: 'sddmm', kernel: 'sddmm', sparse: 'A', order: 2, params: { d: 128 } },
  { file: 'spmv', kernel: 'spmv', sparse: 'A', order: 2, params: {} },
  { file: 'softmax', kernel: 'softmax', sparse: 'A', order: 2, params: {} },
  {
    file: 'attention',
    kernel: 'attention',
    sparse: 'j',
    order: 2,
    params: { d: 64, e: 64, scale: 0.125 },
  },
  {
    file: 'gemm',
    kernel: 'gemm',
    sparse: '',
    order: 0,
    params: { m: 384, n: 384, k: 384, alpha: 1 },
  },
  { file: 'rgcn', kernel: 'rgcn', sparse: 'A', order: 3, params: { d: 32, e: 32 } },
  {
    file: 'rgcn',
    kernel: 'rgcn_transform',
    sparse: 'A',
    order: 3,
    params: { d: 32, e: 32 },
  },
  {
    file: 'tensor-products',
    kernel: 'mttkrp',
    sparse: 'A',
    order: 3,
    params: { d: 32 },
  },
]

/** Sizes of dense matrices on a GPU. */
export const LARGE = { m: 2048, n: 2048, k: 2048 }

/** Relations of a tree of generated ones. */
const RELATIONS = 3

/** What stands in where there are no data: one power law, and a tree of such relations. */
export const synthetic = (rows: number): readonly DataSet[] =>
  drawn('power-law', (k) => FAMILIES['power-law']!.generate(rows, new Random(k + 1)))

/** A member of a family (`road:20000:1`), and a tree of relations that are its neighbours by seed. */
export function memberSets(name: string): readonly DataSet[] {
  const [family, rows = '20000', seed = '1'] = name.split(':')
  return drawn(name, (k) => generateMatrix(`${family}:${rows}:${Number(seed) + k}`))
}

function drawn(name: string, make: (k: number) => Pattern | undefined): readonly DataSet[] {
  const made = Array.from({ length: RELATIONS }, (_, k) => make(k)).filter((p) => p !== undefined)
  const [first] = made
  if (!first) return []
  const [m, n] = first.shape
  const all = made.map(({ rows, columns }) => ({ rows: [...rows], columns: [...columns] }))
  const tree = [all.flatMap((e, k) => e.rows.map(() => k)), all.flatMap((e) => e.rows)]
  return [
    { kind: 'matrix', name, tensor: coords([m, n], [all[0]!.rows, all[0]!.columns]) },
    { kind: 'triples', name, tensor: coords([RELATIONS, m, n], [...tree, all.flatMap((e) => e.columns)]) },
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

/** Elements of an excerpt, and different coordinates of its axes before the last two: what the reference computes in a second. */
const EXCERPT = 1000
const HEADS = 6

/** A few elements of the data, their coordinates by rank. */
export function excerptOf(data: DataSet): DataSet {
  if (data.kind === 'map') return data
  const { shape, coords: columns } = data.tensor
  const heads = columns.slice(0, -2).map((c) => new Set([...new Set(c)].slice(0, HEADS)))
  const own = [...columns[0]!.keys()].filter((e) => heads.every((h, k) => h.has(columns[k]![e]!)))
  const kept = own.filter((_, k) => k % Math.ceil(own.length / EXCERPT) === 0)
  const ranked = columns.map((c) => {
    const used = [...new Set(kept.map((e) => c[e]!))].sort((a, b) => a - b)
    const ranks = new Map(used.map((v, k) => [v, k]))
    return { extent: used.length, column: kept.map((e) => ranks.get(c[e]!)!) }
  })
  const extents = ranked.map((r, k) => Math.min(shape[k]!, r.extent))
  return {
    ...data,
    tensor: coords(
      extents,
      ranked.map((r) => r.column),
    ),
  }
}
