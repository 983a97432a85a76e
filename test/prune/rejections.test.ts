/** What is refused, with the layer and the place that it is about. */
import { describe, expect, test } from 'vitest'
import { type Diagnostic, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import {
  blockWise,
  elementWise,
  extractTiles,
  isTileWise,
  type Layers,
  layersFromValues,
  type Mask,
  nOfM,
  prune,
  pruneInStages,
  renderMasks,
  tileElementWise,
  tileVectorWise,
  tileWise,
  unionMasks,
  vectorNOfM,
} from '../../src/prune.ts'
import { refusal } from '../support/refusal.ts'

const values = (rows: number, cols: number): Float32Array =>
  Float32Array.from({ length: rows * cols }, (_, i) => i + 1)
const layer = (name: string, rows = 2, cols = 3) => ({ name, rows, cols, weights: values(rows, cols) })
const two = layersFromValues([layer('first.weight'), layer('second.weight', 4, 4)])
const ew = { pattern: elementWise(), sparsity: 0.5 }

async function refused(work: Promise<unknown>): Promise<Diagnostic> {
  try {
    await work
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics[0]!
    throw e
  }
  throw new Error('nothing was refused')
}
const codeOf = async (layers: Layers, options: object): Promise<string> =>
  (await refused(prune(layers, options as never))).code

describe('options', () => {
  test.each(['mean', 'toString', null, 2])('an unknown norm: %s', async (normalise) => {
    const d = await refused(prune(two, { ...ew, normalise } as never))
    expect([d.code, d.expected]).toEqual(['api/argument', 'root or length'])
  })

  test.each([-0.1, 1, 1.5, Number.NaN, '0.5', undefined])('a sparsity of %s', async (sparsity) => {
    expect(await codeOf(two, { ...ew, sparsity })).toBe('prune/sparsity')
  })
  test.each([0, -0, 0.999999])('but not of %s', async (sparsity) => {
    expect((await prune(two, { ...ew, sparsity })).report.target).toBe(sparsity)
  })
  test('a sparsity that the pattern cannot reach', async () => {
    expect(await codeOf(two, { pattern: tileVectorWise({ granularity: 2 }), sparsity: 0.4 })).toBe(
      'prune/sparsity',
    )
    expect(await codeOf(two, { pattern: nOfM({ n: 2, m: 4 }), sparsity: 0.6 })).toBe('prune/sparsity')
    expect(await codeOf(two, { pattern: vectorNOfM({ v: 2, n: 2, m: 8 }), sparsity: 0.5 })).toBe(
      'prune/sparsity',
    )
    expect((await prune(two, { pattern: nOfM({ n: 1, m: 3 }), sparsity: 0.666666666667 })).report.kept).toBe(
      10,
    )
    expect(
      await codeOf(two, { pattern: tileElementWise({ granularity: 2, delta: 0.5 }), sparsity: 0.5 }),
    ).toBe('prune/delta')
  })
  test.each([
    () => tileWise({ granularity: 0 }),
    () => tileWise({ granularity: 65537 }),
    () => tileVectorWise({ granularity: 1.5 }),
    () => tileVectorWise({ granularity: 1 }),
    () => tileElementWise({ granularity: Number.NaN, delta: 0 }),
    () => tileWise({ granularity: '8' as never }),
    () => blockWise({ rows: 0, cols: 1 }),
    () => nOfM({ n: 5, m: 4 }),
    () => nOfM({ n: 0, m: 4 }),
    () => vectorNOfM({ v: 1, n: 2, m: 3 }),
    () => vectorNOfM({ v: 1, n: 5, m: 8 }),
    () => extractTiles(new Uint8Array(4), 2, 2, 0),
  ])('parameters: %s', (make) => {
    expect(refusal(make).code).toBe('prune/parameter')
  })
  test.each([-0.01, 1, Number.NaN])('a delta of %s', (delta) => {
    expect(refusal(() => tileElementWise({ granularity: 2, delta })).code).toBe('prune/delta')
  })
  test('unknown layer names, with suggestions', async () => {
    const d = await refused(prune(two, { ...ew, exclude: ['first.weigt'] }))
    expect(d).toMatchObject({
      code: 'prune/unknown-layer',
      lookup: { candidates: ['first.weight', 'second.weight'] },
    })
    expect(await codeOf(two, { ...ew, limits: { 'third.*': 0.5 } })).toBe('prune/unknown-layer')
    expect(await codeOf(two, { ...ew, exclude: ['weight'] })).toBe('prune/unknown-layer')
    expect(await codeOf(two, { ...ew, exclude: ['*t?.weight'] })).toBe('prune/unknown-layer')
  })
  test('names with stars', async () => {
    const { report } = await prune(two, {
      ...ew,
      exclude: ['f*.w*t*'],
      limits: { '*?weight': 0.25, '*': 0.9 },
    })
    expect(report.layers.map((l) => [l.excluded, l.kept])).toEqual([
      [true, 6],
      [false, 12],
    ])
  })
  test.each([-1, 1.1, Number.NaN])('a limit of %s', async (limit) => {
    expect(await codeOf(two, { ...ew, limits: { '*': limit } })).toBe('prune/limit')
  })
  test('a limit below the sparsity that the pattern gives every layer', async () => {
    expect(await codeOf(two, { pattern: nOfM({ n: 2, m: 4 }), limits: { '*': 0.4 } })).toBe('prune/limit')
  })
  test('others', async () => {
    expect(await codeOf(two, { ...ew, limit: {} })).toBe('api/unknown-option')
    for (const wrong of [{ pattern: 'tw' }, { exclude: 'first' }, { limits: [] }, { previousMasks: 1 }])
      expect(await codeOf(two, { ...ew, ...wrong })).toBe('api/argument')
    expect(refusal(() => tileWise({ granularity: 2, delta: 1 } as never)).code).toBe('api/unknown-option')
  })
})

describe('layers', () => {
  test('none', async () => {
    expect(await codeOf(layersFromValues([]), ew)).toBe('prune/layers')
    expect(await codeOf(two, { ...ew, exclude: ['*'] })).toBe('prune/layers')
  })
  test.each([{ rows: 0 }, { cols: 1.5 }, { rows: 2 ** 20, cols: 2 ** 20 }, { valueBytes: 0 }])(
    'of %s',
    async (wrong) => {
      expect(await codeOf({ ...two, shapes: [{ ...two.shapes[0]!, ...wrong }] }, ew)).toBe('prune/layer')
    },
  )
  test('two layers of one name', async () => {
    expect(await codeOf(layersFromValues([layer('a'), layer('a')]), ew)).toBe('prune/layer')
  })
  test('values of other shapes', async () => {
    const weights = new Float32Array(5)
    expect(await codeOf({ ...two, weights: async () => weights }, ew)).toBe('prune/shape')
    expect(await codeOf({ ...two, gradients: async () => weights }, ew)).toBe('prune/shape')
    expect(await codeOf({ ...two, weights: async () => [1, 2] as never }, ew)).toBe('prune/shape')
    expect(await codeOf(two, { ...ew, previousMasks: [new Uint8Array(6)] })).toBe('prune/shape')
    expect(await codeOf(two, { ...ew, previousMasks: [new Uint8Array(6), new Uint8Array(6)] })).toBe(
      'prune/shape',
    )
    expect(
      await codeOf(two, { ...ew, previousMasks: [new Uint8Array(6), new Uint8Array(16).fill(255)] }),
    ).toBe('prune/mask')
    expect(
      refusal(() => layersFromValues([{ ...layer('a'), gradients: values(2, 3) }, layer('b')])).code,
    ).toBe('prune/shape')
  })
  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    '%s among values',
    async (value) => {
      const wrong = values(4, 4)
      wrong[9] = value
      const given = (what: 'weights' | 'gradients', first: Float32Array): Layers => ({
        ...two,
        [what]: async (k: number) => (k === 1 ? wrong : first),
      })
      for (const what of ['weights', 'gradients'] as const) {
        const d = await refused(prune(given(what, values(2, 3)), ew))
        expect(d).toMatchObject({
          code: 'prune/not-finite',
          message: `${what} of layer second.weight: ${value} in row 2, column 1`,
        })
        expect((await prune(given(what, values(2, 3)), { ...ew, exclude: ['second*'] })).report.kept).toBe(3)
      }
    },
  )
})

