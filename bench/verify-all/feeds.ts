/** What each kernel of `kernels/` is run on: the inputs that a data set gives it. The rest is random from a seed. */
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { coords, dense } from '../../src/node.ts'
import type { CoordTensor, Tensor } from '../../src/storage/tensor.ts'
import { type DataSet, elements, type KernelMap, largest, type Matrix, type Triples } from './data.ts'

export interface Feed {
  readonly data: string
  readonly inputs: RunInputs
  /** Multiply-adds, roughly: how long the reference takes. */
  readonly work: number
}

const SEED = 7
/** Multiply-adds that feature widths are chosen for. */
const BUDGET = 2e6

/** The largest of some feature widths that keeps the work in the budget. */
const width = (n: number, most = 32): number =>
  [32, 20, 16, 8, 4, 2, 1].find((d) => d <= most && n * d <= BUDGET) ?? 1

const feed = (
  data: string,
  work: number,
  tensors: Readonly<Record<string, Tensor | Int32Array>>,
  params: Readonly<Record<string, number>> = {},
): Feed => ({ data, work, inputs: { tensors, params, seed: SEED } })

/** Values that 16 bits hold, and sums of many of them. */
const small = (t: CoordTensor): CoordTensor =>
  t.values ? { ...t, values: Float32Array.from(t.values, (v) => Math.sin(Number(v))), dtype: 'f32' } : t

const pattern = (t: CoordTensor): CoordTensor => ({ ...t, values: null })

/** Where the matrix goes: values of a buffer, or structure of an axis. */
const withMatrix =
  (name: string, sizes: (d: number) => Readonly<Record<string, number>>) =>
  (m: Matrix): Feed => {
    const n = elements(m)
    const d = width(n)
    return feed(
      m.name,
      n * d,
      { [name]: name.length > 1 || name === 'A' ? m.tensor : pattern(m.tensor) },
      sizes(d),
    )
  }
const featured = (d: number) => ({ d })

/** The pattern of b × b blocks that have elements. */
function blocked(t: CoordTensor, b: number): CoordTensor {
  const [m, n] = t.shape.map((x) => Math.ceil(x / b)) as [number, number]
  const keys = new Set<number>()
  for (let e = 0; e < t.coords[0]!.length; e++)
    keys.add(Math.floor(t.coords[0]![e]! / b) * n + Math.floor(t.coords[1]![e]! / b))
  const sorted = [...keys].sort((x, y) => x - y)
  return coords([m, n], [sorted.map((k) => Math.floor(k / n)), sorted.map((k) => k % n)])
}

/** Stored elements for each nonzero beyond which a matrix does not suit blocks of this size. */
const MOST_PADDING = 5

const blocks =
  (b: number) =>
  (m: Matrix): Feed | null => {
    const jo = blocked(m.tensor, b)
    const n = jo.coords[0]!.length * b * b
    if (n > MOST_PADDING * elements(m)) return null
    const batch = n < 100_000 ? 2 : 1
    const d = width(4 * batch * n, 16)
    return feed(m.name, batch * n * d, { jo }, { batch, b, d })
  }

/** A pattern of few blocks, of each size that tensor cores take. */
const sampledBlocks = (): Feed[] =>
  [8, 16, 32, 64, 128].map((b) => {
    const [rows, columns] = [11, 13]
    const at = Array.from({ length: rows * columns }, (_, k) => k).filter((k) => k % 5 === 0 || k > 120)
    const column = (f: (k: number) => number): Int32Array => Int32Array.from(at, f)
    const j = coords([rows, columns], [column((k) => Math.floor(k / columns)), column((k) => k % columns)])
    return feed(`blocks of ${b}`, at.length * b * b * 128, { j }, { b, d: 128 })
  })

/** Segments as long as the matrix' rows. */
function ragged(m: Matrix, d: number): { p: CoordTensor; longest: number } {
  const [rows] = m.tensor.coords
  const seen = new Int32Array(m.tensor.shape[0]!)
  const at = Int32Array.from(rows!, (r) => seen[r]!++)
  const longest = Math.max(
    1,
    seen.reduce((a, b) => Math.max(a, b), 0),
  )
  return { p: coords([seen.length, longest], [rows!, at]), longest: longest * Math.sign(d + 1) }
}

/** Two products and three passes over the scores: fewer features. */
function sparseAttention(m: Matrix): Feed {
  const n = elements(m)
  const d = width(4 * n, 8)
  return feed(m.name, n * (2 * d + 8), { j: pattern(m.tensor) }, { d, e: d, scale: 0.25 })
}

const segments = (m: Matrix): Feed => {
  const n = elements(m)
  const d = width(n)
  return feed(m.name, n * d, { p: ragged(m, d).p }, { d })
}

