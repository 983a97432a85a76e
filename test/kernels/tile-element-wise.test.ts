/** Tiles and single elements beside them, by the pruner and by hand, against a plain loop and the reference. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { coords, type Device, devices, load, type SptProgram } from '../../src/node.ts'
import { layersFromValues, prune, tileElementWise, unionMasks } from '../../src/prune.ts'
import { runs } from '../support/cases.ts'
import { interpreted } from '../support/interpreted.ts'
import { compileTogether, noNvcc } from '../support/nvcc.ts'
import {
  byHand,
  DRAWN,
  expected,
  inputsOf,
  KINDS,
  kept,
  keptWeights,
  type Layer,
  numbers,
  outputsOn,
  unread,
  weightsIn,
} from './pruned-layers.ts'

const FILE = 'kernels/tile-element-wise.spt'

/** `layer.mask` has both, `tiles` what is in tiles. */
interface Masked {
  readonly layer: Layer
  readonly tiles: Uint8Array
}
interface Drawn {
  readonly masked: Promise<Masked>
  readonly m: number
  readonly low: number
  readonly seed: number
  /** Of schedules: outputs of a tile, inputs of a list, columns of a block and of a thread, outputs of a thread. */
  readonly g: number
  readonly s: number
  readonly cols: number
  readonly high: number
  readonly wide: number
}

async function byPruner(
  n: number,
  k: number,
  g: number,
  sparsity: number,
  delta: number,
  weights: Int32Array,
) {
  const list = layersFromValues([{ name: 'w', rows: n, cols: k, weights: Float32Array.from(weights) }])
  const made = await prune(list, { pattern: tileElementWise({ granularity: g, delta }), sparsity })
  return { tiles: made.masks[0]!, mask: unionMasks(made)[0]! }
}

const drawn: fc.Arbitrary<Drawn> = fc
  .record({
    ...DRAWN,
    sparsity: fc.constantFrom(0, 0.25, 0.5, 0.75),
    delta: fc.constantFrom(0, 0.01, 0.05, 0.2),
    // Of each twentieth weight, whether it is among the rest: all of them, none, or any.
    more: fc.oneof(fc.constantFrom(0, 0xfffff), fc.nat(0xfffff)),
    pruner: fc.boolean(),
    low: fc.constantFrom(0, -2, Number.NEGATIVE_INFINITY),
    s: fc.constantFrom(1, 2, 3, 4),
  })
  .map(({ n, k, kind, sparsity, delta, outputs, inputs, more, pruner, ...d }) => {
    const weights = KINDS[kind](n * k, d.seed)
    const masks = async (): Promise<{ tiles: Uint8Array; mask: Uint8Array }> => {
      if (pruner && n * k > 0) return byPruner(n, k, d.g, sparsity, delta, weights)
      const tiles = byHand(n, k, d.g, outputs, inputs)
      return { tiles, mask: tiles.map((x, e) => x | ((more >> ((e * 7) % 20)) & 1)) }
    }
    const masked = masks().then(({ tiles, mask }) => ({
      layer: { n, k, weights, mask, bias: numbers(n, d.seed + 2) },
      tiles,
    }))
    return { ...d, masked }
  })

const maskedInputs = ({ layer, tiles }: Masked, X: Float32Array, m: number, low: number) => {
  const { tensors, params } = inputsOf(layer, X, m, low)
  const { coords: at } = kept({ ...layer, mask: tiles })
  return { tensors: { ...tensors, kept: coords([layer.n, layer.k], at, null) }, params }
}

let program: SptProgram
const present: Device[] = []
beforeAll(async () => {
  program = await load(FILE)
  present.push(await devices.cpu(), await devices.webgpu())
})
afterAll(async () => {
  for (const d of present) await d.dispose()
})

test('tiles and remainder store exactly the kept weights; tiles store only weights of the mask', async () => {
  await fc.assert(
    fc.asyncProperty(drawn, async ({ g, s, masked }) => {
      const { layer, tiles } = await masked
      const { W, kept: set } = maskedInputs({ layer, tiles }, new Float32Array(0), 0, 0).tensors
      const made = program.format('tile_element_wise', g, s, 'kept').convert(W, { kept: set })
      const back = made.toCoords()
      expect(weightsIn(back, layer)).toEqual(keptWeights(layer))
      const rest = layer.mask.filter((x, e) => x === 1 && tiles[e] === 0).length
      expect(made.parts[1]!.tensor.values!.length).toBe(rest)
    }),
    { numRuns: runs(30) },
  )
})

async function agrees(
  device: Device,
  kernel: string,
  schedule: 'tew_cpu' | 'tew_gpu',
  d: Drawn,
): Promise<void> {
  const masked = await d.masked
  const { n, k } = masked.layer
  const { m, low } = d
  const X = Float32Array.from(numbers(k * m, d.seed + 1))
  const args = schedule === 'tew_cpu' ? [d.g, d.cols] : [d.g, d.s, d.cols, d.high, d.wide]
  const Y = expected(masked.layer, X, m, low)
  const found = await outputsOn(
    device,
    program,
    [kernel, schedule, ...args],
    [
      { inputs: maskedInputs(masked, X, m, low), finite: true },
      { inputs: maskedInputs(masked, unread(masked.layer, X, m), m, low), finite: false },
    ],
  )
  expect(found).toEqual([Y, Y])
  expect(Y.length).toBe(n * m)
}

describe.each(['pruned_linear', 'pruned_linear_f16'])('%s equals a plain loop', (kernel) => {
  test.each(['tew_cpu', 'tew_gpu'] as const)('on the cpu, %s', async (schedule) => {
    await fc.assert(
      fc.asyncProperty(drawn, (d) => agrees(present[0]!, kernel, schedule, d)),
      { numRuns: runs(13) },
    )
  })

  test('on webgpu', async () => {
    await fc.assert(
      fc.asyncProperty(drawn, (d) => agrees(present[1]!, kernel, 'tew_gpu', d)),
      { numRuns: runs(2) },
    )
  })
})

test('on tensor cores, interpreted after each step', async () => {
  const [n, k, m] = [70, 83, 24]
  const weights = numbers(n * k, 1)
  const { tiles, mask } = await byPruner(n, k, 64, 0.6, 0.05, weights)
  const layer = { n, k, weights, mask, bias: numbers(n, 3) }
  const X = Float32Array.from(numbers(k * m, 2))
  const scheduled = program.kernel('pruned_linear_f16').schedule('tew_wgmma', 64, 64, 3, 8, 1, 2, 2, 2)
  const Y = interpreted(scheduled, maskedInputs({ layer, tiles }, X, m, 0)).get('Y')!
  expect(Array.from(Y, (y) => Number(y) + 0)).toEqual(expected(layer, X, m, 0))
})

test('generated CUDA compiles', ({ skip }) => {
  if (noNvcc) skip('nvcc is not installed')
  const f16 = program.kernel('pruned_linear_f16')
  const texts = [
    f16.schedule('tew_wgmma'),
    f16.schedule('tew_gpu'),
    program.kernel('pruned_linear').schedule('tew_gpu'),
  ]
  expect(compileTogether(texts.flatMap((k) => k.emit('cuda').map((t) => t.text)))).toBe('')
})
