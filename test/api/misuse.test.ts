/**
 * Calls as JavaScript can make them, wrong in one way each: always an `SptError`, never a `TypeError`.
 * `UPDATE_GOLDEN=1 npx vitest run test/api/misuse` writes what they say anew; read the difference.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import * as onDevice from '../../src/device.ts'
import * as browser from '../../src/index.ts'
import * as api from '../../src/node.ts'
import { refusal } from '../support/refusal.ts'
import { complaint, errorOf, TEXT } from './support.ts'

// biome-ignore lint/suspicious/noExplicitAny: calls that TypeScript would refuse are what is tested
type Loose = any
const loose: Loose = { ...api, ...onDevice }

interface Scene {
  readonly p: Loose
  readonly k: Loose
  /** Built, and bound. */
  readonly c: Loose
  readonly run: Loose
}
const A = api.coords(
  [3, 4],
  [
    [0, 0, 2],
    [0, 2, 1],
  ],
  [1, 2, 3],
)
const B = new Float32Array(8).fill(1)
const params = { d: 2 }
const bind = (B: unknown) => (s: Scene) => s.c.bind({ A, B, ...params })
const bindA = (A: unknown) => (s: Scene) => s.c.bind({ A, B, ...params })
/** A tensor that no function has looked at, with one value. */
const handmade = (rows: number[], cols: number[]) => ({
  kind: 'coords',
  shape: [3, 4],
  coords: [Int32Array.from(rows), Int32Array.from(cols)],
  values: Float32Array.of(1),
  dtype: 'f32',
})
const replay =
  (...steps: unknown[]) =>
  (s: Scene) =>
    s.k.replay(steps)

