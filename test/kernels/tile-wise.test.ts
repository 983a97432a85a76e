/** Layers that are pruned in tiles: masks of the pruner and made by hand, against a plain loop and the reference. */

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, type Device, devices, load, type SptProgram } from '../../src/node.ts'
import { isTileWise, layersFromValues, prune, tileWise } from '../../src/prune.ts'
import { staleChoices } from '../../src/search/choice/table-text.ts'
import { runs, sample } from '../support/cases.ts'
import { interpreted } from '../support/interpreted.ts'
import { integers, type KernelCase, kernelSuite, matrix, patterns } from '../support/kernels.ts'
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

const FILE = 'kernels/tile-wise.spt'

kernelSuite({
  file: FILE,
  alsoWith: [
    ['pruned_linear_f16', 'wgmma', 128, 256, 2, 64, 8, 1],
    ['pruned_linear_f16', 'wgmma', 128, 160, 3, 32, 8, 1],
    ['pruned_linear_f16', 'wgmma', 64, 128, 4],
    ['pruned_linear_f16', 'mma', 128, 128, 64, 32, 3, 8, 1],
    ['pruned_linear_f16', 'mma', 64, 128, 32, 32, 4],
    ['pruned_linear_f16', 'dense', 128, 128, 4, 64, 8, 1, 8],
    ['pruned_linear_f16', 'dense', 160, 256, 4, 32],
    ['pruned_linear_f16', 'dense_persistent', 132, 256, 128, 3, 64, 8, 1, 8],
  ],
  // Any pattern: inputs that some of a tile keep are zeros in the others.
  cases: () =>
    patterns().map((p, c): KernelCase => {
      const m = [1, 33, 0, 7][c % 4]!
      return {
        name: `${p.name}, m = ${m}`,
        inputs: {
          tensors: {
            W: matrix(p, integers(p.rows.length, 2)),
            X: integers(p.n * m, 3),
            b: integers(p.m, 4),
          },
          params: { m, low: [0, -2, Number.NEGATIVE_INFINITY][c % 3]! },
        },
        exact: true,
      }
    }),
})

interface Drawn {
  /** Outputs of a tile. */
  readonly g: number
  readonly layer: Promise<Layer>
  readonly m: number
  readonly low: number
  readonly seed: number
  /** Of schedules: inputs of a list, columns of a block and of a thread, outputs of a thread. */
  readonly s: number
  readonly cols: number
  readonly high: number
  readonly wide: number
}

/** As the pruner does it, of layers of one kind of values. */
async function byPruner(n: number, k: number, g: number, sparsity: number, weights: Int32Array) {
  const list = layersFromValues([{ name: 'w', rows: n, cols: k, weights: Float32Array.from(weights) }])
  const { masks } = await prune(list, { pattern: tileWise({ granularity: g }), sparsity })
  return masks[0]!
}

const drawn: fc.Arbitrary<Drawn> = fc
  .record({
    ...DRAWN,
    g: fc.constantFrom(1, 2, 4, 8),
    sparsity: fc.constantFrom(0, 0.25, 0.5, 0.75, 0.9, 0.999),
    hand: fc.constantFrom('none', 'all', 'product', 'pruner', 'pruner'),
    low: fc.constantFrom(0, 0, -2, Number.NEGATIVE_INFINITY),
    s: fc.constantFrom(1, 2, 3, 4),
  })
  .map(({ n, k, kind, sparsity, outputs, inputs, hand, ...d }) => {
    const weights = KINDS[kind](n * k, d.seed)
    const masked = async (): Promise<Uint8Array> => {
      if (hand === 'pruner' && n * k > 0) return byPruner(n, k, d.g, sparsity, weights)
      if (hand === 'none' || hand === 'all') return new Uint8Array(n * k).fill(hand === 'all' ? 1 : 0)
      return byHand(n, k, d.g, outputs, inputs)
    }
    const layer = masked().then((mask) => ({ n, k, weights, mask, bias: numbers(n, d.seed + 2) }))
    return { ...d, high: Math.min(d.high, d.g), layer }
  })

/** The layer with its outputs in another order. */
function permuted({ n, k, weights, mask, bias }: Layer, order: readonly number[]): Layer {
  const rows = <T extends Int32Array | Uint8Array>(x: T, width: number, into: T): T => {
    for (const [to, j] of order.entries()) into.set(x.subarray(j * width, (j + 1) * width), to * width)
    return into
  }
  return {
    n,
    k,
    weights: rows(weights, k, new Int32Array(n * k)),
    mask: rows(mask, k, new Uint8Array(n * k)),
    bias: rows(bias, 1, new Int32Array(n)),
  }
}

