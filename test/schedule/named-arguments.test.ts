/** Arguments by name: a use of a schedule, of a function or in a space equals the use with arguments by place. */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { errorOf } from '../api/support.ts'
import { refusal } from '../support/refusal.ts'

const PROGRAM = `kernel scale(n: size) {
  axis i = dense_fixed(n)
  axis k = dense_fixed(n)
  buffer x: f32[i, k] in
  buffer y: f32[i, k] out
  iterate each [i, k] as SS { y[i, k] = x[i, k] * 2.0 }
}
kernel twice(n: size) {
  axis r = dense_fixed(n)
  axis c = dense_fixed(n)
  buffer u: f32[r, c] in
  buffer v: f32[r, c] out
  call v = scale(scale(u)) as part
}
schedule pair(x: loop, a = 2, y: loop, c) { split x by a -> (xo, xi); split y by c -> (yo, yi) }
schedule scale.tile(a = 2, b = a * 2, c) { split i by a; split k by b -> (ko, ki); split ki by c }
schedule scale.space(a = 2, b = a * 2, c) choose by search { use tile(c = c, b = b, a = a) }
`
const withSteps = (kernel: string, steps: string, head = '') =>
  parseProgram(`${PROGRAM} schedule ${kernel}.s${head} { ${steps} }`).kernel(kernel)
const trace = (kernel: string, steps: string): readonly string[] =>
  withSteps(kernel, steps).schedule('s').trace
const SEARCH = ' choose by search'
/** The trace of the only point of a space. */
async function point(steps: string): Promise<readonly string[]> {
  const space = await withSteps('scale', steps, SEARCH).space('s').bind('cpu', { n: 64 })
  return space.kernel({}).trace
}

const size = fc.integer({ min: 1, max: 9 })

test('arguments by name, in any order, equal arguments by place', async () => {
  const order = fc.shuffledSubarray<string>(['a', 'b', 'c'], { minLength: 3 })
  const property = fc.asyncProperty(
    fc.record({ a: size, b: size, c: size }),
    fc.constantFrom<string[][]>(['a', 'b', 'c'], ['b', 'c'], ['a', 'c'], ['c']),
    fc.nat(3),
    order,
    async (values, given, count, names) => {
      const own = { a: given.includes('a') ? values.a : 2, b: 0, c: values.c }
      own.b = given.includes('b') ? values.b : own.a * 2
      const placed = given[0] === 'a' ? given.slice(0, given[1] === 'b' ? count : Math.min(count, 1)) : []
      const named = names.filter((n) => given.includes(n) && !placed.includes(n))
      const value = (n: string): number => own[n as 'a']
      const mixed = [...placed.map(value), ...named.map((n) => `${n} = ${value(n)}`)].join(', ')
      const plain = `${own.a}, ${own.b}, ${own.c}`
      const same = (kernel: string, use: (args: string) => string): void =>
        expect(trace(kernel, use(mixed))).toEqual(trace(kernel, use(plain)))
      same('scale', (args) => `use tile(${args})`)
      same('twice', (args) => `use scale.tile(${args})`)
      same('twice', (args) => `use scale.tile(${args}) at part`)
      for (const used of ['tile', 'space'])
        expect(await point(`use ${used}(${mixed})`)).toEqual(trace('scale', `use tile(${plain})`))
    },
  )
  await fc.assert(property, { numRuns: 24 })
})

test('a point that is a use of a schedule is a call with arguments by place', async () => {
  const call = async (steps: string): Promise<unknown> => {
    const space = await withSteps('scale', steps, SEARCH).space('s').bind('cpu', { n: 64 })
    return space.call({})
  }
  expect(await call('use tile(1, c = 3, b = 2)')).toEqual({ name: 'tile', args: [1, 2, 3] })
  expect(await call('use tile(1, c = 3)')).toBe(null)
})

test('functions have loops, and groups of loops, by name', async () => {
  expect(trace('scale', 'use pair(c = 4, y = k, x = i)')).toEqual(trace('scale', 'use pair(i, 2, k, 4)'))
  expect(await point('use pair(i, c = 4, y = k)')).toEqual(trace('scale', 'use pair(i, 2, k, 4)'))
  const groups = (x: string, y: string): string => `use pair(c = 4, x = ${x}, y = ${y})`
  const calls = 'use pair(part_each.i, 2, part_each.k, 4); use pair(scale_each.i, 2, scale_each.k, 4)'
  expect(trace('twice', groups('(part_each, scale_each).i', '(part_each.k, scale_each.k)'))).toEqual(
    trace('twice', calls),
  )
})

test('unknown, repeated and missing names are diagnostics', () => {
  const said = (kernel: string, steps: string, head = ''): string => {
    const { code, message } = refusal(() => withSteps(kernel, steps, head).schedules)
    return `${code}: ${message}`
  }
  const all = [
    said('scale', 'use tile(c = 1, d = 2)'),
    said('twice', 'use scale.tile(d = 1) at part'),
    said('scale', 'use tile(1, c = 1, a = 2)'),
    said('scale', 'use tile(c = 1, c = 2)'),
    said('scale', 'use tile(b = 1)'),
    said('scale', 'use space(b = 1)', SEARCH),
    said('scale', 'use pair(c = 1, x = i)'),
    said('scale', 'use tile(1, 2, 3, 4, c = 1)'),
    said('scale', 'use tile(c = 1, 2)'),
  ]
  expect(all).toEqual([
    'check/unknown-parameter: schedule tile has no parameter d',
    'check/unknown-parameter: schedule tile has no parameter d',
    'check/duplicate: a is given twice',
    'check/duplicate: c is given twice',
    'check/arguments: schedule tile needs a value for c',
    'check/arguments: space space needs a value for c',
    'check/arguments: schedule pair needs a value for y',
    'check/arguments: schedule tile is given 5 arguments',
    'parse/argument-order: an argument without a name follows one with a name',
  ])
})

test('arguments in TypeScript come after the name of a schedule', async () => {
  const program = parseProgram(`kernel twice(n: size) {
  axis i = dense_fixed(n)
  buffer X: f32[i] in
  buffer Y: f32[i] out
  iterate a [i] as S { Y[i] = X[i] * 2.0 }
}
schedule twice.rows(t = 2) { split a.i by t }
kernel top(n: size) {
  axis i = dense_fixed(n)
  buffer X: f32[i] in
  buffer Y: f32[i] out
  call Y = twice(X) as one
}`)
  const [twice, top] = [program.kernel('twice'), program.kernel('top')]
  const hintOf = async (call: () => unknown) => (await errorOf(call)).diagnostics[0]!.hint
  expect(await hintOf(() => twice.schedule('rows(4)'))).toBe(
    "pass arguments after the name: schedule('rows', 1)",
  )
  expect(await hintOf(() => top.schedule('twice.rows(t = 4) at one'))).toBe(
    "schedule('twice.rows at one', 1)",
  )
  for (const a of [Number.NaN, { t: 4 }, 1.5])
    expect((await errorOf(() => top.schedule('twice.rows at one', a as number))).code).toBe(
      'schedule/argument',
    )
  top.schedule('twice.rows at one', 4)
})
