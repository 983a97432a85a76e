/** Occupancy, roofs and what state does to counts. */
import { describe, expect, test } from 'vitest'
import { add, builtin, type Expr, int, load, lt, variable } from '../../src/ir/expressions/expr.ts'
import type { Buffer, Launch, Stmt } from '../../src/ir/statements/loops.ts'
import { countLaunch } from '../../src/run/explain/count.ts'
import type { Multiprocessor } from '../../src/run/explain/roofline.ts'
import { achievedOf, occupancyOf, roofOf, sumOf, workOf } from '../../src/run/explain/roofline.ts'

const HOPPER: Multiprocessor = {
  major: 9,
  multiprocessors: 132,
  warpSize: 32,
  maxThreadsPerMultiprocessor: 2048,
  maxBlocksPerMultiprocessor: 32,
  sharedPerMultiprocessor: 233_472,
  registersPerMultiprocessor: 65_536,
}

describe('occupancy, as in NVIDIA’s calculator for 9.0', () => {
  test.each([
    // registers, shared bytes, threads, blocks; blocks and warps resident, limit, waves
    [32, 0, 256, 100_000, 8, 64, 'threads', 95],
    [40, 0, 256, 100_000, 6, 48, 'registers', 127],
    [255, 0, 256, 100_000, 1, 8, 'registers', 758],
    [16, 0, 32, 100_000, 32, 32, 'blocks', 24],
    [32, 100_000, 128, 100_000, 2, 8, 'shared memory', 379],
    [32, 231_424, 128, 1000, 1, 4, 'shared memory', 8],
    [32, 0, 256, 264, 2, 16, 'grid', 1],
    [33, 0, 1024, 100_000, 1, 32, 'registers', 758],
  ] as const)(
    '%i registers, %i bytes, %i threads',
    (registers, shared, threads, all, blocks, warps, by, waves) => {
      expect(occupancyOf(HOPPER, { registers, shared }, threads, all)).toEqual({
        blocks,
        warps,
        maxWarps: 64,
        limitedBy: by,
        waves,
      })
    },
  )
})

describe('roofs', () => {
  const ceilings = { memory: 4e12, cache: 8e12, cacheBytes: 50e6, f32: 60e12, tf32: 300e12, f16: 600e12 }
  const exact = { sampledFraction: 1, hasAssumptions: false }
  const work = (least: number, plain: number, matrix16 = 0, matrixOther = 0, matrix32 = 0) =>
    workOf(
      { compulsory: least, loaded: least, stored: 0, sharedLoaded: 0, sharedStored: 0 },
      { scalar: plain, matrix16, matrix32, matrixOther },
      exact,
    )

  test('the slowest ceiling bounds; data that fit the cache are read from the cache', () => {
    expect(roofOf(ceilings, work(4e9, 1e9))).toEqual({ by: 'memory', minMilliseconds: 1 })
    expect(roofOf(ceilings, work(8e6, 1e6))).toEqual({ by: 'cache', minMilliseconds: 0.001 })
    expect(roofOf(ceilings, work(4e6, 60e9))).toEqual({ by: 'f32', minMilliseconds: 1 })
    expect(roofOf(ceilings, work(4e6, 0, 600e9))).toEqual({ by: 'f16', minMilliseconds: 1 })
    expect(roofOf(ceilings, work(4e6, 0, 300e9, 0, 300e9))).toEqual({ by: 'tf32', minMilliseconds: 1 })
    expect(roofOf(ceilings, work(0, 0))).toBeNull()
  })

  test('rates and percentages, omitted without a ceiling', () => {
    const time = { median: 2, min: 1, samples: 3, floor: 0 }
    expect(achievedOf(ceilings, work(4e9, 30e9), time)).toEqual({
      bandwidth: 2e12,
      flops: 15e12,
      bandwidthFraction: 0.5,
      flopsFraction: 0.25,
    })
    expect(achievedOf(ceilings, work(4e9, 0, 0, 0, 30e9), time)!.flopsFraction).toBe(0.05)
    expect(achievedOf(undefined, work(4e9, 30e9), time)).toMatchObject({
      bandwidthFraction: null,
      flopsFraction: null,
    })
    expect(achievedOf(ceilings, work(4e9, 0, 0, 1e9), time)).toMatchObject({
      bandwidthFraction: 0.5,
      flopsFraction: null,
    })
    expect(achievedOf(ceilings, work(4e9, 1), { ...time, median: 0 })).toBeNull()
  })
})

