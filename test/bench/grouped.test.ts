/** Groups of pairs: families, files, what is expected of products, and the suites with our kernels on the CPU. */
import fc from 'fast-check'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { GROUP_FAMILIES, type GroupKind } from '../../bench/families/groups.ts'
import { widen } from '../../bench/gpu/blocks.ts'
import type { Case } from '../../bench/gpu/case.ts'
import { PRECISION } from '../../bench/gpu/expected.ts'
import { ExpectedGroups, type Layer, normalsOf, Weights } from '../../bench/gpu/expected-groups.ts'
import { type Groups, grouped, groupKind, groupSources, pairsOf } from '../../bench/gpu/groups.ts'
import { bench } from '../../bench/gpu/index.ts'
import { sources as matrixSources } from '../../bench/gpu/matrix.ts'
import { OurDevice, type OurRun } from '../../bench/gpu/ours.ts'
import type { Session } from '../../bench/gpu/session.ts'
import { GROUPED, overGroups } from '../../bench/gpu/suites/grouped.ts'
import { npzChunks } from '../../src/io/index.ts'
import { devices } from '../../src/node.ts'
import { Folder } from '../cli/support.ts'
import { runs, sample } from '../support/cases.ts'
import { property } from '../support/property.ts'

const folder = new Folder()
afterAll(() => folder.remove())

const families = Object.entries(GROUP_FAMILIES).flatMap(([kind, all]) =>
  Object.keys(all).map((name) => [name, kind as GroupKind] as const),
)
const drawnAs = async (name: string): Promise<Groups> => {
  const kind = groupKind(name, folder.path)!
  return groupSources(kind, folder.path, [name], false).found[0]!.read()
}
const triplesOf = (G: Groups): string[] => Array.from(G.values, (_, e) => G.coords.map((c) => c[e]).join())

test.each(families)('%s: equal for equal seeds, sorted, each pair once', async (name, kind) => {
  const [one, again, other] = await Promise.all(
    [`${name}:300`, `${name}:300`, `${name}:300:2`].map((n) => drawnAs(n)),
  )
  expect(one!.kind).toBe(kind)
  expect(again!.coords).toEqual(one!.coords)
  expect(other!.coords).not.toEqual(one!.coords)
  expect(pairsOf(one!)).toBeGreaterThan(250)
  const { groups, rows, columns, coords } = one!
  for (const [d, extent] of [groups, rows, columns].entries())
    expect(coords[d]!.every((c) => c >= 0 && c < extent)).toBe(true)
  const keys = Array.from(coords[0], (g, e) => (g * rows + coords[1][e]!) * columns + coords[2][e]!)
  expect(keys.every((k, e) => e === 0 || k > keys[e - 1]!)).toBe(true)
})

test('relations have inverses, offsets have opposites, and tokens the requested number of experts', async () => {
  const both = await drawnAs('relations:200:3')
  const maps = await drawnAs('voxels-thin:300:3')
  const inverse = (G: Groups, other: (g: number) => number): string[] =>
    Array.from(G.values, (_, e) => [other(G.coords[0][e]!), G.coords[2][e], G.coords[1][e]].join()).sort()
  expect(inverse(both, (g) => (g + 100) % 200)).toEqual(triplesOf(both).sort())
  expect(inverse(maps, (g) => 26 - g)).toEqual(triplesOf(maps).sort())
  const [two, idle] = [await drawnAs('routing-two:400'), await drawnAs('routing-idle:400')]
  expect(two.coords[1]).toEqual(two.coords[2])
  expect([...two.coords[1]].sort((a, b) => a - b)).toEqual(
    Array.from({ length: 800 }, (_, k) => Math.floor(k / 2)),
  )
  expect(idle.coords[0].filter((e) => e % 8 === 7)).toHaveLength(0)
})

