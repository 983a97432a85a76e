/** `examples/training/`: Philox, and models that are trained with derived gradients. Needs `npm run build`. */
import { expect, test } from 'vitest'
import { fineTune } from '../../examples/training/encoder.mjs'
import { train as trainGraph } from '../../examples/training/graphsage.mjs'
import { philox } from '../../examples/training/random.mjs'
import { moved, train as trainSparse } from '../../examples/training/sparse-training.mjs'
import { devices, load } from '../../src/node.ts'
import { isTurnOf, LONG } from '../support/cases.ts'

const words = (list: readonly number[]): Int32Array => Int32Array.from(list, (x) => x | 0)

// The known answers of Random123 (kat_vectors): counter, key, result.
const KNOWN = [
  [[0, 0, 0, 0], [0, 0], '6627e8d5 e169c58d bc57ac4c 9b00dbd8'],
  [[-1, -1, -1, -1], [-1, -1], '408f276d 41c83b0e a20bc7c6 6d5451fd'],
  [
    [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
    [0xa4093822, 0x299f31d0],
    'd16cfe09 94fdcceb 5001e420 24126ea1',
  ],
] as const

const hex = (list: Iterable<number>): string =>
  Array.from(list, (x) => (x >>> 0).toString(16).padStart(8, '0')).join(' ')

test('Philox has the published words, as a kernel and on the host', async () => {
  const program = await load('examples/training/random.spt')
  const fn = await program.kernel('philox').build(await devices.cpu())
  for (const [counter, key, expected] of KNOWN) {
    const { R } = await fn({ counter: words(counter), key: words(key), n: 1 })
    expect(hex(R!.values as Int32Array)).toBe(expected)
    expect(hex(philox(counter, key))).toBe(expected)
  }
})

test('dropout keeps a share of the elements, with their gradients', async () => {
  const program = await load('examples/training/random.spt')
  const [n, d, keep] = [50, 31, 0.75]
  const device = await devices.cpu()
  const inputs = { X: new Float32Array(n * d).fill(1), key: words([7, 3]), n, d, keep }
  const { Y } = await (await program.kernel('dropout').build(device))(inputs)
  const mask = [...Y!.values!]
  const share = mask.filter((y) => y !== 0).length / (n * d)
  expect(Math.abs(share - keep)).toBeLessThan(0.05)
  for (const y of mask) expect([0, Math.fround(1 / keep)]).toContain(y)
  const back = await program.kernel('dropout').gradient('Y', ['X']).build(device)
  const { d_X } = await back({ key: words([7, 3]), d_Y: new Float32Array(n * d).fill(1), n, d, keep })
  expect([...d_X!.values!]).toEqual(mask)
})

test.runIf(isTurnOf(0, 3))('GraphSAGE on Cora has the losses of graphsage_numpy.py', async () => {
  const { losses, accuracy } = await trainGraph({ epochs: LONG ? 100 : 5 })
  for (const [epoch, loss] of [
    [1, 1.94578],
    [5, 1.78601],
    [20, 0.77764],
    [100, 0.09366],
  ] as const)
    if (epoch <= losses.length)
      expect(Math.abs(losses[epoch - 1]! - loss), `epoch ${epoch}`).toBeLessThan(1e-5)
  if (LONG) expect(accuracy).toBe(0.791)
})

test.runIf(isTurnOf(1, 3))(
  'a moving mask keeps its size, and reaches a lower loss than a fixed one',
  async () => {
    const size = { steps: 40, hidden: 32, samples: 100 }
    const [fixed, moving] = [
      await trainSparse({ ...size, every: 0 }),
      await trainSparse({ ...size, every: 10 }),
    ]
    expect(moving.losses.length).toBe(40)
    expect(moving.losses.at(-1)!).toBeLessThan(fixed.losses.at(-1)!)
    expect(moving.mask.length).toBe(fixed.mask.length)
    expect(moving.mask).not.toEqual(fixed.mask)
  },
)

test('a mask moves from small weights to large gradients', () => {
  const layer = { places: [1, 4, 5], weights: Float32Array.of(3, -1, 2), momenta: Float32Array.of(7, 8, 9) }
  expect(moved(layer, Float32Array.of(0, 9, 1, -5, 0, 0), 1 / 3)).toEqual({
    places: [1, 3, 5],
    weights: Float32Array.of(3, 0, 2),
    momenta: Float32Array.of(7, 0, 9),
  })
})

test.runIf(isTurnOf(2, 3))('fine-tuning keeps what is pruned, and restores the accuracy', async () => {
  const { results, encoder } = await fineTune({ stages: [0.9], first: 40, between: 30 })
  const [, stage] = results
  expect(stage!.tuned).toBeGreaterThan(stage!.pruned!)
  const { weights } = encoder.layers()
  for (const [k, mask] of Object.values(encoder.masks).entries()) {
    expect(mask.includes(0)).toBe(true)
    expect(Array.from(await weights(k), (w) => (w === 0 ? 0 : 1))).toEqual([...mask])
  }
})
