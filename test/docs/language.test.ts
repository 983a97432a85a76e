/** The examples of the language's pages, put together, are programs whose schedules are legal. */

import { resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { AXIS_KINDS } from '../../src/ast/parse/axisdef.ts'
import { QUERIES, QUERY_WORDS } from '../../src/ir/formats/queries.ts'
import { MATH } from '../../src/ir/values/math.ts'
import { coords, dense, devices, load, type SptError, type SptProgram } from '../../src/node.ts'
import { count, survey } from '../../src/search/spaces/survey.ts'
import { Folder } from '../cli/support.ts'
import { blocksOf } from './chapter.ts'
import { languagePages, read } from './site.ts'

const page = languagePages().join('\n')
const all = blocksOf(page).flatMap((b) => (b.kind === 'other' && b.language === 'spt' ? [b.text] : []))
/** Programs of their own import what they are about. */
const examples = all.filter((text) => !text.startsWith('import'))
const declared = examples.flatMap((text) =>
  [
    ...text
      .replace(/^schedule .* choose by search/gm, 'space')
      .matchAll(/^schedule (\w+)\.(\w+)(?:\([^)]*\))?( choose)?/gm),
  ].map((m) => ({
    kernel: m[1]!,
    name: m[2]!,
    isChoice: m[3] !== undefined,
  })),
)
const schedules = declared.filter((s) => !s.isChoice).map((s): [string, string] => [s.kernel, s.name])
const choices = declared.filter((s) => s.isChoice).map((s): [string, string] => [s.kernel, s.name])
/** What the page's schedules are for and the page does not write down. */
const PRODUCT = `
kernel spmm(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate spmm [i, j, f] as SRS {
    C[i, f] += A[i, j] * B[j, f]
  }
}
`
const folder = new Folder()
let program: SptProgram
beforeAll(async () => {
  // What a file declares comes before what it imports as a whole.
  const text = [`import "${resolve('kernels/formats.spt')}"`, PRODUCT, ...examples]
  program = await load(folder.file('page.spt', text.join('\n')))
})
afterAll(() => folder.remove())

test('lists every axis kind and function', () => {
  const words = new Set(page.match(/\w+/g))
  expect([...AXIS_KINDS, ...Object.keys(MATH)].filter((name) => !words.has(name))).toEqual([])
})

