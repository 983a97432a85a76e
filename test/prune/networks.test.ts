/** `examples/pruning/networks.spt`: steps against the reference, their gradients against differences, their updates against Adam's. */

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, type DenseTensor, dense, devices, load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'

const FILE = 'examples/pruning/networks.spt'

type Values = Record<string, Float32Array>
type Matrix = (i: number, j: number) => number

/** Sizes of a perceptron, or of a graph network, and what their values are drawn with. */
interface Case {
  readonly n: number
  readonly k: number
  readonly h: number
  readonly g: number
  readonly c: number
  readonly seed: number
}
const cases = fc.record({
  n: fc.integer({ min: 1, max: 6 }),
  k: fc.integer({ min: 1, max: 9 }),
  h: fc.integer({ min: 1, max: 10 }),
  g: fc.integer({ min: 1, max: 10 }),
  c: fc.integer({ min: 2, max: 5 }),
  seed: fc.integer(),
})

/** Numbers in [−1, 1). */
function drawer(seed: number): (n: number) => Float32Array {
  let state = (seed ^ 0x5bd1e995) >>> 0
  const next = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 31 - 1
  }
  for (let k = 0; k < 8; k++) next()
  return (n) => Float32Array.from({ length: n }, next)
}

/** The mean of −log softmax at the labels, each counting its share. */
function entropy(scores: Matrix, labels: Int32Array, share: Float32Array, classes: number): number {
  let loss = 0
  labels.forEach((label, i) => {
    const of = Array.from({ length: classes }, (_, o) => scores(i, o))
    loss += share[i]! * (Math.log(of.reduce((s, y) => s + Math.exp(y), 0)) - of[label]!)
  })
  return loss
}

const indices = (n: number): number[] => Array.from({ length: n }, (_, k) => k)

/** Σ of f over 0 … n − 1. */
const sum = (n: number, f: (k: number) => number): number => indices(n).reduce((s, k) => s + f(k), 0)

/** Σ over p of X[i, p] · W[p, q], computed once. */
function times(rows: number, inner: number, cols: number, X: Matrix, W: ArrayLike<number>): Matrix {
  const out = indices(rows * cols).map((e) =>
    sum(inner, (p) => X(Math.floor(e / cols), p) * W[p * cols + (e % cols)]!),
  )
  return (i, q) => out[i * cols + q]!
}

const at =
  (X: ArrayLike<number>, cols: number): Matrix =>
  (i, p) =>
    X[i * cols + p]!

interface Network {
  readonly kernel: string
  readonly inputs: RunInputs
  readonly weights: Values
  /** Masks of those that have one. */
  readonly masks: Values
  readonly decay: (name: string) => number
  /** In doubles, and the least magnitude of what is rectified. */
  loss(weights: Record<string, ArrayLike<number>>): { loss: number; least: number }
}

const shapesOf = (kernel: string, { k, h, g, c }: Case): Record<string, readonly number[]> =>
  kernel === 'perceptron_step'
    ? { W1: [k, h], b1: [h], W2: [h, g], b2: [g], W3: [g, c], b3: [c] }
    : { W1: [k, h], b1: [h], W2: [h, c], b2: [c] }

const MASKED: Record<string, readonly string[]> = { perceptron_step: ['W1', 'W2'], graph_step: ['W1'] }
const momentsOf = (name: string): [string, string] =>
  name.startsWith('W') ? [`m${name.slice(1)}`, `v${name.slice(1)}`] : [`m${name}`, `v${name}`]
const maskOf = (name: string): string => `k${name.slice(1)}`