const CASES: Readonly<Record<string, (s: Scene) => unknown>> = {
  'load()': () => loose.load(),
  'load(42)': () => loose.load(42),
  "load('')": async () => (await api.load('')).kernel(),
  'load of an import without a path': () => api.load('import "./x.spt"'),
  "load('sparsetile/kernels/spmm')": () => api.load('sparsetile/kernels/spmm'),
  "load('kernels/')": () => api.load('kernels/'),
  "load('.')": () => api.load('.'),
  "load('/')": () => api.load('/'),
  "load('https://example.org/mul.spt')": () => api.load('https://example.org/mul.spt'),
  "load('file:///mul.spt')": () => api.load('file:///mul.spt'),
  'load of a text with a no-break space': () =>
    api.load('kernel k(m: size) {\n  axis\u00a0i = dense_fixed(m)\n}'),
  'load with a root that is a file': () => api.load(TEXT, { root: 'package.json' }),
  "load('nowhere.spt')": () => api.load('nowhere.spt', { read: () => Promise.reject(new Error('not here')) }),
  'load with a reader that reads nothing': () => loose.load('nowhere.spt', { read: () => 5 }),
  'load of an import that a reader refuses': () =>
    api.load('import "./x.spt"', {
      read: () => {
        throw new Error('no network')
      },
    }),
  'kernel(3)': ({ p }) => p.kernel(3),
  "kernel('__proto__')": ({ p }) => p.kernel('__proto__'),
  "schedule('gup')": ({ k }) => k.schedule('gup'),
  'schedule()': ({ k }) => k.schedule(),
  "schedule('gpu', 'x')": ({ k }) => k.schedule('gpu', 'x'),
  "schedule('gpu', 1.5)": ({ k }) => k.schedule('gpu', 1.5),
  "schedule('gpu', -1)": ({ k }) => k.schedule('gpu', -1),
  "schedule('gpu', 1, 2)": ({ k }) => k.schedule('gpu', 1, 2),
  "schedule('blocked')": ({ k }) => k.schedule('blocked'),
  "parameters('gup')": ({ k }) => k.parameters('gup'),
  'apply(5)': ({ k }) => k.apply(5),
  'apply([null])': ({ k }) => k.apply([null]),
  'apply of a step and of none': ({ k }) => k.apply([...k.steps('gpu', 8), {}]),
  'apply of an unknown step on loops': ({ k }) => k.apply([{ stage: 2, step: { kind: 'splt' } }]),
  'apply of an unknown step on coordinates': ({ k }) => k.apply([{ stage: 1, step: { kind: 'az' } }]),
  'as()': ({ k }) => k.as(),
  "as('A', 'bsrr', 2)": ({ k }) => k.as('A', 'bsrr', 2),
  "as('A', 'hyb', 1, 2)": ({ k }) => k.as('A', 'hyb', 1, 2),
  "as('A', 'hyb(1, 2) + csr')": ({ k }) => k.as('A', 'hyb(1, 2) + csr'),
  "as('A', {}, 2)": ({ k }) => k.as('A', {}, 2),
  "as('A', 'bsr')": ({ k }) => k.as('A', 'bsr'),
  "as('A', 'bsr', 'x')": ({ k }) => k.as('A', 'bsr', 'x'),
  "as('A', 'bsr', 2.5)": ({ k }) => k.as('A', 'bsr', 2.5),
  "as('A', 'bsr', 0)": ({ k }) => k.as('A', 'bsr', 0),
  "as('A', 'bsr', -2)": ({ k }) => k.as('A', 'bsr', -2),
  "as('A', 'bsr', Infinity)": ({ k }) => k.as('A', 'bsr', Number.POSITIVE_INFINITY),
  "as('Z', 'bsr', 2)": ({ k }) => k.as('Z', 'bsr', 2),
  'reorder()': ({ k }) => k.reorder(),
  "reorder('i', 'zz')": ({ k }) => k.reorder('i', 'zz'),
  'reorder(1, 2)': ({ k }) => k.reorder(1, 2),
  'fuse()': ({ k }) => k.fuse(),
  "fuse('i', 'j')": ({ k }) => k.fuse('i', 'j'),
  "fuse(['i'])": ({ k }) => k.fuse(['i']),
  'fuse([null, null])': ({ k }) => k.fuse([null, null]),
  "fuse(['i', 'j'], 'two words')": ({ k }) => k.fuse(['i', 'j'], 'two words'),
  'attach(1, 2)': ({ k }) => k.attach(1, 2),
  'split()': ({ k }) => k.split(),
  "split('i')": ({ k }) => k.split('i'),
  "split('i', 0)": ({ k }) => k.split('i', 0),
  "split('i', 2, ['x'])": ({ k }) => k.split('i', 2, ['x']),
  "split('i', 2, ['x', 'y'], 3)": ({ k }) => k.split('i', 2, ['x', 'y'], 3),
  "vectorize('f', 4)": ({ k }) => k.vectorize('f', 4),
  "bind('f', 'thread.x')": ({ k }) => k.bind('f', 'thread.x'),
  'merge()': ({ k }) => k.merge(),
  'require of two things': ({ k }) => k.require('d', { multiple: 2, equal: 4 }),
  "split({ var: 'zz' }, 2)": ({ k }) => k.split({ var: 'zz' }, 2),
  "tile(['i', 'f'], 2)": ({ k }) => k.tile(['i', 'f'], 2),
  'bind()': ({ k }) => k.bind(),
  'bind({})': ({ k }) => k.bind({}),
  'bind([5])': ({ k }) => k.bind([5]),
  "bind({ i: 'blok.x' })": ({ k }) => k.bind({ i: 'blok.x' }),
  "unroll('i', -1)": ({ k }) => k.unroll('i', -1),
  "unroll('i', 2, { predicated: 1 })": ({ k }) => k.unroll('i', 2, { predicated: 1 }),
  'vectorize()': ({ k }) => k.vectorize(),
  "cache_read('Z', 'i', 'shared')": ({ k }) => k.cacheRead('Z', 'i', 'shared'),
  "cache_read('B', 'i', 'zz')": ({ k }) => k.cacheRead('B', 'i', 'zz'),
  'cache_write()': ({ k }) => k.cacheWrite(),
  "compute_at('zz', 'i')": ({ k }) => k.computeAt('zz', 'i'),
  "fission('i', 5)": ({ k }) => k.fission('i', 5),
  "rfactor('i')": ({ k }) => k.rfactor('i'),
  'atomic()': ({ k }) => k.atomic(),
  'loop()': ({ k }) => k.loop(),
  "loop('zz')": ({ k }) => k.loop('zz'),
  "replay('x')": ({ k }) => k.replay('x'),
  'replay([null])': replay(null),
  'replay of an unknown kind': replay({ kind: 'zz' }),
  'replay of half a step on coordinates': replay({ kind: 'coords', step: { kind: 'reorder' } }),
  'replay of half a step on loops': replay({ kind: 'loops', step: { kind: 'split' } }),
  'replay of no step': replay({ kind: 'loops' }),
  'replay of a format with an argument that is not in a list': replay({
    kind: 'as',
    buffer: 'A',
    format: 'bsr',
    args: 2,
  }),
  'replay of a format without arguments': replay({ kind: 'as', buffer: 'A', format: 'bsr' }),
  'show(9)': ({ k }) => k.show(9),
  "emit('metal')": ({ k }) => k.emit('metal'),
  'build()': ({ k }) => k.build(),
  'build({})': ({ k }) => k.build({}),
  'bind of nothing': ({ c }) => c.bind(),
  'bind without sizes': ({ c }) => c.bind({}),
  'bind of an unknown name': ({ c }) => c.bind({ Z: B }),
  'bind of an unknown size': ({ c }) => c.bind({ D: 1 }),
  'bind of tensors and sizes under names of options': ({ c }) => c.bind({ tensors: { A, B }, params }),
  'bind of a seed among the inputs': ({ c }) => c.bind({ A, ...params, seed: 1 }),
  'bind with a size among the options': ({ c }) => c.bind({ A, B }, { d: 2 }),
  'bind of a Map': ({ c }) => c.bind(new Map([['A', A]])),
  'bind of a string size': ({ c }) => c.bind({ A, B, d: '2' }),
  'bind of a negative size': ({ c }) => c.bind({ A, d: -2 }, { seed: 1 }),
  'bind of a seed that is no number': ({ c }) => c.bind({ A, ...params }, { seed: 'x' }),
  'bind without B': ({ c }) => c.bind({ A, ...params }),
  'bind of too few values': bind(new Float32Array(7)),
  'bind where the shape is open': ({ c }) => c.bind({ B }),
  'bind of values that fill no rows': ({ c }) => c.bind({ A, B: new Float32Array(7) }),
  'bind of bare values to a sparse tensor': bindA([1, 2, 3]),
  'bind of bare values to a sparse tensor whose sizes are open': ({ c }) =>
    c.bind({ A: [1, 2, 3, 4], d: 2, n: 4 }, { seed: 1 }),
  'bind of rows': bind([
    [1, 2],
    [3, 4],
  ]),
  'bind of statistics that nothing depends on': ({ c }) =>
    c.bind({ A, B, ...params }, { statistics: { 'longest(j)': 3 } }),
  'bind of a string': bind('x'),
  'bind of null': bind(null),
  'bind of an object': bind({}),
  'bind of words': bind(['a', 2, 3, 4, 5, 6, 7, 8]),
  'bind of a size as null': ({ c }) => c.bind({ A, B, d: null }),
  'a call with a seed among the inputs': ({ c }) => c({ A, seed: 0 }),
  "set('d', 3)": ({ run }) => run.set('d', 3),
  "build(device, { statistics: { 'nnz(A)': 3 } })": ({ k }) =>
    k.build(device, { statistics: { 'nnz(A)': 3 } }),
  "build(device, { auto: false, statistics: { 'nnz(A)': 3 } })": ({ k }) =>
    k.build(device, { auto: false, statistics: { 'nnz(A)': 3 } }),
  'devices.webgpu(null)': () => loose.devices.webgpu(null),
  "devices.webgpu({ powerPreference: 'low' })": () => loose.devices.webgpu({ powerPreference: 'low' }),
  "devices.webgpu({ features: 'shader-f16' })": () => loose.devices.webgpu({ features: 'shader-f16' }),
  "devices.webgpu({ features: ['shader-f17'] })": () =>
    loose.devices.webgpu({ adapter: 'swiftshader', features: ['shader-f17'] }),
  "devices.webgpu({ powerPreference: 'low' }) in a browser": () =>
    browser.devices.webgpu({ powerPreference: 'low' as never }),
  "devices.webgpu({ powerPreference: 'low-power' }) in a browser": () =>
    browser.devices.webgpu({ powerPreference: 'low-power' }),
  'bind of 16 bits to f32': bind(new Uint16Array(8)),
  'bind of 64-bit integers': bind(new BigInt64Array(8)),
  'bind of a view': bind(new DataView(new ArrayBuffer(8))),
  'bind of a tensor with a list as values': bind({ kind: 'dense', shape: [4, 2], values: [1], dtype: 'f32' }),
  'bind of half a tensor': bindA({ kind: 'coords', shape: [3, 4], values: null, dtype: 'f32' }),
  'bind of one dimension': bindA(api.dense([12], new Float32Array(12))),
  'bind of a coordinate out of range': bindA(handmade([0], [7])),
  'bind of a negative coordinate': bindA(handmade([0], [-1])),
  'bind of coordinates without dimensions': bindA({
    kind: 'coords',
    shape: [],
    coords: [],
    values: new Float32Array(1),
    dtype: 'f32',
  }),
  'bind of fewer values than entries': bindA(handmade([0, 1], [0, 1])),
  'bind of stored arrays that are missing': bindA(api.stored([3, 4], {}, new Float32Array(1))),
  'bind of stored indices that fall': bindA(
    api.stored(
      [3, 4],
      { j: { indptr: Int32Array.of(0, 2, 2, 2), indices: Int32Array.of(2, 1) } },
      new Float32Array(2),
    ),
  ),
  'dense()': () => loose.dense(),
  'dense(2, …)': () => loose.dense(2, [1, 2]),
  'dense([-1, -2], …)': () => api.dense([-1, -2], [1, 2]),
  'dense([0.5, 2], …)': () => api.dense([0.5, 2], [1]),
  'dense of too few values': () => api.dense([2, 2], [1]),
  'dense of a string': () => loose.dense([2], 'ab'),
  'dense of undefined': () => loose.dense([1], [undefined]),
  "dense as 'f31'": () => loose.dense([1], [1], 'f31'),
  'dense of 16 bits without a type': () => loose.dense([2], new Uint16Array(2)),
  'dense of 16-bit integers': () => loose.dense([1], Int16Array.of(3)),
  'bind of 16-bit integers': bind(new Int16Array(8)),
  'dense of another type': () => api.dense([2], new Float32Array(2), 'i32'),
  'dense of fractions as i32': () => api.dense([1], [0.5], 'i32'),
  'dense of truth values as numbers': () => loose.dense([1], [true], 'f32'),
  'coords()': () => loose.coords(),
  'coords of one dimension too few': () => api.coords([2, 2], [[0]], [1]),
  'coords out of the shape': () => api.coords([2, 2], [[0], [2]], [1]),
  'coords below the shape': () => api.coords([2, 2], [[-1], [0]], [1]),
  'coords of a fraction': () => api.coords([2, 2], [[0], [0.5]], [1]),
  'coords over 32 bits': () => api.coords([2, 2], [[0], [4e9]], [1]),
  'coords of 64-bit integers': () => loose.coords([2, 2], [[0], BigInt64Array.of(1n << 40n)]),
  'coords of one value too many': () => api.coords([2, 2], [[0], [0]], [1, 2]),
  'stored()': () => loose.stored(),
  "get('Z')": ({ run }) => run.get('Z'),
  'time(-1)': ({ run }) => run.time(-1),
  "measure({ by: 'x' })": ({ run }) => run.measure({ by: 'x' }),
  'measure({ flush: 5 })': ({ run }) => run.measure({ flush: 5 }),
  'explain({ time: 5 })': ({ run }) => run.explain({ time: 5 }),
  'output()': ({ run }) => run.output(),
  "output('Q')": ({ run }) => run.output('Q'),
  'output of an input': ({ run }) => run.output('B'),
  'output bound to what is sparse': ({ c, run }) =>
    c.bind({ A: run.output('C'), B: new Float32Array(4), ...params }),
  'output bound to another shape': ({ c, run }) => c.bind({ A, B: run.output('C'), ...params }),
  'output bound to an output': ({ c, run }) => c.bind({ A, B, C: run.output('C'), ...params }),
  'values of an output on the device': ({ run }) => run.output('C').values,
  'explain(null)': ({ run }) => run.explain(null),
  'verifyAgainst()': ({ run }) => run.verifyAgainst(),
  'verifyAgainst({ buffers: {} })': ({ run }) => run.verifyAgainst({ buffers: {} }),
  'verify of a sample of nothing': ({ run }) => run.verify({ sample: {} }),
  'verify of a sample of two sizes': ({ run }) => run.verify({ sample: { count: 1, fraction: 0.5 } }),
  'verify({ sample: { count: NaN } })': ({ run }) => run.verify({ sample: { count: Number.NaN } }),
  'verify({ sample: { count: 0 } })': ({ run }) => run.verify({ sample: { count: 0 } }),
  'verify({ sample: { fraction: NaN } })': ({ run }) => run.verify({ sample: { fraction: Number.NaN } }),
  'verify({ sample: { fraction: 0 } })': ({ run }) => run.verify({ sample: { fraction: 0 } }),
  'verify({ sample: { fraction: 2 } })': ({ run }) => run.verify({ sample: { fraction: 2 } }),
  'verify of a sample with half a seed': ({ run }) => run.verify({ sample: { count: 1, seed: 0.5 } }),
  'verify({ sample: 3 })': ({ run }) => run.verify({ sample: 3 }),
  "releaseConversions('x')": () => loose.releaseConversions('x'),
  'readTensor(5)': () => loose.readTensor(5),
  'readTensor as an unknown type': () => loose.readTensor('x.npy', { dtype: 'f33' }),
  "readTensor('x.doc')": () => api.readTensor('x.doc'),
  'writeTensor()': () => loose.writeTensor(),
  'writeTensor of a coordinate out of range': () => loose.writeTensor('nowhere.mtx', handmade([0], [7])),
  'writeTensor of fewer values than entries': () =>
    loose.writeTensor('nowhere.mtx', handmade([0, 1], [0, 1])),
  'writeTensor of the wrong array': () =>
    loose.writeTensor('nowhere.npy', { ...api.dense([1], [1]), dtype: 'f32' }),
}

