/** Tiles of whose inputs each output keeps two of every four, against a plain loop and the reference. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Device, devices, load, type SptProgram } from '../../src/node.ts'
import { layersFromValues, prune, tileVectorWise } from '../../src/prune.ts'
import { runs } from '../support/cases.ts'
import { interpreted } from '../support/interpreted.ts'
import { compileTogether, noNvcc } from '../support/nvcc.ts'
import { refusal } from '../support/refusal.ts'
import {
  DRAWN,
  expected,
  inputsOf,
  KINDS,
  kept,
  keptWeights,
  type Layer,
  numbers,
  outputsOn,
  weightsIn,
} from './pruned-layers.ts'

const FILE = 'kernels/tile-vector-wise.spt'

interface Drawn {
  readonly layer: Layer
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

/** Of each four inputs of a tile outputs keep two at most, and each is kept by one of the first two outputs, if there are two. */
function maskOf(
  n: number,
  k: number,
  g: number,
  outputs: readonly boolean[],
  inputs: readonly number[],
  any: number,
) {
  const whole = Array.from({ length: n }, (_, j) => j).filter((j) => outputs[j])
  const mask = new Uint8Array(n * k)
  for (let t = 0; t * g < whole.length; t++) {
    const tile = whole.slice(t * g, t * g + g)
    const all = Array.from({ length: k }, (_, p) => p).filter((p) => (inputs[t]! >> (p % 16)) & 1)
    // One output alone has no more than two of each four: these are all that there are.
    const list = tile.length === 1 ? all.slice(0, 2) : all
    for (const [r, j] of tile.entries()) {
      for (const [at, p] of list.entries()) {
        const chance =
          r < 2 ? (at % 4) >> 1 === r % 2 || tile.length === 1 : ((any >> ((at + r) % 13)) & 1) === 1
        const before = list.slice(at - (at % 4), at).filter((q) => mask[j * k + q] === 1).length
        if (chance && before < 2) mask[j * k + p] = 1
      }
      // No output of a tile that has inputs is pruned.
      if (list.length > 0 && !mask.subarray(j * k, (j + 1) * k).includes(1)) mask[j * k + list[0]!] = 1
    }
  }
  return mask
}

const drawn: fc.Arbitrary<Drawn> = fc
  .record({
    ...DRAWN,
    any: fc.nat(0x1fff),
    low: fc.constantFrom(0, -2, Number.NEGATIVE_INFINITY),
    s: fc.constantFrom(4, 8, 16),
  })
  .map(({ n, k, kind, outputs, inputs, any, ...d }) => {
    const mask = maskOf(n, k, d.g, outputs, inputs, any)
    return { ...d, layer: { n, k, weights: KINDS[kind](n * k, d.seed), mask, bias: numbers(n, d.seed + 2) } }
  })

let program: SptProgram
const present: Device[] = []
beforeAll(async () => {
  program = await load(FILE)
  present.push(await devices.cpu(), await devices.webgpu())
})
afterAll(async () => {
  for (const d of present) await d.dispose()
})

test('exactly the kept weights are stored, with two values and four bits per output and four inputs', () => {
  fc.assert(
    fc.property(drawn, ({ g, s, layer }) => {
      const made = program.format('tile_vector_wise', g, s).convert(kept(layer))
      const back = made.toCoords()
      expect(weightsIn(back, layer)).toEqual(keptWeights(layer))
      const { values, arrays } = made.parts[0]!.tensor
      const lists = arrays.go!.indptr!.at(-1)!
      expect(values!.length).toBe((lists * g * s) / 2)
      expect(arrays.q!.indices!.length).toBe(Math.ceil((lists * g * s) / 32))
    }),
    { numRuns: runs(30) },
  )
})

async function agrees(device: Device, schedule: 'tvw_cpu' | 'tvw_gpu', d: Drawn): Promise<void> {
  const { layer, m, low } = d
  const { k } = layer
  const X = Float32Array.from(numbers(k * m, d.seed + 1))
  const args = schedule === 'tvw_cpu' ? [d.g, d.s, d.cols] : [d.g, d.s, d.cols, d.high, d.wide]
  const all = [{ inputs: inputsOf(layer, X, m, low), finite: true }]
  const found = await outputsOn(device, program, ['pruned_linear_f16', schedule, ...args], all)
  expect(found).toEqual([expected(layer, X, m, low)])
}

