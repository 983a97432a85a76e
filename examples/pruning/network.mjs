/** Networks whose steps are kernels of `networks.spt`, run on the CPU: trained, pruned with the package's pruner, trained again. */
import { devices, load } from 'sparsetile/node'
import { cora } from './cora.mjs'
import { CLASSES, glyphs, SIDE } from './glyphs.mjs'
import { uniform } from './random.mjs'

/** A network that trains: `Task.network(seed)`. What is pruned are the layers of `layers`; the last one is left whole. */
export class Network {
  #step
  #forward
  #shapes
  #random
  #steps = 0
  #task

  constructor(task, step, forward, seed) {
    this.#task = task
    this.#step = step
    this.#forward = forward
    this.#shapes = task.tensors
    this.#random = uniform(seed)
  }

  /** Weights drawn as Glorot and Bengio (2010) do, biases and moments 0, nothing pruned. */
  async begin() {
    for (const [name, shape] of Object.entries(this.#shapes)) {
      const [inputs, outputs] = shape
      const bound = outputs === undefined ? 0 : Math.sqrt(6 / (inputs + outputs))
      const values = new Float32Array(inputs * (outputs ?? 1))
      for (let e = 0; e < values.length; e++) values[e] = bound * (2 * this.#random() - 1)
      await this.#step.set(name, values)
      for (const m of momentsOf(name)) await this.#step.set(m, new Float32Array(values.length))
    }
    for (const { mask, rows, cols } of this.#task.layers)
      await this.#step.set(mask, new Float32Array(rows * cols).fill(1))
    return this
  }

  /** Rounds of steps with Adam, a step's length falling in a line to a tenth. @returns the mean loss of each round */
  async train(rounds, rate = this.#task.rate) {
    const losses = []
    const { stepsOfRound: each, samples, batch } = this.#task
    for (let k = 0; k < rounds; k++) {
      let sum = 0
      for (let s = 0; s < each; s++) {
        const done = (k * each + s) / (rounds * each)
        const t = ++this.#steps
        const step = (rate * (1 - 0.9 * done) * Math.sqrt(1 - 0.999 ** t)) / (1 - 0.9 ** t)
        await this.#step.set('rate', Float32Array.of(step))
        if (samples) {
          const drawn = Int32Array.from({ length: batch }, () => Math.floor(samples * this.#random()))
          await this.#step.set('drawn', drawn)
        }
        await this.#step.run()
        sum += (await this.#step.get('loss')).values[0]
      }
      losses.push(sum / each)
    }
    return losses
  }

  /** The share of what it has not been trained on that it gets right. */
  async accuracy() {
    for (const name of Object.keys(this.#shapes)) await this.#forward.set(name, await this.#values(name))
    await this.#forward.run()
    const scores = (await this.#forward.get('Y')).values
    const { test, labels, classes } = this.#task
    const right = test.filter((i) => {
      const of = scores.subarray(i * classes, (i + 1) * classes)
      return of.indexOf(of.reduce((a, b) => Math.max(a, b))) === labels[i]
    })
    return right.length / test.length
  }

  /** What is pruned, as the pruner takes it: [outputs, inputs]. */
  async layers() {
    const out = []
    for (const { name, weights, rows, cols } of this.#task.layers)
      out.push({ name, rows, cols, weights: transposed(await this.#values(weights), cols, rows) })
    return out
  }

  /** From here on what the masks lack is 0. @param masks one of bytes for each layer, [outputs, inputs] */
  async prune(masks) {
    for (const [k, { weights, mask, rows, cols }] of this.#task.layers.entries()) {
      const kept = Float32Array.from(transposed(masks[k], rows, cols))
      const values = await this.#values(weights)
      await this.#step.set(mask, kept)
      await this.#step.set(
        weights,
        values.map((w, e) => (kept[e] === 0 ? 0 : w)),
      )
    }
  }

  /** All that training changes; `restore` brings it back. */
  async state() {
    const tensors = new Map()
    for (const name of Object.keys(this.#shapes))
      for (const t of [name, ...momentsOf(name)]) tensors.set(t, await this.#values(t))
    return { tensors, steps: this.#steps }
  }

  /** @param seed what is drawn from here on */
  async restore({ tensors, steps }, seed) {
    for (const [name, values] of tensors) await this.#step.set(name, values)
    for (const { mask, rows, cols } of this.#task.layers)
      await this.#step.set(mask, new Float32Array(rows * cols).fill(1))
    this.#steps = steps
    this.#random = uniform(seed)
  }

  async #values(name) {
    return Float32Array.from((await this.#step.get(name)).values)
  }
}

/** Names of the moments of W1: m1 and v1; of b1: mb1 and vb1. */
const momentsOf = (name) => ['m', 'v'].map((m) => m + (name.startsWith('W') ? name.slice(1) : name))

/** [rows, cols] → [cols, rows]. */
function transposed(values, rows, cols) {
  const out = new values.constructor(values.length)
  for (let r = 0; r < rows; r++) for (let c = 0; c < cols; c++) out[c * rows + r] = values[r * cols + c]
  return out
}

const program = load(new URL('networks.spt', import.meta.url).href)

/** A task with its kernels built: `network(seed)` draws a network, whose predecessor must not be used any more. */
async function task(given, stepName, forwardName, stepInputs, forwardInputs) {
  const cpu = await devices.cpu()
  const compiled = async (name) => (await program).kernel(name).schedule('cpu').build(cpu, { auto: false })
  const zeros = Object.entries(given.tensors).flatMap(([name, [a, b = 1]]) =>
    [name, ...momentsOf(name)].map((t) => [t, new Float32Array(a * b)]),
  )
  const masks = given.layers.map(({ mask, rows, cols }) => [mask, new Float32Array(rows * cols)])
  const step = await (await compiled(stepName)).bind({
    ...stepInputs,
    ...Object.fromEntries([...zeros, ...masks]),
    rate: new Float32Array(1),
  })
  const weights = Object.fromEntries(zeros.filter(([name]) => name in given.tensors))
  const forward = await (await compiled(forwardName)).bind({ ...forwardInputs, ...weights })
  return { ...given, step, network: (seed) => new Network(given, step, forward, seed).begin() }
}

/** Glyphs of ten classes and a perceptron 256 → hidden → hidden → 10. The images are the same for all networks. */
export async function glyphTask({
  hidden = 256,
  samples = 10_000,
  batch = 50,
  judged = 2000,
  rate = 1e-3,
  stepsOfRound = 40,
} = {}) {
  const [inputs, outputs] = [SIDE * SIDE, CLASSES]
  const learned = glyphs(samples, 1)
  const seen = glyphs(judged, 2)
  const sizes = { k: inputs, h: hidden, g: hidden, c: outputs }
  return task(
    {
      layers: [
        { name: 'first', weights: 'W1', mask: 'k1', rows: hidden, cols: inputs },
        { name: 'second', weights: 'W2', mask: 'k2', rows: hidden, cols: hidden },
      ],
      tensors: {
        W1: [inputs, hidden],
        b1: [hidden],
        W2: [hidden, hidden],
        b2: [hidden],
        W3: [hidden, outputs],
        b3: [outputs],
      },
      rate,
      batch,
      samples,
      stepsOfRound,
      classes: outputs,
      labels: seen.labels,
      test: [...seen.labels.keys()],
    },
    'perceptron_step',
    'perceptron',
    {
      X: learned.X,
      labels: learned.labels,
      drawn: new Int32Array(batch),
      samples,
      batch,
      ...sizes,
    },
    { X: seen.X, samples: judged, ...sizes },
  )
}

/** Papers of Cora and a graph network 1,433 → hidden → 7, all nodes a step. */
export async function coraTask({ hidden = 128, rate = 1e-2, decay = 5e-4, stepsOfRound = 10 } = {}) {
  const { A, X, labels, train, test, shape } = await cora()
  const { n, k, classes } = shape
  const share = new Float32Array(n)
  for (const i of train) share[i] = 1 / train.length
  const sizes = { n, k, h: hidden, c: classes }
  return task(
    {
      layers: [{ name: 'first', weights: 'W1', mask: 'k1', rows: hidden, cols: k }],
      tensors: { W1: [k, hidden], b1: [hidden], W2: [hidden, classes], b2: [classes] },
      rate,
      stepsOfRound,
      classes,
      labels,
      test,
    },
    'graph_step',
    'graph_network',
    { A, X, labels, share, ...sizes, decay },
    { A, X, ...sizes },
  )
}
