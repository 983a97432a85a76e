/** Options of what searches, and points: what is none of them is refused before anything is begun, with what was expected. */

import { describe, expect, test } from 'vitest'
import { generateMatrix } from '../../bench/families.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { render } from '../../src/ast/diagnostics/render.ts'
import { coords, devices, load, SptError } from '../../src/node.ts'
import { search } from '../../src/search/loop/search.ts'
import { costPrior, predictor } from '../../src/search/ranking/cost-model.ts'
import { space } from '../../src/search/spaces/function-space.ts'
import { points } from '../../src/search/spaces/points.ts'
import { sketches } from '../../src/search/spaces/sketches.ts'
import { tuneAll } from '../../src/search/tune/cases/tune-all.ts'
import { tune } from '../../src/search/tune/index.ts'
import { PRODUCT } from '../support/product.ts'

const program = await load(`import "sparsetile/kernels/formats.spt"
${PRODUCT}schedule product.tiles(cols = 4) { split f by cols -> (fo, fi) }
schedule product.some(most = 8) choose by search {
  cols in 2, 4, 8 where (cols <= most and cols <= d)
  use tiles(cols)
  either { unroll fi } or { }
}
`)
const kernel = program.kernel('product')
const device = await devices.cpu()
const A = coords(
  [3, 4],
  [
    [0, 2],
    [1, 3],
  ],
)
const inputs = { tensors: { A }, params: { d: 4 }, seed: 1 }

async function refused(work: () => unknown): Promise<SptError> {
  try {
    await work()
  } catch (e) {
    if (e instanceof SptError) return e
    throw e
  }
  throw new Error('nothing was refused')
}
const codeOf = async (work: () => unknown): Promise<string> => (await refused(work)).diagnostics[0]!.code

// biome-ignore lint/suspicious/noExplicitAny: what no compiler has looked at
const loose = <T>(x: T): any => x
const noQueue = { file: 3, program: {} }

describe.each([
  ['tune', (more: object) => loose(tune)(kernel, { inputs, device, trials: 1, ...more })],
  [
    'tuneAll',
    (more: object) => loose(tuneAll)(kernel, { cases: [{ name: 'a', inputs }], device, trials: 1, ...more }),
  ],
])('%s', (_, call) => {
  test.each<readonly [object, string]>([
    [{ strategy: 'evolutonary' }, 'search/strategy'],
    [{ strategy: 3 }, 'api/argument'],
    [{ seed: Number.NaN }, 'api/argument'],
    [{ seed: '1' }, 'api/argument'],
    [{ trials: 0 }, 'search/budget'],
    [{ trials: Number.NaN }, 'search/budget'],
    [{ seconds: -1 }, 'search/budget'],
    [{ seconds: '60' }, 'search/budget'],
    [{ patience: 1.5 }, 'search/budget'],
    [{ batch: 0 }, 'search/budget'],
    [{ timeout: -1 }, 'api/argument'],
    [{ prior: [1] }, 'api/argument'],
    [{ records: 'study.db' }, 'api/argument'],
    [{ resume: 'yes' }, 'api/argument'],
    [{ signal: new AbortController() }, 'api/argument'],
    [{ onProgress: 'log' }, 'api/argument'],
    [{ reopen: device }, 'api/argument'],
    [{ space: 'some' }, 'api/argument'],
    [{ queue: 'queue.db' }, 'api/argument'],
    [{ queue: noQueue }, 'api/argument'],
    [{ device: 'cpu' }, 'api/argument'],
    [{ trails: 3 }, 'api/unknown-option'],
  ])('%j', async (more, code) => {
    // Nothing may be begun: the data are looked at first.
    const touched = {
      get tensors() {
        throw new Error('it has begun')
      },
    }
    const lazy = _ === 'tune' ? { inputs: touched } : { cases: [{ name: 'a', inputs: () => touched }] }
    expect(await codeOf(() => call({ ...lazy, ...more }))).toBe(code)
  })
})

test.each([[{ explain: 'yes' }], [{ libraries: 1 }], [{ inputs: null }]])('tune %j', async (more) => {
  expect(await codeOf(() => loose(tune)(kernel, { inputs, device, trials: 1, ...more }))).toBe('api/argument')
})

test.each([
  [{ shared: 0 }],
  [{ gain: Number.NaN }],
  [{ leaves: 'all' }],
  [{ cases: [{ name: 'a', inputs: null }] }],
  [{ cases: [{ name: 'a', inputs, group: 3 }] }],
])('tuneAll %j', async (more) => {
  const all = { cases: [{ name: 'a', inputs }], device, trials: 1, ...more }
  expect(await codeOf(() => loose(tuneAll)(kernel, all))).toBe('api/argument')
})

test('tuneAll rejects unknown options of a case', async () => {
  const all = { cases: [{ name: 'a', inputs, file: 'a.mtx' }], device, trials: 1 }
  expect(await codeOf(() => loose(tuneAll)(kernel, all))).toBe('api/unknown-option')
})