const relational =
  (
    name: string,
    wide: (n: number, t: Triples) => number,
    [from, to]: readonly [string, string] = ['d', 'e'],
  ) =>
  (t: Triples): Feed => {
    const n = elements(t)
    const d = wide(n, t)
    return feed(t.name, n * d * d, { [name]: t.tensor }, { [from]: d, [to]: d })
  }

function convolution(k: KernelMap): Feed {
  const offset = Int32Array.from(k.lengths.flatMap((n, o) => Array<number>(n).fill(o)))
  const within = Int32Array.from(k.lengths.flatMap((n) => Array.from({ length: n }, (_, p) => p)))
  const pairs = Math.max(...k.lengths)
  const list = (values: Int32Array): CoordTensor =>
    coords([k.lengths.length, pairs], [offset, within], values, 'i32')
  const voxels = 1 + Math.max(largest(k.imap), largest(k.omap))
  const c = 4
  return feed(
    k.name,
    k.imap.length * c * c,
    { imap: list(k.imap), omap: list(k.omap) },
    { voxels, out_voxels: voxels, channels: c, out_channels: c },
  )
}

/** The pairs as a tree: offset, output voxel, input voxel. */
function convolutionTree(k: KernelMap): Feed {
  const offset = Int32Array.from(k.lengths.flatMap((n, o) => Array<number>(n).fill(o)))
  const voxels = 1 + Math.max(largest(k.imap), largest(k.omap))
  const A = coords([k.lengths.length, voxels, voxels], [offset, k.omap, k.imap], null)
  const c = 4
  return feed(k.name, k.imap.length * c * c, { A }, { channels: c, out_channels: c })
}

const mapKernels: Readonly<Record<string, (k: KernelMap) => Feed>> = {
  convolution,
  convolution_tree: convolutionTree,
}

const matrixKernels: Readonly<Record<string, (m: Matrix) => Feed | null>> = {
  spmv: (m) => feed(m.name, elements(m), { A: m.tensor }),
  softmax: (m) => feed(m.name, 3 * elements(m), { A: m.tensor }),
  spmm: withMatrix('A', featured),
  experts_f16: (m) => feed(m.name, elements(m) * 64, { P: m.tensor }, { k: 8, n: 8 }),
  block_spmm_f16: (m) => withMatrix('A', () => ({ d: 256 }))({ ...m, tensor: small(m.tensor) }),
  spmm_max: withMatrix('A', featured),
  spmm_mean: withMatrix('A', featured),
  sddmm: withMatrix('A', featured),
  sddmm_pattern: withMatrix('j', featured),
  attention: sparseAttention,
  attention_online: sparseAttention,
  segment_sum: segments,
  segment_max: segments,
  block_spmm: (m) => blocks(blockOf(m))(m),
  block_sddmm: (m) => blocks(blockOf(m))(m),
  csr_to_bsr: (m) =>
    feed(m.name, elements(m), { A: m.tensor, jo: blocked(m.tensor, blockOf(m)) }, { b: blockOf(m) }),
  gather_scatter: withMatrix('A', featured),
  edge_scores: withMatrix('j', featured),
  spmm_transposed: withMatrix('A', featured),
  spmm_half: withMatrix('j', featured),
  spmm_i8: withMatrix('j', (d) => ({ d, scale: 0.5 })),
  pool_max: withMatrix('j', featured),
  pool_min: withMatrix('j', featured),
  pool_any: withMatrix('j', featured),
  pool_all: withMatrix('j', featured),
  frontier_push: (m) => {
    const rows = m.tensor.shape[0]!
    const active = Int32Array.from({ length: Math.ceil(rows / 3) }, (_, k) => (k * 7) % rows)
    const d = width(elements(m))
    return feed(m.name, (elements(m) * d) / 3, { A: m.tensor, active }, { d })
  },
  hypergraph: (m) => {
    const [rows, cols] = m.tensor.coords
    const degree = new Int32Array(m.tensor.shape[0]!)
    for (const r of rows!) degree[r]!++
    const pairs = cols!.reduce((sum, c) => sum + degree[c]!, 0)
    if (pairs > 2e7) return null
    const d = width(pairs, 8)
    return feed(m.name, pairs * d, { e: pattern(m.tensor), u: pattern(m.tensor) }, { d })
  },
}

/** The natural block size of the structured matrices; 4 where there is none. */
const blockOf = (m: Matrix): number => (/ldg/.test(m.name) ? 21 : /bcsstk/.test(m.name) ? 3 : 4)