/** Tiles in another order, and outputs inside of them. */
function reordered(mask: Uint8Array, n: number, k: number, g: number): number[] {
  const all = Array.from({ length: n }, (_, j) => j)
  const holds = (j: number): boolean => mask.subarray(j * k, (j + 1) * k).includes(1)
  const whole = all.filter(holds)
  const tiles = Array.from({ length: Math.ceil(whole.length / g) }, (_, t) => whole.slice(t * g, t * g + g))
  // The last stays the last, which may have fewer.
  const last = tiles.at(-1)?.length === g ? [] : tiles.splice(-1)
  return [...tiles.reverse(), ...last]
    .flatMap((t) => t.reverse())
    .concat(all.filter((j) => !holds(j)).reverse())
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

test('tiles store exactly the kept weights', async () => {
  await fc.assert(
    fc.asyncProperty(drawn, async ({ g, layer: given, s }) => {
      const layer = await given
      expect(isTileWise(layer.mask, layer.n, layer.k, g)).toBe(true)
      const back = program.format('tile_wise', g, s).convert(kept(layer)).toCoords()
      expect(weightsIn(back, layer)).toEqual(keptWeights(layer))
    }),
    { numRuns: runs(50) },
  )
})

test('the sparsest tiles come last, and only the last non-empty tile contains pruned outputs', async () => {
  await fc.assert(
    fc.asyncProperty(drawn, async ({ g, layer: given, s }) => {
      const layer = await given
      const [part] = program.format('tile_wise', g, s).convert(kept(layer)).parts
      const { indptr } = part!.tensor.arrays.go as { indptr: Int32Array }
      const lengths = Array.from({ length: indptr.length - 1 }, (_, t) => indptr[t + 1]! - indptr[t]!)
      expect(lengths).toEqual([...lengths].sort((a, b) => b - a))
      const outputs = Array.from({ length: layer.n }, (_, j) => j).filter((j) =>
        layer.mask.subarray(j * layer.k, (j + 1) * layer.k).includes(1),
      )
      expect(lengths.filter((l) => l > 0).length).toBe(Math.ceil(outputs.length / g))
    }),
    { numRuns: runs(20) },
  )
})

const KERNELS = ['pruned_linear', 'pruned_linear_f16'] as const

async function agrees(device: Device, kernel: string, schedule: 'cpu' | 'gpu', d: Drawn): Promise<void> {
  const layer = await d.layer
  const { n, k, mask } = layer
  const { m, low, g } = d
  const X = Float32Array.from(numbers(k * m, d.seed + 1))
  const Y = expected(layer, X, m, low)
  // A column of its own.
  const column = Float32Array.from(X, (x, at) => (at % m === d.seed % Math.max(m, 1) ? Number.NaN : x))
  const order = reordered(mask, n, k, g)
  const other = permuted(layer, order)
  const args = schedule === 'cpu' ? [g, d.cols] : [g, d.s, d.cols, d.high, d.wide]
  const [plain, hidden, columns, moved] = await outputsOn(
    device,
    program,
    [kernel, schedule, ...args],
    [
      { inputs: inputsOf(layer, X, m, low), finite: true },
      { inputs: inputsOf(layer, unread(layer, X, m), m, low), finite: false },
      { inputs: inputsOf(layer, column, m, low), finite: false },
      { inputs: inputsOf(other, X, m, low), finite: true },
    ],
  )
  expect(plain).toEqual(Y)
  expect(hidden).toEqual(Y)
  const others = (values: number[]): number[] => values.filter((_, at) => at % m !== d.seed % m)
  expect(others(columns!)).toEqual(others(Y))
  expect(moved).toEqual(order.flatMap((j) => Y.slice(j * m, (j + 1) * m)))
  for (let j = 0; j < n; j++)
    if (!mask.subarray(j * k, (j + 1) * k).includes(1))
      expect(plain!.slice(j * m, (j + 1) * m)).toEqual(
        new Array<number>(m).fill(Math.max(low, layer.bias[j]!)),
      )
}

describe.each(KERNELS)('%s equals a plain loop', (kernel) => {
  test.each(['cpu', 'gpu'] as const)('on the cpu, scheduled for %s', async (schedule) => {
    await fc.assert(
      fc.asyncProperty(drawn, (d) => agrees(present[0]!, kernel, schedule, d)),
      { numRuns: runs(13) },
    )
  })

  test('on webgpu', async () => {
    await fc.assert(
      fc.asyncProperty(drawn, (d) => agrees(present[1]!, kernel, 'gpu', d)),
      { numRuns: runs(3) },
    )
  })
})

/** Schedules for instructions that no device here has, of others in every run. */
test.each(
  sample(
    [
      ['wgmma', [64, 64, 3, 64, 8, 1], 70, 83, 24],
      ['wgmma', [64, 64, 2], 128, 70, 64],
      ['wgmma', [128, 64, 3, 64, 8, 1], 131, 60, 8],
      ['mma', [128, 64, 64, 32, 3, 8, 1], 131, 83, 24],
      ['mma', [64, 64, 32, 16, 2], 64, 70, 64],
      ['dense', [64, 64, 3, 64, 8, 1, 8], 70, 80, 24],
      ['dense', [64, 64, 2], 64, 128, 64],
      ['dense_persistent', [2, 64, 64, 3, 64, 8, 1, 8], 70, 80, 136],
    ] as const,
    4,
  ),
)('%s(%j), interpreted after each step', async (schedule, args, n, k, m) => {
  const g = schedule.startsWith('dense') ? 64 : args[0]
  const weights = numbers(n * k, 1)
  const mask = await byPruner(n, k, g, 0.6, weights)
  const layer = { n, k, weights, mask, bias: numbers(n, 3) }
  const X = Float32Array.from(numbers(k * m, 2))
  const Y = interpreted(
    program.kernel('pruned_linear_f16').schedule(schedule, ...args),
    inputsOf(layer, X, m, 0),
  ).get('Y')!
  expect(Array.from(Y, (y) => Number(y) + 0)).toEqual(expected(layer, X, m, 0))
})

test('at low sparsity `auto` selects the dense schedule', async () => {
  const auto = (await load(FILE)).kernel('pruned_linear_f16').schedule('auto')
  const taken = async (kept: number, n: number, k = 64, m = 128) => {
    const at = Array.from({ length: n * k }, (_, e) => [Math.floor(e / k), e % k] as const).filter(
      ([j]) => j < kept * n,
    )
    const W = coords([n, k], [at.map(([j]) => j), at.map(([, p]) => p)], null, 'f16')
    const given = {
      tensors: { W },
      params: { m, low: 0 },
      capability: 9.0,
      features: ['f16'],
      processors: 132,
    }
    const { selection } = await auto.choose('cuda', ...flatInputs(given))
    return [selection.text, selection.values['fill_ratio(W, tile_wise(128, 64))']]
  }
  expect(await taken(1, 256)).toEqual(['dense', 1])
  expect(await taken(1, 256, 64, 1280)).toEqual(['dense(160, 256, line = 32)', 1])
  expect(await taken(1, 256, 64, 43008)).toEqual(['dense_persistent(132)', 1])
  expect(await taken(0.5, 256)).toEqual(['wgmma', 0.5])
  expect(await taken(0.5, 256, 64, 1280)).toEqual(['wgmma', 0.5])
  expect(await taken(0.25, 512, 64, 1280)).toEqual(['wgmma(cols = 160, line = 32)', 0.25])
  const before = async (m: number, n: number, capability: number) => {
    const W = coords([n, 64], [[0], [0]], null, 'f16')
    const given = { tensors: { W }, params: { m, low: 0 }, capability, features: ['f16'] }
    return (await auto.choose('cuda', ...flatInputs(given))).selection.text
  }
  expect(await before(128, 128, 8.0)).toBe('mma')
  expect(await before(8, 100, 8.9)).toBe('mma(m_by = 8, n_by = 1)')
  expect(await before(8, 100, 7.5)).toBe('gpu')
  expect(await before(4, 128, 8.0)).toBe('mma(m_by = 2, n_by = 1)')
  expect(await before(5, 128, 8.0)).toBe('mma(m_by = 1, n_by = 1)')
  // Sizes that are no whole blocks: nobody looks at the weights.
  expect(await taken(1, 128, 32)).toEqual(['wgmma', undefined])
})

test('a kernel that extends a library kernel has its default schedule, and no stored choice is out of date', async () => {
  const program = await load(`import { pruned_linear_f16 } from "sparsetile/kernels/tile-wise.spt"
    kernel squared() extends pruned_linear_f16 { define epilogue(s) = s * s }`)
  const squared = program.kernel('squared')
  expect(staleChoices(squared)).toEqual([])
  const W = coords(
    [2, 3],
    [
      [0, 1, 1],
      [2, 0, 2],
    ],
    Uint16Array.of(0x3c00, 0x4000, 0x4200),
    'f16',
  )
  const fn = await squared.schedule('auto').build(present[0]!)
  const binding = await fn.bind({ W, m: 4, low: 0 }, { seed: 3 })
  expect(binding.selection!.text).toBe('cpu')
  expect((await binding.verify()).ok).toBe(true)
})
