/** `examples/pruning/`: networks that are trained, pruned and trained on, from their seeds. Needs `npm run build`. */
import { spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { cora } from '../../examples/pruning/cora.mjs'
import { CLASSES, glyphs, SIDE } from '../../examples/pruning/glyphs.mjs'
import { coraTask, glyphTask } from '../../examples/pruning/network.mjs'
import { PATTERNS, runs } from '../../examples/pruning/stages.mjs'
import { readTensor } from '../../src/node.ts'
import { layersFromValues, type Mask, prune, tileWise } from '../../src/prune.ts'

const small = () =>
  glyphTask({ hidden: 32, samples: 300, batch: 20, judged: 100, rate: 4e-3, stepsOfRound: 10 })

const TASKS = {
  glyphs: { make: small, rounds: 6 },
  cora: { make: () => coraTask({ hidden: 16, rate: 3e-2, stepsOfRound: 4 }), rounds: 6 },
} as const

describe.each(Object.keys(TASKS) as (keyof typeof TASKS)[])('%s', (name) => {
  const { make, rounds } = TASKS[name]

  test('the loss falls, and pruned weights stay 0 during further training', async () => {
    const task = await make()
    const network = await task.network(3)
    const losses = await network.train(rounds)
    expect(losses.at(-1)!).toBeLessThan(0.8 * losses[0]!)
    const { masks } = await prune(layersFromValues(await network.layers()), {
      pattern: tileWise({ granularity: 8 }),
      sparsity: 0.7,
      // No layer is left whole.
      limits: { first: 0.72 },
    })
    for (const mask of masks) expect(mask.includes(0)).toBe(true)
    await network.prune(masks as Mask[])
    const state = await network.state()
    const held = async (): Promise<void> => {
      // What is kept is 0 by chance alone.
      for (const [k, { weights }] of (await network.layers()).entries())
        expect([...weights.keys()].filter((e) => (weights[e] !== 0) !== (masks[k]![e] === 1)).length).toBe(0)
    }
    await held()
    const tuned = await network.train(2)
    await held()
    expect(await network.state()).not.toEqual(state)
    expect(tuned.at(-1)!).toBeLessThan(tuned[0]!)
    // Masks are taken off again.
    await network.restore(state, 1)
    await network.train(1)
    const [{ weights }] = (await network.layers()) as [{ weights: Float32Array }]
    expect(weights.filter((w) => w !== 0).length).toBeGreaterThan(masks[0]!.filter((x) => x === 1).length)
  })

  test('equal seeds give equal results, other seeds differ', async () => {
    const task = await make()
    const what = { patterns: ['ew', 'tw 32', '2:4'], stages: [0.5, 0.75], first: 2, between: 1 }
    const all = await runs(task, 5, what)
    // Patterns do not depend on each other.
    const some = { ...what, patterns: ['tw 32'] }
    expect(await runs(task, 5, some)).toEqual(all.filter((r) => r.pattern === 'tw 32'))
    const first = (results: typeof all) => results.find((r) => r.pattern === 'tw 32')!.norm
    expect(first(await runs(task, 6, some))).not.toEqual(first(all))
    for (const row of all) {
      expect(row.sparsity).toEqual(row.pattern === '2:4' ? [0.5] : [0.5, 0.75])
      row.reached.forEach((s, k) => {
        expect(Math.abs(s - row.sparsity[k]!)).toBeLessThan(0.03)
      })
      for (const a of [...row.accuracy, ...row.pruned]) expect(a >= 0 && a <= 1).toBe(true)
    }
  })
})

test('a seed samples glyphs, with equal class sizes', () => {
  const [one, same, other] = [glyphs(40, 1), glyphs(40, 1), glyphs(40, 2)]
  expect(same).toEqual(one)
  expect(other.X).not.toEqual(one.X)
  expect(one.X.length).toBe(40 * SIDE * SIDE)
  for (let c = 0; c < CLASSES; c++) expect(one.labels.filter((l) => l === c).length).toBe(4)
})

test('Cora is the packaged graph, with its features', async () => {
  const { A, X, labels, train, test: judged } = await cora()
  const graph = await readTensor('data/cora.mtx')
  if (graph.kind !== 'coords') throw new Error('a list of coordinates is expected')
  const text = ([i, j]: readonly ArrayLike<number>[], loops: boolean): string[] =>
    Array.from(i!, (r, e) => [r, j![e]!])
      .filter(([r, c]) => loops || r !== c)
      .map(String)
      .sort()
  expect(text(A.coords, false)).toEqual(text(graph.coords, true))
  expect(A.coords[0]!.length).toBe(10_556 + 2708)
  // Â of a graph without direction is symmetric: its largest eigenvalue is 1, of √degree.
  const degree = new Float64Array(2708)
  for (const i of A.coords[0]!) degree[i]!++
  const product = new Float64Array(2708)
  A.coords[0]!.forEach((i, e) => {
    product[i]! += A.values![e]! * Math.sqrt(degree[A.coords[1]![e]!]!)
  })
  expect(Math.max(...product.map((p, i) => Math.abs(p / Math.sqrt(degree[i]!) - 1)))).toBeLessThan(1e-5)
  expect([X.shape, X.values!.length, train.length, judged.length]).toEqual([[2708, 1433], 49_216, 140, 1000])
  expect(new Set(labels).size).toBe(7)
  expect(train.filter((i) => labels[i] === 0).length).toBe(20)
})

test('unknown options of the experiment are rejected', () => {
  const { status, stderr } = spawnSync(
    process.execPath,
    ['examples/pruning/experiment.mjs', '--patterns', 'tw 31'],
    { encoding: 'utf8' },
  )
  expect(status).toBe(1)
  expect(stderr).toContain(`there is no tw 31; there are ${Object.keys(PATTERNS).join(', ')}`)
})
