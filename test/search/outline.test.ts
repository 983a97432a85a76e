/** What a space decides, as a list: against all of its points, and as a sample tells it. */
import { describe, expect, test } from 'vitest'
import { load, SptError } from '../../src/node.ts'
import { outline } from '../../src/search/spaces/outline/sampling.ts'
import { count } from '../../src/search/spaces/survey.ts'
import type { DecisionValue, Point, PointSpace } from '../../src/search/types.ts'
import { space } from '../../src/search.ts'
import { runs } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { property } from '../support/property.ts'
import { drawnSpaceText, KERNEL } from './space-gen.ts'

const drawn = choiceNumbers(80).map((numbers) => drawnSpaceText(new Choices(numbers), 'drawn'))

async function spaceOf({ text, sizes }: ReturnType<typeof drawnSpaceText>): Promise<PointSpace | null> {
  try {
    const program = await load(KERNEL + text)
    return await program.kernel('product').space('drawn').bind('cpu', sizes)
  } catch (e) {
    if (e instanceof SptError) return null
    throw e
  }
}

const valuesOf = (all: readonly Point[], name: string): Set<DecisionValue> =>
  new Set(all.flatMap((p) => (Object.hasOwn(p, name) ? [p[name]!] : [])))

describe('generated spaces', () => {
  property([drawn], { numRuns: runs(30) })('have outlines that match their points', async (text) => {
    const made = await spaceOf(text)
    const { all } = text
    if (!made) return
    const found = outline(made)
    expect([found.points, found.isExact]).toEqual([all.length, true])
    const names = new Set(all.flatMap((p) => Object.keys(p)))
    expect(new Set(found.decisions.map((d) => d.name))).toEqual(names)
    for (const { name, values, unconfirmed, points, dependsOn } of found.decisions) {
      expect([new Set(values), unconfirmed]).toEqual([valuesOf(all, name), []])
      for (const [k, v] of values.entries()) expect(points![k]).toBe(all.filter((p) => p[name] === v).length)
      for (const a of dependsOn)
        for (const p of all) if (Object.hasOwn(p, name)) expect(a.values).toContain(p[a.name])
    }
  })

  property([drawn], { numRuns: runs(20) })('are partly found by samples', async (text) => {
    const made = await spaceOf(text)
    if (!made) return
    const whole = outline(made)
    const found = outline(made, { limit: 1 })
    if (found.isExact) return
    for (const d of found.decisions) {
      const same = whole.decisions.find((o) => o.name === d.name)
      for (const v of d.values) expect(same?.values).toContain(v)
      // Unsure is what no walk came to a point with; points with it may lie where no walk was.
      for (const v of d.unconfirmed) expect(d.values).not.toContain(v)
      // A dependence that a sample shows is one.
      for (const a of d.dependsOn)
        expect(
          valuesOf(
            text.all.filter((p) => Object.hasOwn(p, d.name)),
            a.name,
          ),
        ).toSatisfy((seen: Set<DecisionValue>) => [...seen].every((v) => a.values.includes(v)))
    }
  })
})

const kernel = (await load(KERNEL)).kernel('product')

test('a small one: order, points of each value, and dependences of a decision', () => {
  const small = space('small', kernel, (p) => {
    const by = p.number('by', [4, 2])
    const way = p.option('way', ['short', 'long'])
    const more = way === 'long' ? p.number('more', [1, 2]) : 0
    return (k) => k.split('i', by + more)
  })
  expect(outline(small)).toEqual({
    decisions: [
      { name: 'by', values: [2, 4], unconfirmed: [], ordered: true, points: [3, 3], dependsOn: [] },
      {
        name: 'way',
        values: ['short', 'long'],
        unconfirmed: [],
        ordered: false,
        points: [2, 4],
        dependsOn: [],
      },
      {
        name: 'more',
        values: [1, 2],
        unconfirmed: [],
        ordered: true,
        points: [2, 2],
        dependsOn: [{ name: 'way', values: ['long'] }],
      },
    ],
    points: 6,
    isExact: true,
  })
})

test('decisions without conditions are counted, for any number of values', async () => {
  const text = `${KERNEL}
schedule product.plain choose by search {
  a from 1 to 1000
  b from 1 to 1000
  use tiled(a, b)
}
`
  const plain = await (await load(text)).kernel('product').space('plain').bind('cpu', { m: 8, d: 8 })
  const { points, isExact, decisions } = outline(plain)
  expect([points, isExact, decisions.map((d) => [d.name, d.values.length, d.unconfirmed.length])]).toEqual([
    1_000_000,
    true,
    [
      ['a', 1000, 0],
      ['b', 1000, 0],
    ],
  ])
})

test('a large one is estimated, and the reported dependences are significant', () => {
  // `rare` comes some 60 times, and with no more of the values of `wide`: that says nothing.
  const large = space('large', kernel, (p) => {
    const wide = p.number('wide', [...Array(200).keys()])
    const all = Array.from({ length: 8 }, (_, k) => p.number(`n${k}`, [1, 2, 3, 4]))
    const way = p.option('way', ['short', 'long'])
    if (way === 'long' && all[0] === 1) p.number('rare', [1, 2, 3])
    return (k) => k.split('i', 1 + wide)
  })
  const { points, isExact, decisions } = outline(large)
  const all = 200 * 4 ** 8 * (2 + 2 / 4)
  expect(isExact).toBe(false)
  expect(Math.abs(points - all) / all).toBeLessThan(0.1)
  expect(decisions.map((d) => d.name)).toEqual([
    'wide',
    ...Array.from({ length: 8 }, (_, k) => `n${k}`),
    'way',
    'rare',
  ])
  expect(decisions.filter((d) => d.dependsOn.length > 0)).toEqual([
    {
      name: 'rare',
      values: [1, 2, 3],
      unconfirmed: [],
      ordered: true,
      points: null,
      dependsOn: [
        { name: 'n0', values: [1] },
        { name: 'way', values: ['long'] },
      ],
    },
  ])
})

test.each([
  ['that differ', (n: number) => String(n)],
  ['that are equal', () => 'same'],
])('lists of thousands of values are tested a bounded number of times, with rests %s', (_, keyOf) => {
  let asked = 0
  const names = ['a', 'b', 'c']
  const all = Array.from({ length: 4096 }, (_, k) => k)
  const space: PointSpace = {
    name: 'long',
    next: (partial) => {
      asked++
      const depth = Object.keys(partial).length
      // The last has no value that is allowed.
      const values = depth < 2 ? all : []
      return { name: names[depth]!, values, ordered: true, considered: all.length }
    },
    remainderKey: (partial) => {
      asked++
      const [a = 0, b = 0] = Object.values(partial) as number[]
      return `${Object.keys(partial).length} ${keyOf(a * 4096 + b)}`
    },
  }
  expect(count(space)).toMatchObject({ points: 0 })
  outline(space)
  // Each asks about 4,096 values.
  expect(asked).toBeLessThan(1000)
})