function drawnNetwork(kernel: string, of: Case): Network {
  const { n, k, h, g, c, seed } = of
  const draw = drawer(seed)
  const size = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1)
  const shapes = Object.entries(shapesOf(kernel, of))
  const weights = Object.fromEntries(shapes.map(([name, s]) => [name, draw(size(s))]))
  const masks = Object.fromEntries(
    MASKED[kernel]!.map((name) => [maskOf(name), draw(weights[name]!.length).map((x) => (x > 0 ? 1 : 0))]),
  )
  const moments = Object.fromEntries(
    shapes.flatMap(([name, s]) => {
      const [m, v] = momentsOf(name)
      return [
        [m, draw(size(s))],
        [v, draw(size(s)).map((x) => x * x)],
      ]
    }),
  )
  const common = { ...weights, ...masks, ...moments, rate: Float32Array.of(0.125) }
  const labelsOf = (count: number): Int32Array =>
    Int32Array.from(draw(count), (x) => Math.floor(((x + 1) / 2) * c))
  const least = (...of: readonly (readonly [Matrix, number])[]): number =>
    Math.min(
      ...of.flatMap(([z, cols]) => indices(n * cols).map((e) => Math.abs(z(Math.floor(e / cols), e % cols)))),
    )
  if (kernel === 'perceptron_step') {
    const samples = n + 2
    const X = draw(samples * k)
    const labels = labelsOf(samples)
    // Some twice.
    const drawn = Int32Array.from(draw(n), (x) => Math.floor(((x + 1) / 2) * samples))
    return {
      kernel,
      weights,
      masks,
      decay: () => 0,
      inputs: { tensors: { ...common, X, labels, drawn }, params: { samples, batch: n, k, h, g, c } },
      loss(w) {
        const z1 = times(n, k, h, (i, p) => X[drawn[i]! * k + p]!, w.W1!)
        const a1: Matrix = (i, q) => z1(i, q) + w.b1![q]!
        const z2 = times(n, h, g, (i, q) => Math.max(a1(i, q), 0), w.W2!)
        const a2: Matrix = (i, r) => z2(i, r) + w.b2![r]!
        const z3 = times(n, g, c, (i, r) => Math.max(a2(i, r), 0), w.W3!)
        const mean = new Float32Array(n).fill(1 / n)
        const loss = entropy(
          (i, o) => z3(i, o) + w.b3![o]!,
          drawn.map((s) => labels[s]!),
          mean,
          c,
        )
        return { loss, least: least([a1, h], [a2, g]) }
      },
    }
  }
  // No symmetric graph: what is transposed shows.
  const A = draw(n * n).map((x) => (x > -0.3 ? x : 0))
  const X = draw(n * k).map((x) => (x > 0 ? x : 0))
  const sparse = (values: Float32Array, cols: number) => {
    const held = [...values.keys()].filter((e) => values[e] !== 0)
    const places = [held.map((e) => Math.floor(e / cols)), held.map((e) => e % cols)]
    return coords(
      [n, cols],
      places,
      held.map((e) => values[e]!),
      'f32',
    )
  }
  const labels = labelsOf(n)
  const share = draw(n).map((x) => Math.max(x, 0))
  return {
    kernel,
    weights,
    masks,
    decay: (name) => (name === 'W1' ? 0.25 : 0),
    inputs: {
      tensors: { ...common, A: sparse(A, n), X: sparse(X, k), labels, share },
      params: { n, k, h, c, decay: 0.25 },
    },
    loss(w) {
      const neighbours = (cols: number, of: Matrix): Matrix =>
        times(
          n,
          n,
          cols,
          at(A, n),
          indices(n * cols).map((e) => of(Math.floor(e / cols), e % cols)),
        )
      const s1 = neighbours(h, times(n, k, h, at(X, k), w.W1!))
      const a1: Matrix = (i, q) => s1(i, q) + w.b1![q]!
      const s2 = neighbours(
        c,
        times(n, h, c, (i, q) => Math.max(a1(i, q), 0), w.W2!),
      )
      const loss = entropy((i, o) => s2(i, o) + w.b2![o]!, labels, share, c)
      // A node without neighbours stays at its bias.
      return { loss, least: least([a1, h]) }
    },
  }
}

const program = load(FILE)
const cpu = devices.cpu()
const compiled = new Map(
  Object.keys(MASKED).map((kernel) => [
    kernel,
    (async () =>
      (await program)
        .kernel(kernel)
        .schedule('cpu')
        .build(await cpu, { auto: false }))(),
  ]),
)