describe('stages', () => {
  const pattern = elementWise()
  test.each([[[]], [[0.5, 0.5]], [[0.5, 0.25]], [[0.25, Number.NaN]]])('%j', async (stages) => {
    expect((await refused(pruneInStages(two, { pattern, stages }))).code).toMatch('prune/s')
  })
  test('an invalid stage', async () => {
    expect((await refused(pruneInStages(two, { pattern, stages: [0.5, 1] }))).code).toBe('prune/sparsity')
    expect((await refused(pruneInStages(two, { pattern, stages: [0.5], sparsity: 0.5 } as never))).code).toBe(
      'api/unknown-option',
    )
  })
  test.each([
    [{ sparsity: 0.5, limits: { '*': 1.5 } }, 'prune/limit'],
    [{ sparsity: 0.5, limits: { 'third.*': 0.5 } }, 'prune/unknown-layer'],
    [{ sparsity: 0.5, limits: 0.5 }, 'api/argument'],
    [{ sparsity: 0.5, limit: {} }, 'api/unknown-option'],
    [{ limits: {} }, 'prune/stages'],
    [{ sparsity: 1 }, 'prune/sparsity'],
  ])('errors of a later stage are reported before the first: %j', async (stage, code) => {
    let done = 0
    const between = async (): Promise<void> => void done++
    const work = pruneInStages(two, { pattern, stages: [0.25, stage as never], between })
    expect([(await refused(work)).code, done]).toEqual([code, 0])
  })
  test.each([
    [{ pattern: 'tw' }, 'api/argument'],
    [{ pattern, limits: 'x' }, 'api/argument'],
  ])('%j', async (wrong, code) => {
    expect((await refused(pruneInStages(two, { stages: [0.5], ...wrong } as never))).code).toBe(code)
  })
  test.each([
    ['fewer', layersFromValues([layer('first.weight')])],
    ['more', layersFromValues([layer('first.weight'), layer('second.weight', 4, 4), layer('c')])],
    ['of other names', layersFromValues([layer('first.weight'), layer('third.weight', 4, 4)])],
    ['of other shapes', layersFromValues([layer('first.weight'), layer('second.weight', 2, 8)])],
  ])('other layers between them: %s', async (_, other) => {
    const between = async () => other
    expect((await refused(pruneInStages(two, { pattern, stages: [0.2, 0.5], between }))).code).toBe(
      'prune/stages',
    )
  })
})

