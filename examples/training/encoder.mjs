/**
 * Fine-tuning of a tile-wise pruned encoder between the stages of pruning: `node examples/training/encoder.mjs`. The task is
 * recall: the first token has a key, and the class is the value of the other token with this key.
 */
import { fileURLToPath } from 'node:url'
import { coords, devices, load } from 'sparsetile/node'
import { layersFromValues, pruneInStages, tileWise, unionMasks } from 'sparsetile/prune'
import { normals, philox } from './random.mjs'

const SOURCE = fileURLToPath(new URL('encoder.spt', import.meta.url))
const [TOKENS, CLASSES, HEADS, D, HIDDEN] = [5, 4, 4, 8, 64]
const WIDTH = HEADS * D
const SIZES = { tokens: TOKENS, heads: HEADS, d: D, hidden: HIDDEN, classes: CLASSES }

/** Pruned weights, [outputs, inputs]. */
const SHAPES = {
  Wq: [WIDTH, WIDTH],
  Wk: [WIDTH, WIDTH],
  Wv: [WIDTH, WIDTH],
  Wo: [WIDTH, WIDTH],
  W1: [HIDDEN, WIDTH],
  W2: [WIDTH, HIDDEN],
}

/** Sequences of recall: tokens 1 to 4 have the keys in some order and a value each. */
export function recall(sequences, seed) {
  const embedding = normals(3 * 4 * WIDTH, 0, 99)
  const X = new Float32Array(sequences * TOKENS * WIDTH)
  const labels = new Int32Array(sequences)
  for (let s = 0; s < sequences; s++) {
    const [a, b, c] = philox([s, 0, 0, 0], [seed, 98])
    const put = (token, kind, which) => {
      for (let k = 0; k < WIDTH; k++)
        X[(s * TOKENS + token) * WIDTH + k] += embedding[(4 * kind + which) * WIDTH + k]
    }
    const asked = a % 4
    put(0, 2, asked)
    for (let token = 1; token < TOKENS; token++) {
      const key = (token + b) % 4
      const value = (c >>> (2 * token)) % 4
      put(token, 0, key)
      put(token, 1, value)
      if (key === asked) labels[s] = value
    }
  }
  return { X, labels }
}

class Encoder {
  /** Kept elements of each pruned weight, of 1 and 0, by name. */
  masks = Object.fromEntries(
    Object.entries(SHAPES).map(([name, [rows, cols]]) => [name, new Uint8Array(rows * cols).fill(1)]),
  )
  #values = Object.fromEntries(
    Object.entries({ ...SHAPES, Wc: [WIDTH, CLASSES] }).map(([name, [rows, cols]], k) => [
      name,
      normals(rows * cols, 1, k).map((x) => x / Math.sqrt(name === 'Wc' ? rows : cols)),
    ]),
  )
  #steps = 0

  constructor(kernels) {
    this.kernels = kernels
  }

  /** Trains by steps on new sequences. @returns the loss of each step */
  async train(steps, { rate = 0.05, momentum = 0.9, sequences = 64 } = {}) {
    const zero = Object.fromEntries(
      Object.entries(this.#values).map(([n, v]) => [n, new Float32Array(v.length)]),
    )
    const momenta = Object.entries(this.#tensors(zero)).map(([name, t]) => [`m_${name}`, t])
    const bound = await this.kernels.step.bind({
      ...recall(sequences, 0),
      ...this.#tensors(this.#values),
      ...Object.fromEntries(momenta),
      rate: Float32Array.of(rate),
      sequences,
      ...SIZES,
      momentum,
    })
    const losses = []
    for (let t = 0; t < steps; t++) {
      const { X, labels } = recall(sequences, ++this.#steps)
      await bound.set('X', X)
      await bound.set('labels', labels)
      await bound.run()
      losses.push((await bound.get('loss')).values[0])
    }
    for (const name of Object.keys(this.#values)) {
      const { values } = await bound.get(name)
      const kept = this.masks[name]
      let next = 0
      this.#values[name] = kept ? Float32Array.from(kept, (k) => (k ? values[next++] : 0)) : values
    }
    bound.free()
    return losses
  }

  /** The share of new sequences that is classified correctly. */
  async accuracy(sequences = 512) {
    const { X, labels } = recall(sequences, -1)
    const inputs = { X, labels, ...this.#tensors(this.#values), sequences, ...SIZES }
    const { Z } = await this.kernels.network(inputs)
    const right = [...labels.keys()].filter((s) => {
      const own = Z.values.subarray(s * CLASSES, (s + 1) * CLASSES)
      return own.indexOf(Math.max(...own)) === labels[s]
    })
    return right.length / sequences
  }

  layers() {
    const list = Object.entries(SHAPES).map(([name, [rows, cols]]) => ({
      name,
      rows,
      cols,
      weights: this.#values[name],
    }))
    return layersFromValues(list)
  }

  prune(masks) {
    for (const [k, name] of Object.keys(SHAPES).entries()) {
      this.masks[name] = masks[k]
      this.#values[name] = this.#values[name].map((w, e) => (masks[k][e] ? w : 0))
    }
  }

  /** Values as tensors, the pruned ones with the kept elements only. */
  #tensors(values) {
    return Object.fromEntries(
      Object.entries(values).map(([name, v]) => {
        const kept = this.masks[name]
        if (!kept) return [name, v]
        const cols = SHAPES[name][1]
        const at = [...kept.keys()].filter((e) => kept[e])
        const places = [at.map((e) => Math.floor(e / cols)), at.map((e) => e % cols)]
        return [
          name,
          coords(
            SHAPES[name],
            places,
            Float32Array.from(at, (e) => v[e]),
          ),
        ]
      }),
    )
  }
}

/**
 * Trains, then prunes stage by stage, with training after each stage.
 * @returns for each stage the sparsity, and the accuracy before and after fine-tuning
 */
export async function fineTune({ stages, first, between, granularity = 8 }) {
  const program = await load(SOURCE)
  const device = await devices.cpu()
  const [step, network] = await Promise.all(
    ['encoder_step', 'encoder'].map((name) => program.kernel(name).build(device)),
  )
  const encoder = new Encoder({ step, network })
  await encoder.train(first)
  const results = [{ sparsity: 0, pruned: null, tuned: await encoder.accuracy() }]
  const tune = async (masks, sparsity) => {
    encoder.prune(masks)
    const pruned = await encoder.accuracy()
    await encoder.train(between)
    results.push({ sparsity, pruned, tuned: await encoder.accuracy() })
    return encoder.layers()
  }
  const last = await pruneInStages(encoder.layers(), {
    pattern: tileWise({ granularity }),
    stages,
    between: (stage) => tune(unionMasks(stage), stage.sparsity),
  })
  await tune(unionMasks(last), stages.at(-1))
  return { results, encoder }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { results } = await fineTune({ stages: [0.75, 0.9], first: 200, between: 100 })
  for (const { sparsity, pruned, tuned } of results)
    console.log(`sparsity ${sparsity}: accuracy ${pruned ?? '-'} after pruning, ${tuned} after training`)
}
