/** The citation graph Cora with the words of its papers: 140 labelled nodes to learn from, 1,000 to be judged by. */
import { coords, readTensor } from 'sparsetile/node'

const [TRAIN, TEST] = [1, 3]

/** Â, the adjacency with loops, D^−½ (A + I) D^−½; words, of which each row adds up to 1; labels and nodes. */
export async function cora() {
  const read = async (name) => (await readTensor(`sparsetile/data/cora.npz#${name}`)).values
  const [indptr, indices, labels, split] = await Promise.all(
    ['indptr', 'indices', 'labels', 'split'].map(read),
  )
  const [featurePtr, featureIndices] = await Promise.all(['feature_indptr', 'feature_indices'].map(read))
  const [n, k] = [labels.length, (await read('feature_shape'))[1]]
  const degree = (i) => indptr[i + 1] - indptr[i] + 1
  const edges = [...rowsOf(indptr)].map((i, e) => [i, indices[e]])
  for (let i = 0; i < n; i++) edges.push([i, i])
  return {
    shape: { n, k, classes: 7 },
    A: coords(
      [n, n],
      [edges.map(([i]) => i), edges.map(([, j]) => j)],
      Float32Array.from(edges, ([i, j]) => 1 / Math.sqrt(degree(i) * degree(j))),
    ),
    X: coords(
      [n, k],
      [rowsOf(featurePtr), featureIndices],
      rowsOf(featurePtr).map((i) => 1 / (featurePtr[i + 1] - featurePtr[i])),
    ),
    labels: Int32Array.from(labels),
    train: nodes(split, TRAIN),
    test: nodes(split, TEST),
  }
}

/** The row of each element, as floats: these are few. */
function rowsOf(indptr) {
  const out = new Float32Array(indptr.at(-1))
  for (let i = 0; i + 1 < indptr.length; i++) out.fill(i, indptr[i], indptr[i + 1])
  return out
}

const nodes = (split, which) => [...split.keys()].filter((i) => split[i] === which)
