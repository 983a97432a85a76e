/** GraphSAGE on Cora: `node examples/training/graphsage.mjs --epochs 100`. One run of a kernel is one step of training. */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { devices, load } from 'sparsetile/node'
import { cora } from '../pruning/cora.mjs'
import { normals } from './random.mjs'

const SOURCE = fileURLToPath(new URL('graphsage.spt', import.meta.url))

/** The graph as the kernel takes it: rows of A add up to 1. `share` is 1 / count for the nodes to learn from. */
export async function graph() {
  const { A, X, labels, train, test, shape } = await cora()
  const [rows, cols] = A.coords
  const edges = [...rows.keys()].filter((e) => rows[e] !== cols[e])
  const degree = new Float32Array(shape.n)
  for (const e of edges) degree[rows[e]]++
  const share = new Float32Array(shape.n)
  for (const v of train) share[v] = 1 / train.length
  const mean = {
    ...A,
    coords: A.coords.map((c) => Int32Array.from(edges, (e) => c[e])),
    values: Float32Array.from(edges, (e) => 1 / degree[rows[e]]),
  }
  return { A: mean, X, labels, share, test, nodes: shape.n, features: shape.k, classes: shape.classes }
}

/** Trains from a seed. @returns the loss of each epoch, and the share of test nodes that are classified correctly */
export async function train({ epochs, seed = 1, hidden = 32, rate = 1e-2, keep = 0.5, decay = 5e-4 }) {
  const { test, ...given } = await graph()
  const sizes = { hidden, features: given.features, classes: given.classes, nodes: given.nodes }
  const program = await load(SOURCE)
  const device = await devices.cpu()
  const step = await (await program.kernel('graphsage_step').build(device)).bind({
    ...given,
    ...initial(sizes, seed),
    key: Int32Array.of(seed, 0),
    rate: Float32Array.of(0),
    ...sizes,
    keep,
    decay,
  })
  const losses = []
  for (let t = 1; t <= epochs; t++) {
    const corrected = (rate * Math.sqrt(1 - 0.999 ** t)) / (1 - 0.9 ** t)
    await step.set('key', Int32Array.of(seed, t))
    await step.set('rate', Float32Array.of(corrected))
    await step.run()
    losses.push((await step.get('loss')).values[0])
  }
  const weights = {}
  for (const name of Object.keys(SHAPES(sizes))) weights[name] = (await step.get(name)).values
  step.free()
  const network = await program.kernel('graphsage').build(device)
  const { Z } = await network({ ...given, ...weights, key: Int32Array.of(0, 0), ...sizes, keep: 1 })
  return { losses, accuracy: accuracy(Z.values, given.labels, test, given.classes) }
}

const SHAPES = ({ features, hidden, classes }) => ({
  Ws1: [features, hidden],
  Wn1: [features, hidden],
  b1: [hidden],
  Ws2: [hidden, classes],
  Wn2: [hidden, classes],
  b2: [classes],
})

/** Weights of mean 0 and variance 2 / (inputs + outputs), biases and moments of 0. */
function initial(sizes, seed) {
  const out = {}
  for (const [k, [name, shape]] of Object.entries(SHAPES(sizes)).entries()) {
    const count = shape.reduce((a, b) => a * b)
    const scale = shape.length === 1 ? 0 : Math.sqrt(2 / (shape[0] + shape[1]))
    out[name] = normals(count, seed, k).map((x) => scale * x)
    out[`m_${name}`] = new Float32Array(count)
    out[`v_${name}`] = new Float32Array(count)
  }
  return out
}

function accuracy(scores, labels, test, classes) {
  const right = test.filter((v) => {
    const own = scores.subarray(v * classes, (v + 1) * classes)
    return own.indexOf(Math.max(...own)) === labels[v]
  })
  return right.length / test.length
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: { epochs: { type: 'string', default: '100' }, seed: { type: 'string', default: '1' } },
  })
  const { losses, accuracy: reached } = await train({
    epochs: Number(values.epochs),
    seed: Number(values.seed),
  })
  for (const [t, loss] of losses.entries())
    if (t % 20 === 19) console.log(`epoch ${t + 1}: loss ${loss.toFixed(5)}`)
  console.log(`test accuracy ${reached}`)
}
