/** Sparse training of a perceptron on drawn glyphs, with a moving mask: `node examples/training/sparse-training.mjs`. */
import { fileURLToPath } from 'node:url'
import { coords, devices, load } from 'sparsetile/node'
import { CLASSES, glyphs, SIDE } from '../pruning/glyphs.mjs'
import { normals } from './random.mjs'

const SOURCE = fileURLToPath(new URL('sparse-training.spt', import.meta.url))
const INPUTS = SIDE * SIDE

/**
 * Trains with `density` of the weights of the first layer.
 * @param every number of steps after which the mask moves; 0 for a fixed mask
 * @param part the share of the stored weights that the first move replaces; it falls to 0 during the training
 * @returns the loss of each step, the mask (coordinates, in order), and the share of other glyphs that is recognised
 */
export async function train({
  steps,
  every,
  density = 0.05,
  part = 0.3,
  hidden = 64,
  samples = 400,
  rate = 0.1,
  momentum = 0.9,
  seed = 1,
}) {
  const program = await load(SOURCE)
  const device = await devices.cpu()
  const [step, growth, network] = await Promise.all(
    ['classifier_step', 'growth', 'classifier'].map((name) => program.kernel(name).build(device)),
  )
  const sizes = { samples, inputs: INPUTS, hidden, classes: CLASSES }
  const data = glyphs(samples, seed)
  let layer = randomLayer(hidden, density, seed)
  const others = {
    b1: new Float32Array(hidden),
    W2: normals(hidden * CLASSES, seed, 2).map((x) => x * Math.sqrt(2 / hidden)),
    b2: new Float32Array(CLASSES),
    m_b1: new Float32Array(hidden),
    m_W2: new Float32Array(hidden * CLASSES),
    m_b2: new Float32Array(CLASSES),
  }
  const losses = []
  const period = every || steps
  for (let done = 0; done < steps; done += period) {
    const bound = await step.bind({
      ...data,
      ...tensors(layer, hidden),
      ...others,
      rate: Float32Array.of(rate),
      ...sizes,
      momentum,
    })
    for (let t = 0; t < period; t++) {
      await bound.run()
      losses.push((await bound.get('loss')).values[0])
    }
    for (const name of Object.keys(others)) others[name] = (await bound.get(name)).values
    layer = {
      ...layer,
      weights: (await bound.get('W1')).values,
      momenta: (await bound.get('m_W1')).values,
    }
    bound.free()
    if (every === 0 || done + period >= steps) continue
    const { W1 } = tensors(layer, hidden)
    const { b1, W2, b2 } = others
    const { d_W1 } = await growth({ ...data, W1, b1, W2, b2, ...sizes })
    layer = moved(layer, d_W1.values, part * (1 - done / steps))
  }
  const tested = glyphs(200, seed + 1000)
  const { W1 } = tensors(layer, hidden)
  const { b1, W2, b2 } = others
  const { Z } = await network({ ...tested, W1, b1, W2, b2, ...sizes, samples: 200 })
  const right = [...tested.labels.keys()].filter((i) => {
    const own = Z.values.subarray(i * CLASSES, (i + 1) * CLASSES)
    return own.indexOf(Math.max(...own)) === tested.labels[i]
  })
  return { losses, mask: layer.places, accuracy: right.length / 200 }
}

/** Weights at random places: `places` are indices of input · hidden + unit, in order. */
function randomLayer(hidden, density, seed) {
  const order = normals(INPUTS * hidden, seed)
  const count = Math.round(density * INPUTS * hidden)
  const places = [...order.keys()].sort((a, b) => order[a] - order[b]).slice(0, count)
  places.sort((a, b) => a - b)
  const scale = Math.sqrt(2 / (density * INPUTS))
  return { places, weights: normals(count, seed, 1).map((x) => scale * x), momenta: new Float32Array(count) }
}

/** The layer and its momenta as sparse matrices of one structure. */
function tensors({ places, weights, momenta }, hidden) {
  const at = [places.map((e) => Math.floor(e / hidden)), places.map((e) => e % hidden)]
  return { W1: coords([INPUTS, hidden], at, weights), m_W1: coords([INPUTS, hidden], at, momenta) }
}

/** The layer without a share of its weights, the smallest ones, and with as many zeros where the gradient is largest. */
export function moved({ places, weights, momenta }, gradient, share) {
  const count = Math.round(share * places.length)
  const bySize = [...places.keys()].sort((a, b) => Math.abs(weights[b]) - Math.abs(weights[a]))
  const kept = bySize.slice(0, places.length - count)
  const stored = new Set(kept.map((e) => places[e]))
  const grown = [...gradient.keys()]
    .filter((e) => !stored.has(e))
    .sort((a, b) => Math.abs(gradient[b]) - Math.abs(gradient[a]))
    .slice(0, count)
  const all = [...kept.map((e) => [places[e], weights[e], momenta[e]]), ...grown.map((e) => [e, 0, 0])]
  all.sort(([a], [b]) => a - b)
  return {
    places: all.map(([e]) => e),
    weights: Float32Array.from(all, ([, w]) => w),
    momenta: Float32Array.from(all, ([, , m]) => m),
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const [name, every] of [
    ['fixed mask', 0],
    ['moving mask', 10],
  ]) {
    const { losses, accuracy } = await train({ steps: 100, every })
    console.log(`${name}: loss ${losses.at(-1).toFixed(5)}, accuracy ${accuracy}`)
  }
