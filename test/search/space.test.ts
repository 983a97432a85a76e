/** Spaces that functions describe, and what is asked of spaces that have no point, or too many. */
import { describe, expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { rankingOrigin, registerPredictor } from '../../src/search/ranking/origin.ts'
import { formatChoices } from '../../src/search/spaces/format-choices.ts'
import {
  checkPoint,
  count,
  type Decisions,
  listPoints,
  type Outcome,
  outline,
  points,
  rejectionCode,
  scheduleText,
  search,
  space,
  survey,
  typescriptText,
} from '../../src/search.ts'
import { refusal } from '../support/refusal.ts'
import { KERNEL } from './space-gen.ts'

const program = await load(`${KERNEL}
schedule product.inner(most = 4) choose by search {
  b in 1, 2 .. most
  use tiled(b, 2)
}
schedule product.outer choose by search {
  wide from 2 to 4 by 2
  use inner(wide) or inner(wide * 2) or refused(wide)
}
schedule product.unequal choose by search {
  a from 1 to 4
  b from 1 to 4 where (b > a + 1)
  use tiled(b, a)
}
schedule product.asking choose by search {
  b in 1, 2, 4 where (m % b == 0 and cuda)
  use tiled(b)
}
`)
const kernel = program.kernel('product')
type K = typeof kernel

describe('a function', () => {
  const own = space('own', kernel, (p) => {
    const rows = p.number('rows', [1, 2, 4, 8])
    const cols = p.number('cols', [1, 2, 4, 8])
    p.only(rows * cols === 8)
    const steps = p.pick('steps', { tiled: (k: K) => k.schedule('tiled', rows, cols), none: (k: K) => k })
    const unrolled = rows < 8 && p.flag('unrolled')
    return (k) => (unrolled ? steps(k).unroll('f') : steps(k))
  })

  test('decides in its order, and excludes later rejected points', () => {
    expect(own.next({})).toMatchObject({ name: 'rows', values: [1, 2, 4, 8], ordered: true })
    expect(own.next({ rows: 2 })).toMatchObject({ name: 'cols', values: [4] })
    expect(own.next({ rows: 2, cols: 8 })?.values).toEqual([])
    expect(own.next({ rows: 8, cols: 1, steps: 'none' })).toBeNull()
    expect(count(own)).toEqual({ points: 3 * 2 * 2 + 2, isExact: true })
  })

  test('applies steps, whose rejections are counted', () => {
    const kernel8 = own.kernel({ rows: 8, cols: 1, steps: 'tiled' })
    expect(kernel8.trace).toEqual(kernel.schedule('tiled', 8, 1).trace)
    // `f` is split where the schedule is applied, and has no constant extent where it is not.
    const { legal, rejectedByCode, isComplete } = survey(own)
    const refused = { 'schedule/consumed-loop': 3, 'schedule/extent-not-constant': 3 }
    expect([legal, rejectedByCode, isComplete]).toEqual([8, refused, true])
    expect(survey(own, { limit: 5 }).isComplete).toBe(false)
    expect(survey(own, { limit: 30, random: Math.random }).isComplete).toBe(false)
  })

  test('is nested in others, with its names after a prefix', async () => {
    const inner = await kernel.space('inner').bind('cpu')
    const either = space('either', kernel, (p) => {
      const made = p.option('from', ['text', 'own']) === 'text' ? p.within('text', inner) : null
      return made ? () => made() : (k) => k
    })
    expect([...points(either)]).toEqual([
      { from: 'text', 'text.b': 1 },
      { from: 'text', 'text.b': 2 },
      { from: 'text', 'text.b': 4 },
      { from: 'own' },
    ])
    expect(either.kernel({ from: 'text', 'text.b': 2 }).trace).toEqual(kernel.schedule('tiled', 2, 2).trace)
  })

  const broken = (decide: (p: Decisions) => unknown) => space('broken', kernel, decide as never)
  test.each([
    ['an endless list', broken((p) => p.number('n', naturals())), 'space/endless'],
    ['a value twice', broken((p) => p.option('o', ['a', 'a'])), 'api/argument'],
    ['a name twice', broken((p) => p.number('x', [1]) + p.number('x', [1])), 'space/decided-twice'],
    ['no steps', broken((p) => p.option('o', ['a'])), 'api/argument'],
    ['no truth value', broken((p) => p.only(1 as never)), 'api/argument'],
  ])('with %s is rejected', (_, s, code) => {
    expect(refusal(() => listPoints(s)).code).toBe(code)
  })

  test.each([
    ['a promise of one', async (k: unknown) => k],
    ['another object', () => ({})],
  ])('that returns %s is rejected', (_, make) => {
    expect(refusal(() => space('made', kernel, () => make as never).kernel({})).code).toBe('api/argument')
  })

  test('that is async is rejected, and the rejection of its promise is handled', async () => {
    const unhandled: unknown[] = []
    const listen = (why: unknown): void => void unhandled.push(why)
    process.on('unhandledRejection', listen)
    try {
      const later = broken((async (p: Decisions) => p.number('c', [2, 3])) as never)
      expect(refusal(() => listPoints(later)).message).toMatch(/cannot be a promise/)
      await new Promise((done) => setTimeout(done, 20))
      expect(unhandled).toEqual([])
    } finally {
      process.off('unhandledRejection', listen)
    }
  })

  test('that throws is rejected at that point, with the reason, and continues elsewhere', () => {
    const throwing = space('throwing', kernel, (p) => {
      const by = p.number('by', [1, 2, 4])
      if (by === 2) throw new TypeError('no lanes')
      return (k) => {
        if (by === 4) (null as unknown as { steps(): void }).steps()
        return k.schedule('tiled', by, 2)
      }
    })
    expect(listPoints(throwing)).toEqual([{ by: 1 }, { by: 2 }, { by: 4 }])
    const { legal, rejectedByCode } = survey(throwing, { limit: 9 })
    expect([legal, rejectedByCode]).toEqual([1, { 'space/thrown': 2 }])
    expect(refusal(() => throwing.kernel({ by: 2 })).message).toBe(
      'the function of the space throwing throws at by = 2: no lanes',
    )
    expect(refusal(() => throwing.kernel({ by: 4 })).message).toMatch(/at by = 4: .*steps/)
  })

  test('duplicates are named', () => {
    const said = (decide: (p: Decisions) => unknown) => refusal(() => listPoints(broken(decide))).message
    expect(said((p) => p.number('c', [1, 1.5, 1]))).toBe('1 is twice among the values of c')
    expect(said((p) => p.option('o', ['a', 'b', 'b']))).toBe('"b" is twice among the values of o')
    const formats = refusal(() => formatChoices(kernel, { A: ['', 'csr', 'csr'] }))
    expect([formats.code, formats.message]).toEqual(['api/argument', '"csr" is twice among formats of A'])
  })
})

function* naturals(): Generator<number> {
  for (let n = 0; ; n++) yield n
}

describe('a text', () => {
  test('nests spaces, whose decisions depend on those around', async () => {
    const outer = await kernel.space('outer').bind('cpu')
    const all = listPoints(outer)
    expect(count(outer)).toEqual({ points: all.length, isExact: true })
    expect(all.filter((p) => p.use === 'inner(wide)')).toEqual([
      { use: 'inner(wide)', wide: 2, 'inner.b': 1 },
      { use: 'inner(wide)', wide: 2, 'inner.b': 2 },
      { use: 'inner(wide)', wide: 4, 'inner.b': 1 },
      { use: 'inner(wide)', wide: 4, 'inner.b': 2 },
      { use: 'inner(wide)', wide: 4, 'inner.b': 4 },
    ])
    expect(all.filter((p) => p.use === 'inner(wide * 2)').map((p) => p['inner2.b'])).toEqual([
      1, 2, 4, 1, 2, 4, 8,
    ])
    const point = { use: 'inner(wide * 2)', wide: 4, 'inner2.b': 8 }
    expect(outer.kernel(checkPoint(outer, point)).trace).toEqual(kernel.schedule('tiled', 8, 2).trace)
    expect(rejectionCode(outer, { use: 'refused(wide)', wide: 2 })).toBe('schedule/not-rectangular')
    expect(survey(outer)).toMatchObject({ legal: all.length - 2, isComplete: true })
  })

  test('prints as a schedule and as TypeScript', () => {
    const tiled = kernel.as('A', 'bsr', 4).unroll('ji', 2)
    expect(scheduleText(tiled, 'best')).toBe('schedule product.best {\n  A as bsr(4)\n  unroll ji by 2\n}\n')
    const text = typescriptText(tiled, 'base')
    expect((new Function('base', `return ${text}`)(kernel) as K).trace).toEqual(tiled.trace)
    expect(scheduleText(kernel, 'nothing')).toBe('schedule product.nothing {}\n')
    expect(refusal(() => scheduleText(kernel, 'no name')).code).toBe('api/argument')
  })

  test('offers the values of a number for which its condition holds', async () => {
    const unequal = await kernel.space('unequal').bind('cpu')
    const values = (a: number) => unequal.next({ a })?.values
    expect([1, 2, 3].map(values)).toEqual([[3, 4], [4], []])
  })

  test('is described to threads that rank its points by its name and arguments', async () => {
    const predict = () => ({ milliseconds: 1 }) as never
    registerPredictor(predict, () => ({ kind: 'cpu', model: {}, data: {} }) as never)
    const inner = await kernel.space('inner', 2).bind('cpu')
    expect(rankingOrigin(inner, predict)?.space).toMatchObject({ of: 'text', name: 'inner' })
  })

  test('reports missing inputs, and spaces without a point', async () => {
    const codeOf = async (made: Promise<unknown>): Promise<unknown> =>
      made.then(
        () => null,
        (e) => e.diagnostics[0].code,
      )
    const asking = kernel.space('asking')
    expect(await codeOf(asking.bind('cuda'))).toBe('bind/missing-size')
    expect(await codeOf(asking.bind('cpu', { m: 4 }))).toBe('space/empty')
    expect(await codeOf(asking.bind('cuda', { m: 3 }))).toBe(null)
    expect(await codeOf(asking.bind('gpu' as never))).toBe('api/argument')
    expect(await codeOf(asking.bind('cuda', { m: 4 }, { statistics: { 'nnz(A)': 4 } }))).toBe(
      'choose/unknown-name',
    )
    expect(refusal(() => kernel.space('none')).code).toBe('api/unknown-space')
    expect(refusal(() => kernel.space('inner', 1, 2)).code).toBe('schedule/arguments')
  })
})

test('a million points are counted at once, without a list', async () => {
  const names = ['a', 'b', 'c', 'e', 'g', 'h']
  const large = await load(`${KERNEL}
schedule product.large choose by search {
${names.map((n) => `  ${n} from 1 to 12`).join('\n')}
${names.map((n) => `  unroll f by ${n}`).join('\n')}
}`)
  const wide = await large.kernel('product').space('large').bind('cpu')
  expect(refusal(() => listPoints(wide, 1000)).code).toBe('space/too-many-points')
  expect(count(wide)).toEqual({ points: 12 ** 6, isExact: true })
  const bounded = count(wide, 3)
  expect(bounded).toMatchObject({ points: 12 ** 6, isExact: false })
  expect(bounded.lowerBound).toBeLessThan(12 ** 6)
})

describe('decisions after the function has returned', () => {
  type P = Decisions
  const late: Record<string, (p: P) => (k: K) => K> = {
    'a picked function': (p) => {
      const f = p.pick('f', {
        a: () => {
          const by = p.number('by', [2, 4])
          return (k: K) => k.unroll('k', by)
        },
        b: () => (k: K) => k,
      })
      return (k) => f()(k)
    },
    'behind the last value': (p) => {
      const f = p.pick('f', { a: (k: K) => k, b: (k: K) => (p.flag('g') ? k : k.schedule('tiled', 2, 2)) })
      return (k) => f(k)
    },
    'a condition': (p) => {
      const n = p.number('n', [1, 2])
      return (k) => {
        p.only(n === 1)
        return k
      }
    },
    'another space': (p) => {
      p.flag('g')
      const inner = space('inner', kernel, (q) => {
        q.flag('h')
        return (k) => k
      })
      return () => p.within('in', inner)()
    },
  }
  for (const [what, decide] of Object.entries(late))
    test(`${what}: are rejected by every traversal of the space`, async () => {
      const made = (): ReturnType<typeof space<K>> => space('late', kernel, decide)
      const all: Record<string, () => unknown> = {
        count: () => count(made()),
        points: () => [...points(made())],
        listed: () => listPoints(made()),
        survey: () => survey(made()),
        outline: () => outline(made()),
      }
      for (const [name, walk] of Object.entries(all))
        expect([name, refusal(walk)]).toMatchObject([name, { code: 'space/late-decision' }])
      const evaluate = async (asked: readonly unknown[]): Promise<Outcome[]> =>
        asked.map(() => ({ status: 'failed', code: 'x', message: 'not measured' }))
      for (const strategy of ['exhaustive', 'random', 'surrogate'] as const)
        await expect(search({ space: made(), strategy, evaluate, trials: 8 })).rejects.toMatchObject({
          diagnostics: [{ code: 'space/late-decision', hint: expect.stringContaining('p.pick') }],
        })
    })

  test('decisions in the result of `pick`, made before, are ordinary', () => {
    const early = space('early', kernel, (p) =>
      p.pick('f', {
        a: () => {
          const by = p.number('by', [2, 4])
          return (k: K) => k.unroll('f', by)
        },
        b: () => (k: K) => k,
      })(),
    )
    expect(count(early)).toEqual({ points: 3, isExact: true })
  })
})
