/** Dispatch tables (`choose from "FILE.spt"`): the same dispatch as the rules in the text, and errors that name the place. */

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { print } from '../../src/ast/print/print.ts'
import { load } from '../../src/node.ts'
import { parse } from '../../src/schedule/steps/language.ts'
import { dispatchTableText, type StoredRule } from '../../src/search/choice/table-text.ts'

const KERNEL = `kernel mul(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j]  in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f]  out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
schedule mul.tiles(rows, each = 4) { split f by each; split i by rows }
schedule mul.plain { reorder (i, f, j) }
`
const ORIGIN = { name: 'h', status: 'transferred', note: 'by hand' } as const
const stored = (rules: readonly StoredRule[]): string =>
  dispatchTableText({ kernel: 'mul', origins: [ORIGIN], rules })

const program = (choice: string, table?: string) =>
  load(KERNEL + choice, {
    read: async (path) => {
      if (path !== 'mul.spt' || table === undefined) throw new Error('no such file')
      return table
    },
  })

async function problem(table: string, choice = 'schedule mul.auto choose from "mul.spt"'): Promise<string> {
  try {
    await program(choice, table)
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    const [d] = e.diagnostics
    const text = d!.span!.source === 'mul.spt' ? table : KERNEL + choice
    return `${d!.code}: ${d!.message} [${text.slice(d!.span!.start, d!.span!.end)}]`
  }
  return 'none'
}

const sizes = fc.integer({ min: 0, max: 40 })
const condition = fc.oneof(
  fc
    .tuple(fc.constantFrom('m', 'd', 'n', 'longest(j)', 'nnz(A)'), fc.constantFrom('<', '>=', '=='), sizes)
    .map((c) => c.join(' ')),
  fc.constantFrom('cuda', 'cpu', 'not webgpu and d % 4 == 0', 'mean(j) > 2.5 * d'),
)
const call = fc.oneof(
  fc.constant('plain'),
  fc
    .tuple(fc.integer({ min: 1, max: 8 }), fc.constantFrom('', ', 8', ', each = min(d + 1, 2)'))
    .map(([r, e]) => `tiles(${r}${e})`),
)
const calls = fc.oneof(call, fc.array(call, { minLength: 1, maxLength: 3 }))
const rules: fc.Arbitrary<readonly StoredRule[]> = fc
  .tuple(fc.array(fc.record({ when: condition, calls }), { maxLength: 4 }), calls)
  .map(([list, last]) => [...list, { calls: last, origin: 'h' }])

const ruleText = ({ when, calls: c }: StoredRule): string =>
  `${when === undefined ? 'otherwise' : `when (${when})`} ${typeof c === 'string' ? c : `fastest { ${c.join('; ')} }`}`

test('a stored dispatch selects what the same rules in the text select', async () => {
  let compared = 0
  await fc.assert(
    fc.asyncProperty(
      rules,
      sizes,
      sizes,
      sizes,
      fc.constantFrom('cpu', 'cuda', 'webgpu'),
      async (list, m, d, longest, kind) => {
        const values = { 'longest(j)': longest, 'nnz(A)': m * longest, 'mean(j)': longest / 2 }
        const isMentioned = ([name]: readonly [string, number]) => list.some((r) => r.when?.includes(name))
        const statistics = Object.fromEntries(Object.entries(values).filter(isMentioned))
        const inputs = { params: { m, d, n: 40 }, statistics }
        const selected = async (choice: string) => {
          const p = await program(choice, stored(list))
          const { selection } = await p
            .kernel()
            .schedule('auto')
            .choose(kind as 'cpu', ...flatInputs(inputs))
          const { span, origin, ...rest } = selection
          return { rest, origin }
        }
        const text = await selected(`schedule mul.auto choose { ${list.map(ruleText).join('; ')} }`)
        const table = await selected('schedule mul.auto choose from "mul.spt"')
        expect(table.rest).toEqual(text.rest)
        expect(text.origin).toBeNull()
        if (table.rest.reason === 'otherwise') expect(table.origin).toEqual(ORIGIN)
        compared++
      },
    ),
    { numRuns: 25 },
  )
  expect(compared).toBe(25)
})

test('the declaration is printed as written', () => {
  const text = '// Found on graphs.\nschedule mul.auto(b = 4) choose from "../data/mul.spt"\n'
  expect(print(parse({ name: 'mul.spt', text: `${KERNEL}\n${text}` })).endsWith(`\n${text}`)).toBe(true)
})

test('a damaged table is an error with a place, or still a table', async () => {
  const whole = stored([
    { when: 'cuda and d % 4 == 2', calls: ['tiles(1, each = 2)', 'plain'], origin: 'h' },
    { calls: 'plain' },
  ])
  const choice = 'schedule mul.auto choose from "mul.spt"'
  let rejected = 0
  await fc.assert(
    fc.asyncProperty(
      fc.nat({ max: whole.length - 1 }),
      fc.nat({ max: 6 }),
      fc.constantFrom('', '"', '{', '}', ',', '0', '\\', '\n', '\u0000', 'd', '(', '\ud800'),
      async (at, length, by) => {
        const table = whole.slice(0, at) + by + whole.slice(at + length)
        const error: unknown = await program(choice, table).then(
          () => undefined,
          (e) => e,
        )
        if (error === undefined) return
        expect(error).toBeInstanceOf(SptError)
        for (const d of (error as SptError).diagnostics) {
          expect(d.span).toBeDefined()
          expect(d.code).not.toMatch(/^compiler/)
        }
        rejected++
      },
    ),
    { numRuns: 30 },
  )
  expect(rejected).toBeGreaterThan(12)
})