const root = (n: number): number => Math.max(1, Math.floor(Math.sqrt(BUDGET / n)))
const channeled = relational('A', (n) => Math.min(32, root(n)), ['channels', 'out_channels'])
const tripleKernels: Readonly<Record<string, (t: Triples) => Feed>> = {
  rgcn: relational('A', (n) => Math.min(16, root(n))),
  rgcn_transform: relational('A', (_, t) => Math.min(16, root(t.tensor.shape[0]! * t.tensor.shape[1]!))),
  rgcn_aggregate: relational('A', (n) => Math.min(16, root(n))),
  gather_gemm_scatter: channeled,
  'gather_gemm_scatter<f16>': channeled,
  'gather_gemm_scatter<bf16>': channeled,
  mttkrp: (t) => feed(t.name, elements(t) * width(elements(t)), { A: fibres(t) }, { d: width(elements(t)) }),
  ttm: (t) => feed(t.name, elements(t) * width(elements(t)), { A: fibres(t) }, { d: width(elements(t)) }),
}

/** Node, relation, node: rows that are uneven. */
const fibres = ({ tensor: t }: Triples): CoordTensor =>
  coords([t.shape[1]!, t.shape[0]!, t.shape[2]!], [t.coords[1]!, t.coords[0]!, t.coords[2]!])

/** Batches of all lengths up to the sizes, none and all of them too; the operands, and where the result has elements. */
function raggedProducts(batches: number, m: number, n: number, l: number): Feed {
  const lengths = (most: number, by: number): number[] =>
    Array.from({ length: batches }, (_, b) => (b === 1 ? most : (b * by) % (most + 1)))
  const [rows, columns, inner] = [lengths(m, 17), lengths(n, 13), lengths(l, 23)]
  const tree = (first: readonly number[], second: readonly number[]): number[][] =>
    first.flatMap((x, b) =>
      Array.from({ length: x * second[b]! }, (_, e) => [b, Math.floor(e / second[b]!), e % second[b]!]),
    )
  const column = (of: readonly number[][], d: number): Int32Array => Int32Array.from(of, (e) => e[d]!)
  const over = (shape: readonly number[], of: readonly number[][], values: boolean): CoordTensor =>
    coords(
      shape,
      [0, 1, 2].map((d) => column(of, d)),
      values ? Float32Array.from(of, (_, e) => ((e * 7) % 9) - 4) : null,
    )
  const work = rows.reduce((sum, r, b) => sum + r * columns[b]! * inner[b]!, 0)
  return feed(
    `ragged ${batches} × ${m} × ${n} × ${l}`,
    work,
    {
      A: over([batches, m, l], tree(rows, inner), true),
      B: over([batches, l, n], tree(inner, columns), true),
      o: over([batches, m, n], tree(rows, columns), false),
    },
    {},
  )
}

/** Sizes of attention over blocks: the reference visits all pairs of tokens. */
const attended = (b: number, features: number) => ({
  blocks: 3,
  b,
  heads: 2,
  d: features,
  e: features,
  scale: 0.3,
  causal: 1,
})

/** Sequences of no, one and many tokens, after which tokens of none are left. */
const raggedAttention = (b: number, features: number): Feed => {
  const attention = attended(b, features)
  const sizes = { ...attention, key_blocks: attention.blocks }
  const ends = Int32Array.from([0, 1, b + 7, b + 7, 3 * b - 5])
  return feed(`${ends.length} sequences`, 3e6, { E: dense([ends.length], ends) }, sizes)
}

/** Kernels without sparse data, and whatever is not known here: random. */
const randomSizes: Readonly<Record<string, readonly Readonly<Record<string, number>>[]>> = {
  gemm: [
    { m: 128, n: 128, k: 128, alpha: 2 },
    { m: 131, n: 67, k: 200, alpha: -1 },
  ],
  'gemm<f16>': [
    { m: 128, n: 256, k: 192 },
    { m: 131, n: 67, k: 100 },
  ],
  dynamic_attention: [attended(32, 64)],
  'dynamic_attention<f16>': [attended(64, 64)],
}

/** All that a kernel can be run on. `params` are its sizes and scalars, for kernels that this file does not know. */
export function feedsOf(kernel: string, params: readonly string[], data: readonly DataSet[]): Feed[] {
  if (kernel === 'block_sddmm_f16') return sampledBlocks()
  if (kernel === 'ragged_attention') return [raggedAttention(32, 64)]
  if (kernel === 'ragged_attention<f16>') return [raggedAttention(64, 64)]
  if (kernel === 'ragged_bmm') return [raggedProducts(12, 40, 36, 50)]
  const random = randomSizes[kernel]
  if (random) return random.map((sizes) => feed(`random ${Object.values(sizes).join(' × ')}`, 3e6, {}, sizes))
  const out = data.flatMap((d): (Feed | null)[] => {
    if (d.kind === 'matrix') return [matrixKernels[kernel]?.(d) ?? null]
    if (d.kind === 'triples') return [tripleKernels[kernel]?.(d) ?? null]
    return [mapKernels[kernel]?.(d) ?? null]
  })
  const found = out.filter((f) => f !== null)
  const known = [matrixKernels, tripleKernels, mapKernels].some((kernels) => kernel in kernels)
  return known ? found : [feed('random', 1e5, {}, Object.fromEntries(params.map((p) => [p, 24])))]
}