test.each(['tvw_cpu', 'tvw_gpu'] as const)('%s equals a plain loop, on the cpu', async (schedule) => {
  await fc.assert(
    fc.asyncProperty(drawn, (d) => agrees(present[0]!, schedule, d)),
    { numRuns: runs(13) },
  )
})

test('on webgpu', async () => {
  await fc.assert(
    fc.asyncProperty(drawn, (d) => agrees(present[1]!, 'tvw_gpu', d)),
    { numRuns: runs(2) },
  )
})

/** Weights with which two of four would leave many inputs without any: few values, and last tiles of few outputs. */
const pruned = fc
  .record({
    ...DRAWN,
    sparsity: fc.constantFrom(0.5, 0.6, 0.75, 0.9),
    s: fc.constantFrom(4, 8, 16),
    low: fc.constantFrom(0, Number.NEGATIVE_INFINITY),
  })
  .map(({ n: rows, k: cols, kind, sparsity, ...d }) => {
    const [n, k] = [rows + 1, cols + 1]
    const weights = KINDS[kind](n * k, d.seed)
    const list = layersFromValues([{ name: 'w', rows: n, cols: k, weights: Float32Array.from(weights) }])
    const layer = prune(list, { pattern: tileVectorWise({ granularity: d.g }), sparsity }).then(
      ({ masks }): Layer => ({ n, k, weights, mask: masks[0]!, bias: numbers(n, d.seed + 2) }),
    )
    return { ...d, layer }
  })

test('masks of the pruner: exactly the kept weights are stored, and the product agrees', async () => {
  await fc.assert(
    fc.asyncProperty(pruned, async ({ layer: given, ...d }) => {
      const layer = await given
      const back = program.format('tile_vector_wise', d.g, d.s).convert(kept(layer)).toCoords()
      expect(weightsIn(back, layer)).toEqual(keptWeights(layer))
      await agrees(present[0]!, 'tvw_gpu', { ...d, layer })
    }),
    { numRuns: runs(20) },
  )
})

test('masks of the pruner on sparse tensor cores: interpreted after each step, generated CUDA compiles', async () => {
  const [n, k, m] = [64, 83, 64]
  // Ties: the same inputs of all outputs of a tile would be dropped.
  const weights = Int32Array.from({ length: n * k }, (_, e) => ((e * 37) % 3) - 1)
  const list = layersFromValues([{ name: 'w', rows: n, cols: k, weights: Float32Array.from(weights) }])
  const made = await prune(list, { pattern: tileVectorWise({ granularity: 32 }), sparsity: 0.5 })
  const layer = { n, k, weights, mask: made.masks[0]!, bias: numbers(n, 3) }
  const X = Float32Array.from(numbers(k * m, 2))
  const scheduled = program.kernel('pruned_linear_f16').schedule('tvw_mma', 32, 64, 64, 32, 32, 3)
  const Y = interpreted(scheduled, inputsOf(layer, X, m, 0)).get('Y')!
  expect(Array.from(Y, (y) => Number(y) + 0)).toEqual(expected(layer, X, m, 0))
  if (!noNvcc)
    expect(
      compileTogether(
        [scheduled, program.kernel('pruned_linear_f16').schedule('tvw_mma')].flatMap((x) =>
          x.emit('cuda').map((t) => t.text),
        ),
      ),
    ).toBe('')
})

test('3 of 4 elements are rejected, and lists not divisible by four', () => {
  const mask = Uint8Array.of(1, 1, 1, 0, 1, 0, 0, 1)
  const layer = { n: 2, k: 4, weights: numbers(8, 1), mask, bias: numbers(2, 2) }
  expect(refusal(() => program.format('tile_vector_wise', 2, 4).convert(kept(layer))).code).toBe('bind/width')
  const cut = refusal(
    () => void program.kernel('pruned_linear_f16').schedule('tvw_gpu', 4, 6, 4, 1, 1).compilation.loops,
  )
  expect(cut.code).toBe('schedule/not-bounded')
})