describe('a wrong dispatch table', () => {
  const rule = (text: string): string => `dispatch mul { ${text}; otherwise plain }`
  const origin = (text: string): string => `dispatch mul { origin "h" ${text}; otherwise plain from "h" }`
  test.each([
    ['JSON', '{ "version": 1 }', 'parse/unexpected: unexpected `{` [{]'],
    ['cut off', 'dispatch mul { otherwise', 'parse/unclosed: `{` is never closed [{]'],
    ['no schedule', rule('when (cpu)'), 'parse/unexpected: unexpected `;` [;]'],
    [
      'an early otherwise',
      rule('otherwise plain'),
      'parse/after-otherwise: nothing is left to choose after `otherwise` [otherwise plain]',
    ],
    [
      'an empty list',
      rule('when (cpu) fastest { }'),
      'check/empty-choice: `fastest` needs a schedule [when (cpu) fastest { }]',
    ],
    ['nothing', 'dispatch mul { }', 'check/empty-choice: mul.auto has nothing to choose from [auto]'],
    ['no such origin', rule('when (cpu) plain from "x"'), 'table/field: there is no origin "x" ["x"]'],
    [
      'an unknown schedule',
      rule('when (cpu) plane'),
      'check/unknown-schedule: kernel mul has no schedule plane [plane]',
    ],
    [
      'an unknown parameter',
      rule('when (cpu) tiles(1, ech = 2)'),
      'check/unknown-parameter: schedule tiles has no parameter ech [ech]',
    ],
    ['an unknown size', rule('when (k > 1) plain'), 'check/unknown-name: there is no k here [k]'],
    ['a wrong condition', rule('when (d < ) plain'), 'parse/unexpected: unexpected `)` [)]'],
    [
      'another kernel',
      'dispatch add { otherwise plain }',
      'table/kernel: `mul.spt` holds a dispatch of kernel add ["mul.spt"]',
    ],
    [
      'a measured origin without a device',
      origin('measured { }'),
      'table/field: origin "h" is measured and has no field device ["h"]',
    ],
    [
      'a transferred origin without a note',
      origin('transferred { }'),
      'table/field: origin "h" is transferred and has no field note ["h"]',
    ],
    [
      'two tables of a kernel',
      'dispatch mul { otherwise plain }\ndispatch mul { otherwise plain }',
      'link/duplicate-name: `dispatch mul` is declared twice [mul]',
    ],
    [
      'an origin twice',
      'dispatch mul { origin "h" transferred { note "x" }; origin "h" transferred { note "y" }; otherwise plain }',
      'table/field: origin "h" is given twice ["h"]',
    ],
    ['another status', origin('found { note "x" }'), 'table/field: origin "h" is found [found]'],
    [
      'an unknown field',
      origin('transferred { note "x"; nota "x" }'),
      'table/field: origin "h" has no field nota [nota]',
    ],
    [
      'a field twice',
      origin('transferred { note "x"; note "y" }'),
      'table/field: note is given twice [note "y"]',
    ],
    [
      'a date of another form',
      origin('transferred { note "x"; date "yesterday" }'),
      'table/field: date has a value that does not fit [date "yesterday"]',
    ],
    ...['3', '""', '"x", "y"'].map((value) => [
      `a device of another form: ${value}`,
      origin(`transferred { note "x"; device ${value} }`),
      `table/field: device has a value that does not fit [device ${value}]`,
    ]),
    [
      'a count of another form',
      origin('transferred { note "x"; trials 1.5 }'),
      'table/field: trials has a value that does not fit [trials 1.5]',
    ],
  ])('%s', async (_, table, expected) => {
    expect(await problem(table)).toBe(expected)
  })

  test('a program, a missing file, a text without a reader, a file of an earlier version', async () => {
    expect(await problem('', 'schedule mul.auto choose from "mul.spt"')).toBe(
      'table/program: `mul.spt` has no dispatch table ["mul.spt"]',
    )
    await expect(program('schedule mul.auto choose from "mul.spt"')).rejects.toThrow('mul.spt')
    expect(await problem('', 'schedule mul.auto choose from "mul.json"')).toBe(
      'table/version: dispatch tables are programs now, not JSON ["mul.json"]',
    )
  })

  test('an origin outside of a table', async () => {
    expect(await problem('', 'schedule mul.auto choose { otherwise plain from "h" }')).toBe(
      'table/field: only the branches of a dispatch table have an origin ["h"]',
    )
  })
})

test('a file may hold tables of several kernels, and other declarations', async () => {
  const table = `kernel other(n: size) {}
dispatch other { otherwise plain }
dispatch mul { otherwise tiles(2) }
`
  const p = await program('schedule mul.auto choose from "mul.spt"', table)
  const { selection } = await p.kernel('mul').schedule('auto').choose('cpu', { m: 1, d: 1, n: 1 })
  expect(selection.text).toBe('tiles(2)')
})

test('a table for a type precedes the table for all types, in any order of the file', async () => {
  const kernel = `kernel scale<t: f32 or f16>(m: size) {
  axis i = dense_fixed(m)
  buffer x: t[i] in
  buffer y: t[i] out
  iterate all [i] as S { y[i] = x[i] }
}
schedule scale.plain {}
schedule scale.tiles(b) { split all.i by b -> (o, i2) }
schedule scale.auto choose from "mul.spt"
`
  const tables = ['dispatch scale { otherwise plain }', 'dispatch scale<f16> { otherwise tiles(2) }']
  for (const table of [tables.join('\n'), tables.toReversed().join('\n')]) {
    const p = await load(kernel, { read: async () => table })
    const chosen = async (name: string) =>
      (await p.kernel(name).schedule('auto').choose('cpu', { m: 1 })).selection.text
    expect([await chosen('scale'), await chosen('scale<f16>')]).toEqual(['plain', 'tiles(2)'])
  }
})
