/**
 * A synthetic power-law graph as a CSR pattern: node i has weight (i + i0)^-alpha, both ends of each of M edges are
 * drawn by it, ids are permuted, both directions are kept, duplicates dropped (after Chung and Lu, 2002).
 */
import { permutation, Random } from '../src/run/bind/sources/random-tensors.ts'
import type { StoredTensor } from '../src/storage/tensor.ts'

export interface PowerLaw {
  readonly nodes: number
  readonly edges: number
  readonly alpha: number
  readonly offset: number
  readonly seed: number
}

/** The size and skew of ogbn-arxiv: about 2.33 million nonzeros. */
export const ARXIV_LIKE: PowerLaw = {
  nodes: 169_343,
  edges: 1_166_243,
  alpha: 0.6,
  offset: 2,
  seed: 1,
}

/** Those of the Reddit graph: about 63 million nonzeros. */
export const REDDIT_LIKE: PowerLaw = {
  nodes: 232_965,
  edges: 31_500_000,
  alpha: 0.5,
  offset: 10,
  seed: 1,
}

/** `indptr` and sorted `indices` of the rows, on axes named as asked; no values. */
export function powerLaw(options: PowerLaw, column: string): StoredTensor {
  const { nodes: n, edges, alpha, offset, seed } = options
  const random = new Random(seed)
  const ids = permutation(n, random)
  const below = cumulative(options)
  const total = below[n]!
  // The integral of the weights is close to their sum and can be inverted: a guess, from which the node is near.
  const power = 1 - alpha
  const low = offset ** power
  const high = (n + offset) ** power
  const draw = (): number => {
    const u = random.next()
    let k = Math.min(n - 1, Math.max(0, Math.floor((low + u * (high - low)) ** (1 / power) - offset)))
    const x = u * total
    while (k > 0 && x < below[k]!) k--
    while (k < n - 1 && x >= below[k + 1]!) k++
    return ids[k]!
  }
  const from = new Int32Array(2 * edges)
  const to = new Int32Array(2 * edges)
  for (let e = 0; e < edges; e++) {
    const a = draw()
    const b = draw()
    from[2 * e] = a
    to[2 * e] = b
    from[2 * e + 1] = b
    to[2 * e + 1] = a
  }
  // Sorted by column, then stably by row: two counting passes.
  const byColumn = deal(to, from, n)
  const byRow = deal(byColumn.other, byColumn.key, n)
  const { indptr, values: columns } = unique(byRow.bounds, byRow.other)
  return {
    kind: 'stored',
    shape: [n, n],
    arrays: { [column]: { indptr, indices: columns } },
    values: null,
    dtype: 'f32',
  }
}

/** `below[k]` is the weight of the nodes before k. */
function cumulative({ nodes, alpha, offset }: PowerLaw): Float64Array {
  const below = new Float64Array(nodes + 1)
  for (let k = 0; k < nodes; k++) below[k + 1] = below[k]! + (k + offset) ** -alpha
  return below
}

/** Both columns in stable order of `key`, and where each key begins. */
function deal(key: Int32Array, other: Int32Array, n: number) {
  const bounds = new Int32Array(n + 1)
  for (let e = 0; e < key.length; e++) bounds[key[e]! + 1]!++
  for (let k = 0; k < n; k++) bounds[k + 1]! += bounds[k]!
  const next = bounds.slice()
  const keys = new Int32Array(key.length)
  const others = new Int32Array(key.length)
  for (let e = 0; e < key.length; e++) {
    const at = next[key[e]!]!++
    keys[at] = key[e]!
    others[at] = other[e]!
  }
  return { bounds, key: keys, other: others }
}

/** Rows without repeated columns, which stand side by side. */
function unique(bounds: Int32Array, columns: Int32Array) {
  const n = bounds.length - 1
  const indptr = new Int32Array(n + 1)
  let at = 0
  for (let r = 0; r < n; r++) {
    let last = -1
    for (let e = bounds[r]!; e < bounds[r + 1]!; e++) {
      if (columns[e] === last) continue
      last = columns[e]!
      columns[at++] = last
    }
    indptr[r + 1] = at
  }
  return { indptr, values: columns.slice(0, at) }
}
