/** What a command writes takes nothing away: no file that it read, imported ones too, and nothing that others found. */
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'

import { isQuotable, quotedPath } from '../../src/ast/imports/resolve-path.ts'
import { Call } from '../../src/cli/arguments/command.ts'
import { writeWrongResults } from '../../src/cli/tune/tuning.ts'
import { load } from '../../src/node.ts'
import { parse } from '../../src/schedule/steps/language.ts'
import { runs, sample } from '../support/cases.ts'
import { Folder, MATRIX, PROGRAM, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

const user = folder.file('user.spt', 'import "./near.spt"\nimport "./lib/far.spt"\nschedule mul.none { }\n')
folder.file('lib/far.spt', 'import "../deep.spt"\n')
const deep = folder.file('deep.spt', '// What is imported by what is imported.\n')
const near = folder.file('near.spt', PROGRAM)
const formats = folder.file('formats.spt', 'import "./lib/mine.spt"\n')
const mine = folder.file('lib/mine.spt', 'import "sparsetile/kernels/formats.spt"\n')
const matrix = folder.file('a.mtx', MATRIX)
const data = ['--bind', `A=${matrix}`, '--size', 'd=8', '--size', 'alpha=2']

test('no command overwrites a source file of the program', async () => {
  for (const [argv, path] of [
    [['tune', user, ...data, '--trials', '1', '--strategy', 'random', '--out', near], near],
    [
      [
        'tune',
        user,
        ...data,
        '--trials',
        '1',
        '--strategy',
        'random',
        '--html',
        `${folder.path}/lib/../near.spt`,
      ],
      near,
    ],
    [['tune', user, ...data, '--trials', '1', '--strategy', 'random', '--db', near], near],
    [['emit', user, '--target', 'js', '--out', near], near],
    [['explain', user, ...data, '--device', 'cpu', '--json', near], near],
    [['explain', user, ...data, '--device', 'cpu', '--json', deep], deep],
    [['format', matrix, '--from', formats, '--as', 'csr', '--svg', mine], mine],
    [['format', matrix, '--from', formats, '--as', 'csr', '--json', mine], mine],
  ] as const) {
    const before = readFileSync(path, 'utf8')
    const { code, err } = await spt(argv)
    expect([argv[0], code, err]).toEqual([argv[0], 2, expect.stringContaining('which the program imports')])
    expect(readFileSync(path, 'utf8')).toBe(before)
  }
})

test('modules in an output folder do not overwrite source files', async () => {
  const js = folder.file('mul.js', PROGRAM)
  const { code, err } = await spt([
    'emit',
    folder.file('js.spt', 'import "./mul.js"\n'),
    '--target',
    'js',
    '--out',
    `${folder.path}/`,
  ])
  expect([code, err, readFileSync(js, 'utf8')]).toEqual([
    2,
    expect.stringContaining('mul.js, which the program imports'),
    PROGRAM,
  ])
})

test('a report about an unreadable program does not overwrite it', async () => {
  const broken = folder.file('broken.spt', 'kernel {')
  const from = folder.file('from.spt', 'import "./broken.spt"\n')
  const { code } = await spt(['explain', from, '--json', broken])
  expect([code, readFileSync(broken, 'utf8')]).toEqual([1, 'kernel {'])
  // Figures of before are.
  const old = folder.file('old.json', '{"launches": []}\n')
  utimesSync(old, 1, 1)
  await spt(['explain', from, '--json', old])
  expect(JSON.parse(readFileSync(old, 'utf8'))).toHaveProperty('error')
})

test('bug reports of earlier and concurrent runs are kept', async () => {
  mkdirSync(folder.at('bugs'))
  writeFileSync(folder.at('bugs/spt-bug-mul-2.json'), 'another')
  const errs: string[] = []
  const call = new Call('tune', [user], new Map([['bugs', [folder.at('bugs')]]]), {
    err: (text: string) => void errs.push(text),
  } as never)
  const given = { call, kernel: { name: 'mul' }, kind: 'cpu' } as never
  const wrong = [1, 2].map((by) => ({
    space: 's',
    point: { by },
    message: 'C differs',
    trace: '[]',
    seed: 5,
  }))
  await Promise.all([writeWrongResults(given, wrong), writeWrongResults(given, wrong)])
  const files = readdirSync(folder.at('bugs'))
  expect(files.sort()).toEqual([1, 2, 3, 4, 5].map((n) => `spt-bug-mul-${n}.json`))
  const texts = files.map((f) => readFileSync(folder.at(`bugs/${f}`), 'utf8'))
  expect(texts[1]).toBe('another')
  const points = texts.filter((t) => t !== 'another').map((t) => JSON.parse(t).point.by)
  expect(points.sort()).toEqual([1, 1, 2, 2])
  for (const f of files.filter((f) => !f.endsWith('-2.json'))) expect(errs.join('')).toContain(f)
})

test('paths are read as they are printed', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'a./ \\\'"%#\t$é{}*\n') }), (path) => {
      fc.pre(isQuotable(path))
      const { imports } = parse({ name: 'x.spt', text: `import ${quotedPath(path)}\n` })
      expect(imports.map((i) => i.path.value)).toEqual([path])
    }),
    { numRuns: runs(100) },
  )
})

test('the output of tune may be in any folder, or is rejected before measuring', async () => {
  const legal = ["we'ird/a b.spt", 'per%20cent#/é.spt', 'tab\there/k.spt']
  for (const name of [...sample(legal, 1), 'quo"te/k.spt']) {
    const program = folder.file(
      name,
      `${PROGRAM}schedule mul.cpu_space choose by search { by in 2, 4 split f by by }\n`,
    )
    const argv = ['tune', program, ...data, '--strategy', 'random', '--trials', '1', '--seed', '1', '--out']
    const out = folder.at('fast.spt')
    const { code, err } = await spt([...argv, out])
    if (name.includes('"')) {
      expect([code, err]).toEqual([2, expect.stringContaining('no program can import')])
      // Beside it there is nothing to be written that could not be.
      const beside = `${dirname(program)}/fast.spt`
      expect((await spt([...argv, beside])).code).toBe(0)
      expect((await load(beside)).kernel().schedules).toContain('tuned')
      continue
    }
    expect([name, code, err]).toEqual([name, 0, ''])
    expect((await load(out)).kernel().schedules).toContain('tuned')
  }
})
