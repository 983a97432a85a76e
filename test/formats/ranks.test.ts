import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AllocationLimit, withAllocationLimit } from '../../src/columns/allocate.ts'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import { buildStorage } from '../../src/storage/build-storage.ts'
import { MAX_EXTENT, Ranker, rankSegments } from '../../src/storage/engines/host/segment-ranks.ts'
import { runs as cases } from '../support/cases.ts'
import { denseFixed, sparseFixed, sparseVariable } from './arbitrary.ts'

type Shape = 'sorted' | 'nearly' | 'equal' | 'any'
const shape = fc.constantFrom<Shape>('sorted', 'nearly', 'equal', 'any')

/** Runs of coordinates below an extent: short and long, close together and far apart. */
const runs = fc
  .tuple(
    fc.constantFrom(1, 3, 33, 1000, 70_000, 2 ** 26),
    fc.array(fc.tuple(fc.constantFrom(1, 2, 16, 17, 200), shape, fc.integer()), { maxLength: 6 }),
  )
  .map(([extent, list]) => ({ extent, runs: list.map(([n, kind, seed]) => numbers(n, extent, kind, seed)) }))

/** Deterministic, so that a failing case can be run again. */
function numbers(n: number, extent: number, kind: Shape, seed: number): number[] {
  let state = seed >>> 0
  const next = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * extent)
  }
  const all = Array.from({ length: n }, next)
  if (kind === 'equal') return all.map((_, k) => all[k % 3]!)
  if (kind === 'any') return all
  all.sort((a, b) => a - b)
  if (kind === 'nearly' && n > 1) all.push(all.shift()!)
  return all
}

const ascending = (xs: readonly number[]): number[] => [...new Set(xs)].sort((a, b) => a - b)

it('ranks runs of any order, length and spread', () => {
  fc.assert(
    fc.property(runs, ({ extent, runs: list }) => {
      const ranker = new Ranker(extent)
      const of = Int32Array.from(list.flat())
      const out = new Int32Array(of.length).fill(-1)
      let lo = 0
      for (const run of list) {
        const different = ascending(run)
        expect(ranker.rank(of, lo, lo + run.length, out)).toBe(different.length)
        expect([...out.subarray(lo, lo + run.length)]).toEqual(run.map((x) => different.indexOf(x)))
        lo += run.length
      }
    }),
    { numRuns: cases(100) },
  )
})

it('needs memory for the entries, not for the extent of few coordinates', () => {
  const n = 20
  const limit = new AllocationLimit(2 ** 30)
  const column = Int32Array.from({ length: n }, (_, e) => (e * 7919 * 104_729) % MAX_EXTENT)
  const { rank } = withAllocationLimit(limit, () => rankSegments(null, column, MAX_EXTENT, 1))!
  expect([...rank]).toEqual([...column].map((c) => ascending([...column]).indexOf(c)))
  expect(limit.used).toBeLessThan(100 * n)
})

const EXTENT = 40
const axes = fc.constantFrom<StoredAxis & { kind: 'sparse_variable' | 'sparse_fixed' }>(
  sparseVariable('j', 'i') as StoredAxis & { kind: 'sparse_variable' },
  sparseFixed('j', 'i') as StoredAxis & { kind: 'sparse_fixed' },
)

/** Entries (parent, coordinate) whose parents never fall, mostly stay near, or jump. */
const entries = fc
  .tuple(fc.integer({ min: 1, max: 30 }), shape, fc.integer({ min: 1, max: 5 }))
  .chain(([parents, kind, each]) =>
    fc.array(fc.tuple(fc.nat(parents - 1), fc.nat(EXTENT - 1)), { maxLength: 20 * each }).map((all) => {
      if (kind === 'sorted' || kind === 'nearly') all.sort((a, b) => a[0] - b[0])
      if (kind === 'nearly' && all.length > 1) all.push(all.shift()!)
      return { parents, all: kind === 'equal' ? all.map((_, k) => all[k % 4]!) : all }
    }),
  )

const level = (axis: StoredAxis, parents: number, at: Int32Array, column: Int32Array, width?: number) =>
  buildStorage({
    axes: [denseFixed('i'), axis],
    extents: new Map([
      ['i', parents],
      ['j', EXTENT],
    ]),
    coords: [at, column],
    widths: new Map(width === undefined ? [] : [['j', width]]),
    duplicates: 'share',
  })

describe('a level of ranked segments', () => {
  it('stores the distinct coordinates of each parent in order, and maps entries to positions', () => {
    fc.assert(
      fc.property(entries, axes, ({ parents, all }, axis) => {
        const at = Int32Array.from(all, (x) => x[0])
        const column = Int32Array.from(all, (x) => x[1])
        const ranked = rankSegments(at, column, EXTENT, parents)
        const held = Array.from({ length: parents }, (_, p) =>
          ascending(all.filter((x) => x[0] === p).map((x) => x[1])),
        )
        if (all.length === 0) expect(ranked).toBeNull()
        else {
          expect([...ranked!.counts]).toEqual(held.map((h) => h.length))
          expect([...ranked!.rank]).toEqual(all.map(([p, c]) => held[p]!.indexOf(c)))
        }
        const made = level(axis, parents, at, column)
        const { indptr, indices, width, positions } = made.levels.get('j')!
        const start = (p: number): number => (indptr ? indptr[p]! : p * width!)
        const widest = Math.max(...held.map((h) => h.length))
        expect(width).toBe(axis.kind === 'sparse_fixed' ? widest : null)
        expect(indices!.length).toBe(positions)
        held.forEach((h, p) => {
          const padding = new Array<number>(width === null ? 0 : width - h.length).fill(EXTENT)
          expect([...indices!.subarray(start(p), start(p + 1))]).toEqual([...h, ...padding])
        })
        const positionsOf = made.entries.positions ?? at.map((_, e) => e)
        expect([...positionsOf]).toEqual(all.map(([p, c]) => start(p) + held[p]!.indexOf(c)))
      }),
      { numRuns: cases(150) },
    )
  })

  it('falls back to sorting for scattered entries, with an equal level', () => {
    const n = 20_000
    const parents = 150_000
    const at = Int32Array.from({ length: n }, (_, e) => (e * 70_001) % parents)
    const column = Int32Array.from({ length: n }, (_, e) => (e * 7) % EXTENT)
    const axis = sparseVariable('j', 'i') as StoredAxis & { kind: 'sparse_variable' }
    expect(rankSegments(at, column, EXTENT, parents)).toBeNull()
    const { levels, entries: known } = level(axis, parents, at, column)
    const { indptr, indices } = levels.get('j')!
    const wrong = Array.from(known!.positions!, (q, e) => [q, e] as const).filter(
      ([q, e]) => indices![q] !== column[e] || q < indptr![at[e]!]! || q >= indptr![at[e]! + 1]!,
    )
    expect(wrong).toEqual([])
  })

  it('rejects a width that is too small, and names the segment', () => {
    const axis = sparseFixed('j', 'i') as StoredAxis & { kind: 'sparse_fixed' }
    const at = Int32Array.of(0, 2, 2, 1, 2)
    const column = Int32Array.of(8, 5, 1, 1, 5)
    expect(() => level(axis, 3, at, column, 1)).toThrow('position 2 of i stores 2')
    const { levels } = level(axis, 3, at, column, 2)
    expect([...levels.get('j')!.indices!]).toEqual([8, EXTENT, 1, EXTENT, 1, 5])
  })
})