let scene: Scene
let device: api.Device
beforeAll(async () => {
  device = await api.devices.cpu()
  const p = await api.load(TEXT)
  const c = await p.kernel().build(device)
  scene = { p, k: p.kernel(), c, run: await c.bind({ A, B, ...params }) }
})
afterAll(() => device.dispose())

const GOLDEN = new URL('./misuse.golden', import.meta.url)
const update = Boolean(process.env.UPDATE_GOLDEN)
const golden = new Map(
  update
    ? []
    : readFileSync(GOLDEN, 'utf8')
        .split(/^## /m)
        .slice(1)
        .map((s) => [s.slice(0, s.indexOf('\n')), s.slice(s.indexOf('\n') + 1)] as const),
)

describe('misuse', () => {
  test.each(Object.keys(CASES))('%s', async (name) => {
    const said = `${await complaint(() => CASES[name]!(scene))}\n\n`
    if (update) golden.set(name, said)
    expect(said).toBe(golden.get(name))
  })

  test('the golden file has these cases and no others', () => {
    if (update) writeFileSync(GOLDEN, [...golden].map(([name, said]) => `## ${name}\n${said}`).join(''))
    expect([...golden.keys()]).toEqual(Object.keys(CASES))
  })

  test('16-bit integers must be copied into a supported array type', () => {
    const said = refusal(() => api.dense([1], Int16Array.of(3) as never))
    expect(said.hint).toContain('Int32Array.from(values)')
    expect(api.dense([1], Uint16Array.from(Int16Array.of(-2)), 'f16').values).toEqual(Uint16Array.of(0xfffe))
  })

  test('messages of devices and resident tensors name the argument, and where to get it', async () => {
    const { c } = scene
    const dispatch = (await api.load(`${TEXT}schedule mul.one choose { otherwise blocked(2) }`)).kernel()
    const memory = c.device.alloc(4, 'x')
    for (const [call, subject, expected] of [
      [() => c.device.run(5), 'the list of commands', 'a list of commands'],
      [() => c.device.compile(5), 'the compiled module', 'a module from kernel.emit'],
      [() => c.device.upload(5, B), 'the buffer of an upload', 'a buffer from alloc'],
      [() => c.device.upload(memory, 5), 'the uploaded data', 'a typed array'],
      [
        () => loose.planConversion(c.device, 5),
        'the target format',
        'the result of storageFormat(kernel, tensor)',
      ],
      [
        () => dispatch.schedule('one').choose('cpu', ...flatInputs({ resident: { A: 5 } } as never)),
        'resident tensor A',
        'the result of resident or of a conversion',
      ],
    ] as const)
      expect((await errorOf(call)).diagnostics[0]).toMatchObject({
        message: `${subject} cannot be 5`,
        expected,
      })
  })

  test('freed objects are rejected', async () => {
    const run = await scene.c.bind({ A, B, ...params })
    run.free()
    expect(await complaint(() => run.run())).toMatch(/^device\/freed/)
    run.free()
    const gone = await api.devices.cpu()
    const compiled = await (await api.load(TEXT)).kernel().build(gone)
    await gone.dispose()
    expect(await complaint(() => compiled({ A, B, ...params }))).toMatch(/^device\/disposed/)
  })
})
