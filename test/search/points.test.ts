import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import { outline } from '../../src/search/spaces/outline/sampling.ts'
import {
  checkPoint,
  crossover,
  mutate,
  neighbours,
  pointKey,
  points,
  repairPoint,
  samplePoint,
} from '../../src/search/spaces/points.ts'
import { count } from '../../src/search/spaces/survey.ts'
import type { Point, PointSpace } from '../../src/search/types.ts'
import { runs } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { property } from '../support/property.ts'
import { refusal } from '../support/refusal.ts'
import { drawnSpace } from './random-space.ts'

const drawn = fc
  .tuple(choiceNumbers(60), fc.boolean())
  .map(([numbers, withRest]) => drawnSpace(new Choices(numbers), withRest))

const keys = (list: Iterable<Point>): string[] => [...list].map(pointKey)

/** Random numbers that a property can replay. */
const randoms = fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }))
const randomOf = (stream: Iterator<number>) => (): number => stream.next().value as number

/** `n` decisions of `size` values each, with nothing between them. */
const grid = (n: number, size: number): PointSpace => ({
  name: 'grid',
  next: (partial) => {
    const k = Object.keys(partial).length
    const values = Array.from({ length: size }, (_, v) => v)
    return k < n ? { name: `p${k}`, values, ordered: true } : null
  },
})

describe('points of generated spaces', () => {
  const parameters = { numRuns: runs(150) }

  property([drawn], parameters)('equal the enumerated list, each once, and are counted', (space) => {
    const listed = keys(space.all).sort()
    expect(keys(points(space)).sort()).toEqual(listed)
    expect(count(space)).toEqual({ points: listed.length, isExact: true })
  })

  property([drawn, randoms], parameters)('are members after sampling and mutation', (space, stream) => {
    const random = randomOf(stream)
    const all = new Set(keys(space.all))
    const point = samplePoint(space, random)
    expect(point === null).toBe(all.size === 0)
    if (!point) return
    expect(all).toContain(pointKey(point))
    expect(checkPoint(space, Object.fromEntries(Object.entries(point).reverse()))).toEqual(point)
    expect(repairPoint(space, point)).toEqual(point)
    const near = [...neighbours(space, point)]
    const other = mutate(space, point, random)
    for (const p of other ? [...near, other] : near) {
      expect(all).toContain(pointKey(p))
      expect(pointKey(p)).not.toBe(pointKey(point))
    }
    expect(new Set(keys(near)).size).toBe(near.length)
    expect(other === null).toBe(all.size === 1)
    const child = crossover(space, point, other ?? point, random)!
    expect(all).toContain(pointKey(child))
  })
})

describe('large spaces', () => {
  test('are counted up to a limit, enumerated lazily, and sampled', () => {
    const space = grid(30, 4)
    // All walks have the same product: the estimate is exact.
    const found = count(space, 1000)
    expect(found).toEqual({ points: 4 ** 30, isExact: false, lowerBound: found.lowerBound })
    expect(found.lowerBound).toBeGreaterThan(0)
    expect(found.points).toBe(outline(space).points)
    expect(points(space).next().value).toMatchObject({ p0: 0, p29: 0 })
    expect(samplePoint(space, Math.random)).not.toBeNull()
    expect(neighbours(space, points(space).next().value!)).toHaveLength(30)
  })

  test('are counted by products if dependences are declared', () => {
    const space: PointSpace = {
      ...grid(30, 4),
      remainderKey: (partial) => String(Object.keys(partial).length),
    }
    expect(count(space)).toEqual({ points: 4 ** 30, isExact: true })
  })

  test('are sampled uniformly if they can be counted', () => {
    // One of two values leads to a single point, the other to nine.
    const space: PointSpace = {
      name: 'lopsided',
      next: ({ a, b }) =>
        a === undefined
          ? { name: 'a', values: ['one', 'many'], ordered: false }
          : a === 'many' && b === undefined
            ? { name: 'b', values: [1, 2, 3, 4, 5, 6, 7, 8, 9], ordered: true }
            : null,
      remainderKey: (partial) => JSON.stringify(partial),
    }
    const times = new Map<string, number>()
    for (let k = 0; k < 1000; k++) {
      const point = pointKey(samplePoint(space, () => (k + 0.5) / 1000)!)
      times.set(point, (times.get(point) ?? 0) + 1)
    }
    expect(times.get(pointKey({ a: 'one' }))).toBe(100)
  })
})

test('likely values are sampled more often, with near numbers, and all others sometimes', () => {
  const values = [1, 2, 4, 8, 16, 32, 64, 128]
  const space: PointSpace = {
    name: 'likely',
    next: ({ a, b }) =>
      a === undefined
        ? { name: 'a', values, ordered: true, likely: [16] }
        : b === undefined
          ? { name: 'b', values: ['x', 'y', 'z', 'w'], ordered: false, likely: ['y', 'absent'] }
          : null,
  }
  const generator = new Random(1)
  const times = new Map<unknown, number>()
  for (let k = 0; k < 4000; k++)
    for (const value of Object.values(samplePoint(space, () => generator.next())!))
      times.set(value, (times.get(value) ?? 0) + 1)
  const of = values.map((v) => times.get(v)!)
  expect(Math.min(...of)).toBeGreaterThan(150)
  // Half of half at it, an eighth on both sides.
  expect(of[4]).toBeGreaterThan(of[3]! * 1.3)
  expect(of[3]).toBeGreaterThan(of[1]!)
  expect(of[5]).toBeGreaterThan(of[7]!)
  expect(times.get('y')).toBeGreaterThan(times.get('x')! * 1.5)
  expect(Math.min(...['x', 'z', 'w'].map((v) => times.get(v)!))).toBeGreaterThan(500)
})

describe('invalid points', () => {
  const space = grid(2, 3)
  test.each([
    [{ p0: 1 }, 'does not decide p1'],
    [{ p0: 7, p1: 0 }, 'p0 cannot be 7'],
    [{ p0: 1, p1: 1, p2: 1 }, 'nothing called p2'],
  ])('%j are rejected', (point, message) => {
    const error = refusal(() => checkPoint(space, point as Point))
    expect(error.code).toBe('space/point')
    expect(error.message).toContain(message)
  })
})