test('a mask that is not tile-wise, with the place', () => {
  const mask = Uint8Array.from([1, 0, 1, 0, 0, 0, 1, 0, 1, 1, 1, 0, 1, 0, 0])
  const d = refusal(() => extractTiles(mask, 5, 3, 2))
  expect(d.code).toBe('prune/not-tile-wise')
  expect(d.message).toContain('tile 1 of 2 outputs')
  expect(d.message).toContain('row 4, column 1')
  expect(extractTiles(mask.subarray(0, 9), 3, 3, 2)).toEqual([
    { outputs: Int32Array.of(0, 2), inputs: Int32Array.of(0, 2) },
  ])
})

describe('calls that TypeScript does not check', () => {
  const shapes = two.shapes
  const masks = [new Uint8Array(6).fill(1), new Uint8Array(16)]
  const own = (kept: readonly Mask[], more: object = {}) => ({
    name: 'own',
    text: 'own',
    masks: async () => ({ kept, ...more }),
    bytes: () => 0,
  })
  test.each([
    ['renderMasks()', () => renderMasks(undefined as never), 'api/argument'],
    ['no shapes', () => renderMasks({ masks } as never), 'api/argument'],
    ['a title', () => renderMasks({ shapes, masks }, 5 as never), 'api/argument'],
    ['no masks', () => renderMasks({ shapes, masks: [] }), 'prune/shape'],
    ['a short mask', () => renderMasks({ shapes, masks: [masks[0]!, masks[0]!] }), 'prune/shape'],
    ['a short rest', () => renderMasks({ shapes, masks, rest: [masks[0]!] }), 'prune/shape'],
    [
      'a mask of 255',
      () => renderMasks({ shapes, masks: [masks[0]!.map(() => 255), masks[1]!] }),
      'prune/mask',
    ],
    ['unionMasks()', () => unionMasks(undefined as never), 'api/argument'],
    ['masks that are none', () => unionMasks({ masks: [[1, 0]] } as never), 'api/argument'],
    ['less rest', () => unionMasks({ masks, rest: [] }), 'prune/shape'],
    ['more rest', () => unionMasks({ masks: [masks[0]!], rest: masks }), 'prune/shape'],
    ['another length', () => unionMasks({ masks, rest: [masks[0]!, masks[0]!] }), 'prune/shape'],
    ['layersFromValues()', () => layersFromValues(undefined as never), 'api/argument'],
    ['layers that are none', () => layersFromValues([null as never]), 'api/argument'],
    ['tiles of 2', () => extractTiles(Uint8Array.of(2, 0), 1, 2, 1), 'prune/mask'],
    ['whether of no granularity', () => isTileWise(masks[0]!, 2, 3, 0), 'prune/parameter'],
    ['whether of another shape', () => isTileWise(masks[0]!, 2, 4, 1), 'prune/shape'],
    [
      'whether of no mask',
      () =>
        isTileWise(
          masks[0]!.map(() => 3),
          2,
          3,
          1,
        ),
      'prune/mask',
    ],
  ])('%s', (_, call, code) => {
    expect(refusal(call).code).toBe(code)
  })
  const wrongMasks: readonly (readonly [string, object, string])[] = [
    ['onProgress', { pattern: elementWise(), onProgress: 5 }, 'api/argument'],
    ['a pattern without bytes', { pattern: { ...elementWise(), bytes: undefined } }, 'api/argument'],
    ['nothing', { pattern: { ...own([]), masks: async () => undefined } }, 'api/argument'],
    ['no list', { pattern: own(undefined as never) }, 'api/argument'],
    ['no masks', { pattern: own([]) }, 'prune/shape'],
    ['a short mask', { pattern: own([masks[0]!, masks[0]!]) }, 'prune/shape'],
    ['bytes of 255', { pattern: own([masks[0]!, masks[1]!.map(() => 255)]) }, 'prune/mask'],
    ['a short rest', { pattern: own(masks, { rest: [masks[0]!] }) }, 'prune/shape'],
    ['what is kept in rest too', { pattern: own(masks, { rest: masks }) }, 'prune/mask'],
    ['tiles of one layer', { pattern: own(masks, { tiles: [[]] }) }, 'api/argument'],
    ['more than a limit', { pattern: own(masks), limits: { '*': 0.9 } }, 'prune/limit'],
  ]
  test.each(wrongMasks)('prune: %s', async (_, options, code) => {
    expect(await codeOf(two, { sparsity: 0.5, ...options })).toBe(code)
  })
  test('pruneInStages: the callback', async () => {
    const options = { pattern: elementWise(), stages: [0.25, 0.5] }
    for (const wrong of [{ between: 5 }, { onProgress: 'x' }])
      expect((await refused(pruneInStages(two, { ...options, ...wrong } as never))).code).toBe('api/argument')
  })
  test('invalid layers', async () => {
    expect(await codeOf({ ...two, shapes: [null as never] }, ew)).toBe('api/argument')
  })
  test('a last tile of one output keeps two inputs, whatever the limit', async () => {
    const pattern = tileVectorWise({ granularity: 2 })
    const limits = { a: 0.5 }
    expect(await codeOf(layersFromValues([layer('a', 3, 26)]), { pattern, sparsity: 0.5, limits })).toBe(
      'prune/limit',
    )
    // Where an output is pruned, it comes back.
    const { report, tiles } = await prune(layersFromValues([layer('a', 4, 26)]), {
      pattern,
      sparsity: 0.75,
      limits: { a: 0.75 },
    })
    expect(report.layers[0]!.sparsity).toBeLessThanOrEqual(0.75)
    for (const t of tiles![0]!) expect(t.outputs).toHaveLength(2)
  })
})