test('unknown members, and data of other suites', async () => {
  await expect(drawnAs('routing:x')).rejects.toThrow('bench/no-matrix')
  expect(groupKind('rooting:7', folder.path)).toBeUndefined()
  const said: string[] = []
  const say = (text: string): void => void said.push(text)
  const asking = (suite: string, matrices: string[]): Promise<boolean> =>
    bench([suite], {
      data: folder.path,
      quick: true,
      minutes: 1,
      json: undefined,
      schedules: [],
      matrices,
      widths: [32],
      out: say,
      err: say,
    })
  await expect(asking('spmm', ['voxels:90'])).rejects.toThrow('no suite of spmm takes voxels:90')
  await expect(asking('relational', ['b=8'])).rejects.toThrow('no suite of relational takes b=8')
  // Sizes of blocks are names as well: the suite begins, and looks for its device.
  vi.stubEnv('SPT_LIBCUDA', folder.at('libcuda.so'))
  expect(await asking('block-sparse', ['b=8'])).toBe(false)
  vi.unstubAllEnvs()
  expect(said[0]).toMatch(/^block-sparse ended early: device\/absent/)
  await expect(asking('relational', ['relatons'])).rejects.toThrow('there is no matrix relatons')
})

const npz = (name: string, arrays: Readonly<Record<string, readonly number[] | number>>): void => {
  const named = Object.entries(arrays).map(([key, x]) => {
    const values = Int32Array.from(typeof x === 'number' ? [x] : x)
    return [
      key,
      { values, shape: typeof x === 'number' ? [] : [values.length], dtype: 'i32' as const },
    ] as const
  })
  folder.file(name, Buffer.concat([...npzChunks(Object.fromEntries(named))]))
}

test('files of any name: missing inverse relations are added', async () => {
  npz('mine.npz', { src: [0, 1, 1], rel: [1, 0, 0], dst: [2, 1, 1], num_nodes: 4, num_relations: 2 })
  npz('a graph.npz', { src: [0, 2], rel: [1, 0], dst: [2, 0], weight: [1, 1] })
  npz('layer.npz', { knnz: [2, 0, 1], kpos: [0, 2, 2], imap: [0, 1, 3], omap: [1, 0, 2] })
  npz('matrix.npz', { indptr: [0, 1], indices: [0], shape: [1, 1] })
  folder.file('src,rel,dst.npz', 'src.npy rel.npy dst.npy')
  // Rows are those of targets; the same edge twice is one.
  const graph = await drawnAs('mine')
  expect([graph.groups, graph.rows, triplesOf(graph)]).toEqual([4, 4, ['0,1,1', '1,2,0', '2,1,1', '3,0,2']])
  // Without counts of relations and nodes: as many as there are.
  const both = await drawnAs('a graph')
  expect([both.groups, both.rows, triplesOf(both)]).toEqual([2, 3, ['0,0,2', '1,2,0']])
  const map = await drawnAs('layer')
  expect([map.groups, map.rows, triplesOf(map)]).toEqual([3, 4, ['0,0,1', '0,1,0', '2,2,3']])
  npz('bad.npz', { knnz: [9], imap: [0], omap: [0] })
  await expect(drawnAs('bad')).rejects.toThrow('knnz counts 9 pairs, and there are 1')
  // All of them, and none is a matrix.
  const relations = Object.keys(GROUP_FAMILIES.relations)
  const names = (asked: string[]) =>
    groupSources('relations', folder.path, asked, false).found.map((s) => s.name)
  expect(names([])).toEqual(['a graph', 'mine', ...relations])
  expect(names(['relations:30', 'mine', 'layer', 'a graph'])).toEqual(['relations:30', 'mine', 'a graph'])
  expect(matrixSources(folder.path, [], false).found.map((s) => s.name)).toEqual([
    'matrix',
    'src,rel,dst',
    'arxiv-like',
    'reddit-like',
  ])
  const nowhere = groupSources('relations', folder.at('nowhere'), [], false)
  expect([nowhere.found.map((s) => s.name), nowhere.missing]).toEqual([
    relations,
    ['a .npz with the arrays src, rel, dst'],
  ])
})

/** In float64, rounded once. */
function product(G: Groups, X: Float32Array, W: Float32Array, { inputs, outputs }: Layer): Float32Array {
  const Y = new Float64Array(G.rows * outputs)
  const [g, i, j] = G.coords
  for (let e = 0; e < pairsOf(G); e++)
    for (let c = 0; c < inputs; c++)
      for (let o = 0; o < outputs; o++)
        Y[i[e]! * outputs + o]! +=
          G.values[e]! * X[j[e]! * inputs + c]! * W[(g[e]! * inputs + c) * outputs + o]!
  return Float32Array.from(Y)
}