describe.each(Object.keys(MASKED))('%s', (kernel) => {
  property([cases], { numRuns: runs(15) })('equals the reference', async (of) => {
    const prepared = await (await compiled.get(kernel)!).bind(...flatInputs(drawnNetwork(kernel, of).inputs))
    const { ok, problems } = await prepared.verify()
    expect({ ok, problems }).toMatchObject({ ok: true })
    prepared.free()
  })

  property([cases], { numRuns: runs(15) })(
    'gradients equal finite differences, and steps those of Adam',
    async (of) => {
      const network = drawnNetwork(kernel, of)
      const { weights, masks } = network
      const there = network.loss(weights)
      fc.pre(there.least > 1e-3)
      const prepared = await (await compiled.get(kernel)!).bind(...flatInputs(network.inputs))
      await prepared.run()
      const read = async (name: string): Promise<Float32Array> =>
        (await prepared.get(name)).values as Float32Array
      expect((await read('loss'))[0]).toBeCloseTo(there.loss, 4)
      for (const [name, values] of Object.entries(weights)) {
        const gradient = await read(`d${name}`)
        const differences = [...values.keys()].map((e) => {
          const moved = (by: number): number => {
            const to = Float64Array.from(values)
            to[e]! += by
            return network.loss({ ...weights, [name]: to }).loss
          }
          return (moved(1e-5) - moved(-1e-5)) / 2e-5
        })
        const [m, v] = momentsOf(name)
        const given = network.inputs.tensors as Values
        const [m1, v1, after] = [await read(m), await read(v), await read(name)]
        const mask = name.startsWith('W') ? masks[maskOf(name)] : undefined
        const problems = differences.flatMap((d, e) => {
          const near = (got: number, expected: number): boolean =>
            Math.abs(got - expected) <= 1e-4 * (1 + Math.abs(expected))
          const g = gradient[e]! + network.decay(name) * values[e]!
          const moment = 0.9 * given[m]![e]! + 0.1 * g
          const second = 0.999 * given[v]![e]! + 0.001 * g * g
          const held = mask?.[e] === 0
          const stepped = values[e]! - (0.125 * moment) / (Math.sqrt(second) + 1e-8)
          const all = [near(gradient[e]!, d), near(m1[e]!, moment), near(v1[e]!, second)]
          // A small second moment makes a large step of a small error.
          all.push(held ? after[e] === 0 : Math.sqrt(second) < 0.01 || near(after[e]!, stepped))
          return all.every(Boolean) ? [] : [{ name, e, all, g, d }]
        })
        expect(problems).toEqual([])
      }
      prepared.free()
    },
  )
})

test('inference equals the forward pass of the training step', async () => {
  const network = drawnNetwork('graph_step', { n: 5, k: 7, h: 9, g: 3, c: 3, seed: 4 })
  const step = await (await compiled.get('graph_step')!)(...flatInputs(network.inputs))
  const { A, X } = network.inputs.tensors as Record<string, DenseTensor>
  const say = await (await program)
    .kernel('graph_network')
    .schedule('cpu')
    .build(await cpu, { auto: false })
  const said = await say({ A: A!, X: X!, ...network.weights, n: 5, k: 7, h: 9, c: 3 })
  expect(said.Y!.values).toEqual(step.Y!.values)
  const one = drawnNetwork('perceptron_step', { n: 6, k: 7, h: 9, g: 8, c: 3, seed: 4 })
  const { X: images, labels, drawn } = one.inputs.tensors as Record<string, Float32Array>
  const forward = await (await program)
    .kernel('perceptron')
    .schedule('cpu')
    .build(await cpu, { auto: false })
  const { Y } = await forward({
    X: dense([8, 7], images!),
    ...one.weights,
    samples: 8,
    k: 7,
    h: 9,
    g: 8,
    c: 3,
  })
  const scores = [...drawn!].flatMap((s) => [0, 1, 2].map((o) => Y!.values![3 * s + o]!))
  const of = Int32Array.from(drawn!, (s) => labels![s]!)
  expect(entropy(at(scores, 3), of, new Float32Array(6).fill(1 / 6), 3)).toBeCloseTo(
    one.loss(one.weights).loss,
    4,
  )
})
