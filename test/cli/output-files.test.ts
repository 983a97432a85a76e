/** What is written to an output of the process is there alone and whole: nothing writes over anything, reports go aside. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { Folder, MATRIX, PROGRAM, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())
const program = folder.file(
  'mul.spt',
  `${PROGRAM}schedule mul.cpu_space choose by search { by in 2, 4 split f by by }\n`,
)
const matrix = folder.file('a.mtx', MATRIX)
const data = ['--bind', `A=${matrix}`, '--size', 'd=8', '--size', 'alpha=2']
const db = folder.at('r.db')
const tuning = ['tune', program, ...data, '--trials', '1', '--strategy', 'random']

/** Each with the option that writes, what is written, and a part of what else is said. */
const CASES: readonly (readonly [argv: readonly string[], option: string, whole: RegExp, report: string])[] =
  [
    [
      [...tuning, '--db', db],
      '--out',
      /^import \{ mul \} from[\s\S]*^schedule mul\.\w+ \{[\s\S]*\}\n$/m,
      'trials ',
    ],
    [tuning, '--html', /^<!doctype html>[\s\S]*<\/html>\n?$/i, 'trials '],
    [['emit', program, '--target', 'js'], '--out', /^\/\/ [\s\S]*\}\n?$/, ''],
    [['explain', program, ...data, '--device', 'cpu'], '--json', /^\{[\s\S]*\}\n$/, 'launch'],
    [['format', matrix, '--as', 'csr'], '--svg', /^<svg[\s\S]*<\/svg>\n?$/, 'nonzeros'],
    [['format', matrix, '--as', 'csr'], '--json', /^\{[\s\S]*\}\n$/, 'nonzeros'],
    [['records', 'export', '--db', db, '--format', 'csv'], '--out', /^trial,study[\s\S]*\r\n$/, ''],
  ]

test.each(CASES)('%j %s', async (argv, option, whole, report) => {
  const { code, out, err } = await spt([...argv, option, '/dev/stdout'])
  expect([code, err]).toEqual([0, expect.stringContaining(report)])
  expect(out).toMatch(whole)
  const path = folder.at(option === '--out' ? 'written.spt' : 'written')
  const toFile = await spt([...argv, option, path])
  expect([toFile.code, toFile.out]).toEqual([0, expect.stringContaining(report)])
  expect(readFileSync(path, 'utf8')).toMatch(whole)
  const aside = await spt([...argv, option, '/dev/stderr'])
  expect([aside.code, aside.out]).toEqual([0, expect.stringContaining(report)])
})

test('a tuned program imports its kernel relative to the working directory', async () => {
  const { out } = await spt([...tuning, '--out', '/dev/stdout'])
  const [, from] = /^import \{ mul \} from "(.*)"$/m.exec(out)!
  expect(resolve(from!)).toBe(program)
})

test('two outputs, and records, are rejected on standard output', async () => {
  const said = async (...more: string[]): Promise<string> => {
    const { code, err, out } = await spt([...tuning, ...more])
    expect([code, out]).toEqual([2, ''])
    return err
  }
  expect(await said('--out', '/dev/stdout', '--html', '/dev/stdout')).toContain(
    'would both be standard output',
  )
  expect(await said('--db', '/dev/stdout')).toContain('cannot be written again and again')
  const { code, err } = await spt([...tuning, '--out', '/dev/stdout', '--json'])
  expect([code, err]).toEqual([2, expect.stringContaining('--out /dev/stdout and --json would both')])
})

test.skipIf(!existsSync('/dev/stdout'))('redirected to a file, by its name and as the same file', () => {
  const command = fileURLToPath(new URL('../../dist/lib/spt.js', import.meta.url))
  const [json, own] = [folder.at('one.json'), folder.at('two.json')]
  for (const [path, to] of [
    ['/dev/stdout', json],
    [own, own],
  ] as const) {
    const line = `"${process.execPath}" "${command}" format "${matrix}" --as csr --json "${path}" > "${to}"`
    const { status, stderr } = spawnSync('sh', ['-c', line], { encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, expect.stringContaining('nonzeros')])
    expect(JSON.parse(readFileSync(to, 'utf8'))).toMatchObject({ tensor: 'a.mtx' })
  }
})