const small = fc
  .record({ groups: fc.integer({ min: 1, max: 4 }), n: fc.integer({ min: 2, max: 9 }) })
  .chain(({ groups, n }) => {
    const coordinate = (most: number) => fc.integer({ min: 0, max: most - 1 })
    return fc
      .array(fc.tuple(coordinate(groups), coordinate(n), coordinate(n)), { minLength: 1, maxLength: 30 })
      .map((all) => ({ shape: [groups, n, n] as const, all }))
  })
const layers = fc.record({
  inputs: fc.integer({ min: 1, max: 9 }),
  outputs: fc.integer({ min: 2, max: 9 }),
  type: fc.constantFrom('f32' as const, 'f16' as const, 'bf16' as const),
})

property([small, layers, fc.nat(), fc.nat()], { numRuns: runs(30) })(
  'expected products: right ones pass, and inexact, missing or misplaced ones are detected',
  ({ shape, all }, layer, seed, where) => {
    const coords = [0, 1, 2].map((d) => Int32Array.from(all, (t) => t[d]!)) as unknown as Groups['coords']
    const G = grouped('small', 'relations', { shape, coords })
    const weights = new Weights(shape[0], layer, seed & 0xffff)
    const X = normalsOf(layer.type, shape[2] * layer.inputs, (seed >> 8) & 0xffff)
    const read = (v: typeof X): Float32Array =>
      v instanceof Float32Array ? v : widen(v, layer.type === 'bf16' ? 'bf16' : 'f16')
    const expected = new ExpectedGroups(G, X, weights)
    const Y = product(G, read(X), read(weights.values), layer)
    expect(expected.check(Y, PRECISION.f32).problem).toBe('')
    const at = where % Y.length
    for (const wrong of [Number.NaN, Y[at]! + 1 + Math.abs(Y[at]!)])
      expect(
        expected.check(
          Y.map((y, k) => (k === at ? wrong : y)),
          PRECISION.f32,
        ).ok,
      ).toBe(false)
    // Of a pair left out, whose row is not zero.
    const left = where % pairsOf(G)
    const without = { ...G, values: G.values.map((v, e) => (e === left ? 0 : v)) }
    const short = product(without, read(X), read(weights.values), layer)
    if (short.some((y, k) => Math.abs(y - Y[k]!) > 1e-2))
      expect(expected.check(short, PRECISION.f32).ok).toBe(false)
    expect(expected.check(Y.subarray(1), PRECISION.f32).ok).toBe(false)
  },
)

test('all rows are checked, and few are computed if there is much work', () => {
  const n = 3000
  const coords = [0, 1, 2].map((d) => Int32Array.from({ length: n }, (_, k) => (d === 0 ? k % 3 : k)))
  const G = grouped('wide', 'experts', { shape: [3, n, n], coords: coords as unknown as Groups['coords'] })
  const layer: Layer = { inputs: 2, outputs: 3, type: 'f16' }
  const weights = new Weights(3, layer, 1)
  const X = normalsOf('f16', n * 2, 2) as Uint16Array
  const expected = new ExpectedGroups(G, X, weights)
  expect(expected.checked).toMatch(/^10\d\d rows by element, all 3000 by projection$/)
  const Y = product(G, widen(X), widen(weights.values as Uint16Array), layer)
  const missed: number[] = []
  for (let r = 0; r < n; r += 37)
    for (const wrong of [Number.NaN, Y[3 * r]! + 1])
      if (
        expected.check(
          Y.map((y, k) => (k === 3 * r ? wrong : y)),
          PRECISION.f32,
        ).ok
      )
        missed.push(r)
  expect([expected.check(Y, PRECISION.f32).ok, missed]).toEqual([true, []])
})

test('many values repeat a list, and rows differ', () => {
  const all = normalsOf('f16', 4093 + 2048, 1, 4093)
  expect(all.subarray(4093)).toEqual(all.subarray(0, 2048))
  expect(all.subarray(0, 1024)).not.toEqual(all.subarray(1024, 2048))
})

/** Checks, and takes no time for measuring. */
class Untimed extends OurDevice {
  override async prepare(...args: Parameters<OurDevice['prepare']>): Promise<OurRun> {
    const run = await super.prepare(...args)
    run.measure = async () => ({ event: 1, flushed: 1, backToBack: null, repeats: 1 })
    return run
  }
}