test('lists exactly the declared queries', () => {
  const table = read('docs/reference/formats/queries.md')
  const rows = [...table.matchAll(/^\| `(\w+)/gm)].map(([, word]) => word!)
  expect(new Set(rows)).toEqual(new Set([...QUERY_WORDS.keys(), ...Object.keys(QUERIES)]))
})

test('extends a `choose` schedule of the package', async () => {
  const [text] = all.filter((t) => t.includes(' extends {'))
  const kernel = (await load(text!)).kernel('spmm')
  const A = coords(
    [2, 2],
    [
      [0, 1],
      [1, 0],
    ],
  )
  const chosen = async (d: number) => (await kernel.choose('cpu', { A, d })).selection
  expect(await chosen(6)).toMatchObject({
    dispatch: 'auto',
    reason: 'cpu and d % 3 == 0 and cpu and d < 16',
  })
  expect(await chosen(8)).toMatchObject({ declaredBy: 'spmm.auto' })
})

test('contains schedules', () => {
  expect(schedules).toContainEqual(['spmm', 'gpu'])
  expect(schedules.length).toBeGreaterThan(1)
})

test.each(schedules)('schedule %s.%s', (kernel, schedule) => {
  const scheduled = program.kernel(kernel).schedule(schedule)
  expect(scheduled.compilation.plan.steps.length).toBeGreaterThan(0)
  expect(scheduled.emit('cuda').length).toBeGreaterThan(0)
})

test('contains the `choose` schedules tested below', () => {
  expect(choices).toEqual([
    ['aggregate', 'auto'],
    ['aggregate', 'sized'],
    ['aggregate', 'expected'],
    ['aggregate', 'mine'],
    ['aggregate', 'filled'],
    ['rectified', 'by_run'],
  ])
})

test('`choose` by sizes, device and statistics', async () => {
  const choose = async (d: number, longest: number, mean: number) => {
    const statistics = { 'longest(j)': longest, 'mean(j)': mean, 'nnz(A)': 1e6 }
    const open = program.kernel('aggregate').schedule('auto')
    return (await open.choose('cuda', { d }, { statistics })).selection
  }
  expect((await choose(64, 513, 1)).text).toBe('balanced(lanes = 16)')
  expect((await choose(64, 512, 4)).text).toBe('rows(8)')
  expect((await choose(66, 513, 3)).text).toBe('rows(4)')
})

test('`choose` with arguments', async () => {
  const choose = async (mean: number, ...args: number[]) => {
    const open = program.kernel('aggregate').schedule('sized', ...args)
    return (await open.choose('cpu', { m: 64 }, { statistics: { 'mean(j)': mean } })).selection.text
  }
  expect(await choose(8)).toBe('rows(16)')
  expect(await choose(8, 32)).toBe('rows(1, 32)')
  expect(await choose(8, 32, 8)).toBe('rows(32)')
  expect(await choose(80, 24)).toBe('rows(1, 24)')
})

test('`choose` by fill ratio', async () => {
  const open = program.kernel('aggregate').schedule('filled', 2)
  const columns = [
    [0, 0, 3],
    [0, 1, 3],
  ]
  const { selection } = await open.choose('cpu', { A: coords([4, 6], columns) })
  expect([selection.text, selection.values]).toEqual(['rows(2)', { b: 2, 'fill_ratio(A, bsr(2))': 8 / 24 }])
})

test('`choose` by the measured fill ratio of the run', async () => {
  const compiled = await program
    .kernel('rectified')
    .schedule('by_run')
    .build(await devices.cpu())
  const S = dense([16, 16], new Float32Array(256).fill(-1).fill(2, 0, 4))
  const V = dense([16, 1], new Float32Array(16).fill(1))
  const prepared = await compiled.bind({ S, V })
  const taken: (string | undefined)[] = []
  for (const _ of [0, 1, 2]) {
    await prepared.run()
    taken.push(prepared.selection?.text)
  }
  expect(taken).toEqual(['found', 'found', 'found'])
  expect(prepared.selection?.fillRatios).toEqual({
    'fill_ratio(H, bsr(4))': { value: 1 / 16, source: 'last run', measured: 1 / 16 },
  })
  expect((await prepared.get('R')).values?.[0]).toBe(8)
})

test('`fastest` selects by predicted time', async () => {
  const inputs = {
    tensors: {
      A: coords(
        [3, 4],
        [
          [0, 0, 2],
          [0, 2, 1],
        ],
      ),
    },
    params: { d: 32 },
  }
  const open = program.kernel('aggregate').schedule('expected')
  const { selection } = await open.choose('cuda', ...flatInputs(inputs))
  expect(selection.predictions.map((e) => e.text).toSorted()).toEqual([
    'balanced(lanes = 16)',
    'balanced(lanes = 8)',
    'rows(8)',
  ])
  expect((await open.choose('cpu', ...flatInputs(inputs))).selection.text).toBe('rows(4)')
})

test('a search space has legal points', async () => {
  const statistics = { 'longest(j)': 4 }
  const space = await program.kernel('aggregate').space('gpu').bind('cuda', { d: 48 }, { statistics })
  expect(count(space).points).toBeGreaterThan(40)
  expect(survey(space, { limit: 20, random: Math.random }).legal).toBeGreaterThan(0)
})

test('formats are valid', () => {
  const args: Record<string, (number | string)[]> = {
    bsr: [4],
    sell: [2, 4],
    column_tiles: [2],
    panels: [2, 4],
    vnm: [4, 8],
    hyb: [2, 3],
    dense_blocks: [2, 0.5],
  }
  const own = examples.flatMap((text) => [...text.matchAll(/^format (\w+)/gm)].map((m) => m[1]!))
  expect(own.length).toBeGreaterThan(4)
  for (const name of own) {
    const format = program.format(name, ...(args[name] ?? []))
    const parts = name === 'csf' ? format.withOrder(3).parts : format.parts
    expect(parts.length).toBeGreaterThan(0)
  }
})

test.each([
  ['f32', '1e39 - 1e39', '0'],
  ['f32', '1e39 * 0.0', '0'],
  ['f32', 'f32(1e39) - f32(1e39)', 'NaN'],
  ['i32', 'i32(2147483647) + 1', '-2147483648'],
  ['u32', '3 - 4 + 2', '1'],
  ['i32', '2147483647 + 1', 'check/literal-range'],
  ['i32', '65536 * 65536 * 65536 * 65536', 'check/literal-range'],
  ['f32', '2 / 3', 'check/integer-division'],
  ['i32', 'i + 5 / (i % 1)', 'check/division-by-zero'],
])('literals: in %s, %s is %s', async (type, value, expected) => {
  const text = `kernel k(m: size) {
    axis i = dense_fixed(m) buffer Y: ${type}[i] out
    iterate s [i] as S { Y[i] = ${value} }
  }`
  const computed = async (): Promise<string> => {
    const compiled = await (await load(text)).kernel().build(await devices.cpu())
    return String((await compiled({ m: 1 })).Y!.values![0])
  }
  const said = await computed().catch((e: SptError) => e.diagnostics[0]!.code)
  expect(said).toBe(expected)
})