describe('values that determine control flow are evaluated', () => {
  const buffer = (name: string, scope: Buffer['scope'], n: Expr): Buffer => ({
    name,
    dtype: scope === 'register' ? 'i32' : 'f32',
    scope,
    role: scope === 'register' ? 'local' : 'in',
    shape: [n],
    fill: 0,
    accumulate: 'f32',
  })
  const X = buffer('X', 'global', variable('n'))
  const Y = { ...X, name: 'Y', role: 'out' as const }
  const r = buffer('r', 'register', int(1))
  const old = load('r', [int(0)], 'i32')
  const put = (value: Expr): Stmt => ({ kind: 'store', buffer: 'r', index: [int(0)], value })
  const copy: Stmt = {
    kind: 'store',
    buffer: 'Y',
    index: [variable('k')],
    value: load('X', [variable('k')], 'f32'),
  }
  const launchOf = (body: readonly Stmt[]): Launch => ({
    kind: 'launch',
    name: 'l',
    grid: [int(2), int(1), int(1)],
    block: [4, 1, 1],
    body,
  })
  const count = (body: readonly Stmt[], n: number) =>
    countLaunch(launchOf(body), [X, Y], { params: new Map([['n', n]]), arrays: new Map() }, new Map())

  const loop = (body: readonly Stmt[]): Stmt => ({
    kind: 'for',
    var: 'k',
    name: 'k',
    nest: 'a',
    extent: variable('n'),
    reduce: false,
    guards: [],
    mode: { kind: 'serial' },
    body,
  })
  const when = (cond: Expr): Stmt => ({ kind: 'if', cond, then: [copy], else: [] })

  test('registers carried between iterations', () => {
    const body: Stmt[] = [
      { kind: 'alloc', buffer: r },
      put(int(0)),
      loop([when(lt(old, int(3))), put(add(old, int(1)))]),
    ]
    expect(count(body, 10).arrays.get('X')).toEqual({ loads: 8 * 3, stores: 0, atomics: 0 })
    expect(count(body, 2).arrays.get('Y')).toEqual({ loads: 0, stores: 8 * 2, atomics: 0 })
  })

  test('searches', () => {
    const body: Stmt[] = [
      { kind: 'alloc', buffer: r },
      put(int(0)),
      { kind: 'while', cond: lt(old, variable('n')), body: [copyAt(old), put(add(old, int(2)))] },
    ]
    expect(count(body, 9).arrays.get('X')?.loads).toBe(8 * 5)
  })
  const copyAt = (k: Expr): Stmt => ({
    kind: 'store',
    buffer: 'Y',
    index: [k],
    value: load('X', [k], 'f32'),
  })

  test('divergent and uniform threads', () => {
    expect(count([loop([when(lt(builtin('thread.x'), int(3)))])], 10).arrays.get('X')?.loads).toBe(2 * 3 * 10)
    expect(count([loop([copy])], 10).arrays.get('X')?.loads).toBe(8 * 10)
  })

  test('values of other threads and computed values are unknown', () => {
    const lane: Stmt = {
      kind: 'let',
      name: 'other',
      dtype: 'i32',
      value: builtin('thread.x'),
      lane: { xor: 1, among: 4 },
    }
    const told = count([lane, loop([when(lt(variable('other'), int(2)))])], 5)
    expect(told.certainty.hasAssumptions).toBe(true)
    expect(told.arrays.get('X')?.loads).toBe(8 * 5)
  })

  test('an empty grid does nothing', () => {
    const empty = { ...launchOf([loop([copy])]), grid: [variable('z'), int(1), int(1)] as const }
    const params = new Map([
      ['n', 4],
      ['z', 0],
    ])
    const counted = countLaunch(empty, [X, Y], { params, arrays: new Map() }, new Map())
    expect(counted.arrays.size).toBe(0)
    expect(counted.certainty).toEqual({ sampledFraction: 1, hasAssumptions: false })
  })
})

test('a sum of work is as certain as its least certain launch', () => {
  const bytes = { compulsory: 1, loaded: 1, stored: 1, sharedLoaded: 0, sharedStored: 0 }
  const operations = { scalar: 1, matrix16: 0, matrix32: 0, matrixOther: 0 }
  const works = [0.5, 0.25, 1].map((sampledFraction) =>
    workOf(bytes, operations, { sampledFraction, hasAssumptions: false }),
  )
  expect(sumOf(works, 0).certainty.sampledFraction).toBe(0.25)
  expect(sumOf([], 0).certainty.sampledFraction).toBe(1)
})