describe('suites', () => {
  const SMALL: Readonly<Record<GroupKind, string>> = {
    relations: 'relations-few:20',
    offsets: 'voxels:20',
    experts: 'routing-two:30',
  }
  const GATHERED = 'gather-gemm-scatter.spt:gather_gemm_scatter'
  const SCHEDULES: Readonly<Record<string, readonly string[]>> = {
    f32: ['auto', 'gpu(8,8,4)'].map((s) => `${GATHERED}.${s}`),
    f16: ['auto', 'gpu(8,8,4)'].map((s) => `gather-gemm-scatter.spt:gather_gemm_scatter<f16>.${s}`),
    bf16: ['gather-gemm-scatter.spt:gather_gemm_scatter<bf16>.auto'],
    experts: ['auto', 'gpu(8,8,4)'].map((s) => `mixture-of-experts.spt:experts_f16.${s}`),
  }
  const all = GROUPED.flatMap((g) =>
    [...new Set(g.layers.map((l) => l.type))].map((type) => [g.suite, type, g] as const),
  )

  test.each(sample(all, 3))('%s in %s: correct on the CPU, in any format', async (_, type, g) => {
    const device = new Untimed(await devices.cpu())
    const done: Case[] = []
    const layer: Layer = { inputs: 8, outputs: 16, type }
    const session = {
      cuda: async () => device,
      options: {
        data: folder.at('nowhere'),
        matrices: [SMALL[g.kind], 'cora'],
        quick: true,
        schedules: SCHEDULES[g.kind === 'experts' ? 'experts' : type],
      },
      ceilings: undefined,
      culprits: new Map(),
      late: () => false,
      has: (_s: string, _d: string, at: string) => at === '1 → 1, f32',
      say: () => {},
      done: async (c: Case) => void done.push(c),
    } as unknown as Session
    await overGroups({ ...g, layers: [layer, { inputs: 1, outputs: 1, type: 'f32' }] })(session)
    expect(done.map((c) => [c.suite, c.data, c.at])).toEqual([[g.suite, SMALL[g.kind], `8 → 16, ${type}`]])
    const own = done[0]!.entries.filter((e) => e.side === 'ours')
    expect(own.map((e) => `${e.name} ${e.result} ${e.note}`.trim())).toEqual(
      session.options.schedules.map((s) => `${s} ok`),
    )
    for (const e of own) if (e.name.includes('.gpu(')) expect(e.facts).toHaveProperty('build ms')
    expect(own.every((e) => e.facts?.types?.toString().startsWith('f32 × '))).toBe(true)
    await device.close()
  })

  test('out of time: measurements are reported in the requested order, with the missing ones', async () => {
    const device = new Untimed(await devices.cpu())
    const done: string[] = []
    const left: string[] = []
    const asked = ['relations-few:30', 'relations-few:20', 'relations-few:10']
    const session = {
      cuda: async () => device,
      options: { data: folder.at('nowhere'), matrices: asked, quick: true, schedules: SCHEDULES.f32 },
      ceilings: undefined,
      culprits: new Map(),
      late: () => done.length >= 3,
      has: () => false,
      say: () => {},
      leave: (what: string) => void left.push(what),
      done: async (c: Case) => void done.push(`${c.data} ${c.at}`),
    } as unknown as Session
    const layers = [4, 8].map((inputs): Layer => ({ inputs, outputs: 4, type: 'f32' }))
    await overGroups({ suite: 'relational', kind: 'relations', layers })(session)
    const first = (name: string): string[] => ['4 → 4, f32', '8 → 4, f32'].map((at) => `${name} ${at}`)
    expect([...done, ...left]).toEqual([...first(asked[0]!), ...first(asked[1]!), asked[2]])
    await device.close()
  })

  test('candidates are named for every type', async () => {
    const { fieldOf } = await import('../../bench/gpu/candidates.ts')
    for (const [suite, type] of all) {
      const field = fieldOf(`${suite}-${type}`, [], { n: 64 })
      expect(field.candidates.length).toBeGreaterThan(2)
      expect(field.candidates.map((c) => c.text)).toContain(field.standard)
    }
  })
})