test.each<readonly [unknown, string]>([
  [null, 'api/argument'],
  [{}, 'api/argument'],
  [{ device }, 'api/argument'],
  [{ device: 'cpu', size: { d: 4 } }, 'api/unknown-option'],
  [{ device: 'cpu', sizes: 4 }, 'api/argument'],
  [{ device: 'cpu', sizes: { q: 4 } }, 'bind/unknown-name'],
  [{ device: 'cpu', sizes: { d: '4' } }, 'api/argument'],
  [{ device: 'cpu', sizes: { d: -1 } }, 'api/argument'],
  [{ device: 'cpu', sizes: { d: Number.NaN } }, 'api/argument'],
  [{ device: 'cpu', formats: 'bsr(4)' }, 'api/argument'],
  [{ device: 'cpu', formats: { A: 'bsr(4)' } }, 'api/argument'],
  [{ device: 'cpu', formats: { A: [4] } }, 'api/argument'],
  [{ device: 'cpu', formats: { A: [] } }, 'api/argument'],
  [{ device: 'cpu', formats: { A: ['', ''] } }, 'api/argument'],
  [{ device: 'cpu', formats: { A: ['brs(4)'] } }, 'check/unknown-format'],
  [{ device: 'cpu', formats: { A: ['bsr(4'] } }, 'parse/unclosed'],
])('sketches %j', async (options, code) => {
  expect(await codeOf(() => loose(sketches)(kernel, options))).toBe(code)
})

test('sizes of automatic schedules are the sizes of the kernel', async () => {
  expect(await codeOf(() => kernel.autoSchedule('cpu', { q: 4 }))).toBe('bind/unknown-name')
  expect(await codeOf(() => sketches(loose(3), { device: 'cpu' }))).toBe('api/argument')
})

test.each<readonly [unknown, string]>([
  [{ device: 'cuda', inputs, modl: 1 }, 'api/unknown-option'],
  [{ device: 'gpu', inputs }, 'api/argument'],
  [{ device: 'cuda', inputs, model: 'h100' }, 'api/argument'],
  [{ device: 'cuda' }, 'api/argument'],
])('predictor %j', async (options, code) => {
  expect(await codeOf(() => loose(predictor)(kernel, options))).toBe(code)
})

test('the cost model reports a matrix with too many rows, and dispatch works without it', async () => {
  const wide = coords(
    [2 ** 26 + 1, 2 ** 26],
    [
      [0, 2 ** 26],
      [5, 7],
    ],
  )
  const given = { tensors: { A: wide }, params: { d: 4 } }
  expect(await codeOf(() => predictor(kernel, { device: 'cuda', inputs: given }))).toBe('search/too-large')
  const spmm = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm')
  const { selection } = await spmm.choose(
    'cuda',
    ...flatInputs({ ...given, statistics: {}, params: { d: 64 } }),
  )
  expect(selection.schedule).not.toBe('')
})

describe('a point with an unknown decision', () => {
  const own = space('own', kernel, (p) => {
    const cols = p.number('cols', [2, 4])
    return (k) => k.split('f', cols)
  })

  test.each(['a text', 'a function', 'sketches'])('is rejected by a space of %s', async (kind) => {
    const some = await kernel.space('some').bind(device, ...flatInputs(inputs))
    const drawn = sketches(kernel, { device: 'cpu', formats: {} })
    const of = { 'a text': some, 'a function': own, sketches: drawn }[kind]!
    const points = {
      'a text': { either: '{ unroll fi }', cols: 4 },
      'a function': { cols: 4 },
      sketches: drawn.defaultPoint,
    }
    const point = points[kind as keyof typeof points]
    expect(of.kernel(point).trace.length).toBeGreaterThan(0)
    const [d] = (await refused(() => of.kernel({ ...point, colums: 4 }))).diagnostics
    expect([d!.code, d!.message]).toEqual(['space/point', expect.stringContaining('colums')])
    for (const call of [() => of.kernel(loose(null)), () => of.next(loose(null))])
      expect(await codeOf(call)).toBe('api/argument')
  })
})

test('arguments of spaces and schedules are integers', async () => {
  for (const wrong of ['4', 1.5, Number.NaN, null])
    for (const call of [
      () => kernel.space('some', loose(wrong)),
      () => kernel.schedule('tiles', loose(wrong)),
    ])
      expect(await codeOf(call)).toBe('schedule/argument')
})

test('errors of spaces and dispatches have a source location', async () => {
  const error = await refused(() => kernel.space('some').bind(device, { A, d: 1 }))
  expect(render(error.diagnostics, error.sources ?? [])).toContain(
    'schedule product.some(most = 8) choose by search {',
  )
})

test('search rejects unknown options', async () => {
  const own = space('own', kernel, (p) => {
    const cols = p.number('cols', [2, 4])
    return (k) => k.split('f', cols)
  })
  const evaluate = async () => []
  const given = { space: own, strategy: 'random', evaluate, trials: 1 }
  for (const more of [{ onProgress: 1 }, { now: 0 }, { knownTrials: {} }])
    expect(await codeOf(() => loose(search)({ ...given, ...more }))).toBe('api/argument')
  expect(await codeOf(() => loose(costPrior)(own, null))).toBe('api/argument')
})

test('members of families fit in memory', async () => {
  for (const name of ['road:1e9', 'uniform:2000001'])
    expect(await codeOf(() => generateMatrix(name))).toBe('families/too-large')
  expect(generateMatrix('road:64')?.shape[0]).toBeGreaterThan(0)
})

test('a space gives loops to functions, and numbers to their sizes', async () => {
  const given = await load(`
${PRODUCT}
schedule halves(l: loop, by) { split l by by -> (outer, inner) }
schedule product.loops choose by search {
  by in 2, 4
  use halves(f, by)
}`)
  const space = await given
    .kernel('product')
    .space('loops')
    .bind('cpu', ...flatInputs(inputs))
  expect([...points(space)]).toEqual([{ by: 2 }, { by: 4 }])
})
