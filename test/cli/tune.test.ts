/** `spt tune`: the fastest schedule of a kernel on a matrix, kept, gone on with, written as a schedule that reads back. */
import { existsSync, readFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { Folder, MATRIX, PROGRAM, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

const program = folder.file(
  'mul.spt',
  `${PROGRAM}
space mul.cpu_space {
  by in 1, 2, 4, 8 where (by != 1)
  either { split f by by -> (fo, fi) } or { split nowhere by by -> (a, b) }
}
`,
)
const data = [
  '--bind',
  `A=${folder.file('a.mtx', MATRIX)}`,
  '--size',
  'd=8',
  '--size',
  'alpha=2',
  '--seed',
  '5',
]

test('finds, writes, keeps and goes on', async () => {
  const db = folder.at('r.db')
  const out = folder.at('fast.spt')
  const first = await spt([
    'tune',
    program,
    ...data,
    '--trials',
    '4',
    '--db',
    db,
    '--json',
    '--strategy',
    'exhaustive',
  ])
  expect([first.code, first.err]).toEqual([0, ''])
  const found = JSON.parse(first.out)
  expect(found.trials).toHaveLength(4)
  expect(found.finals.map((f: { name: string }) => f.name)).toEqual(
    expect.arrayContaining(['best', 'standard', 'A dense']),
  )
  const again = await spt([
    'tune',
    program,
    ...data,
    '--trials',
    '4',
    '--db',
    db,
    '--resume',
    '--json',
    '--out',
    out,
    '--strategy',
    'exhaustive',
  ])
  const whole = JSON.parse(again.out)
  // Three points of each group: half of them are refused.
  expect([whole.known, whole.trials.length, whole.stoppedBy, whole.rejectedByCode]).toEqual([
    4,
    6,
    'exhausted',
    { 'schedule/unknown-loop': 3 },
  ])
  const text = `${readFileSync(program, 'utf8')}\n${readFileSync(out, 'utf8')}`
  const kernel = (await load(text)).kernel('mul')
  expect(kernel.schedule('tuned').toJSON()).toEqual(whole.best.trace)
})

test('says how it was, for readers', async () => {
  const { code, out } = await spt(['tune', program, ...data, '--trials', '2'])
  expect(code).toBe(0)
  for (const part of [
    'kernel    mul on',
    'space     mul.cpu_space',
    'standard',
    'schedule mul.tuned {',
    '// TypeScript',
  ])
    expect(out).toContain(part)
})

test('what is not possible is refused', async () => {
  const codeOf = async (...more: string[]): Promise<string> =>
    (await spt(['tune', program, ...data, ...more])).err
  expect(await codeOf('--trials', '0')).toContain('--trials 0 is not possible')
  expect(await codeOf('--strategy', 'evolutonary')).toContain('search/strategy')
  expect(await codeOf('--space', 'gpu')).toContain('api/unknown-space')
  expect(await codeOf('--bind', 'Z=nothing.mtx')).toContain('error')
  const empty = folder.file(
    'empty.spt',
    `${PROGRAM}\nspace mul.cpu_space { by in 1, 2 where (d < by) split f by by }\n`,
  )
  expect((await spt(['tune', empty, ...data])).err).toContain('space/empty')
  expect(existsSync('spt-bug-mul-1.json')).toBe(false)
})
