/** The cookbook: a page for each kernel of kernels/, generated, whose commands run. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { commandOf, cookbookPages, fileNameOf, kernels, rows } from '../../scripts/cookbook.mjs'
import { spt } from '../cli/support.ts'
import { property } from '../support/property.ts'
import { executes, pagesIn, read } from './site.ts'

test('the pages are those of scripts/cookbook.mjs (UPDATE_GOLDEN=1 renews them)', () => {
  const pages: ReadonlyMap<string, string> = cookbookPages()
  if (process.env.UPDATE_GOLDEN) for (const [path, text] of pages) writeFileSync(path, text)
  expect(['kernels/README.md', ...pagesIn('docs/cookbook')].toSorted()).toEqual([...pages.keys()].toSorted())
  for (const [path, text] of pages) expect(read(path), path).toBe(text)
})

test('the tables have exactly one row per kernel', () => {
  expect([...rows.keys()].toSorted()).toEqual([...kernels.keys()].toSorted())
})

const commands = [...rows].filter(([, row]) => row.run !== undefined)

test.each(commands)('the options of %s name its sizes, axes, buffers and schedules', (kernel, row) => {
  const { params, axes, buffers } = kernels.get(kernel)!
  const named = (option: string): string[] =>
    [...row.run.matchAll(new RegExp(`--${option} (\\w+)=`, 'g'))].map((m) => m[1]!)
  expect(named('size').filter((name) => !params.includes(name))).toEqual([])
  const bindable = [...axes.keys(), ...buffers.map((b: { name: string }) => b.name)]
  expect(named('bind').filter((name) => !bindable.includes(name))).toEqual([])
  const schedules = [...read(`docs/cookbook/${fileNameOf(kernel)}.md`).matchAll(/^(?:- |\| )`(\w+)/gm)].map(
    (m) => m[1],
  )
  expect(schedules).toContain(row.gpu ?? 'auto')
})

executes('docs/cookbook')

describe('commands', () => {
  const home = process.cwd()
  const folder = mkdtempSync(join(tmpdir(), 'spt-cookbook-'))
  beforeAll(() => {
    for (const [, row] of commands)
      for (const [name, text] of Object.entries(row.files ?? {}))
        writeFileSync(join(folder, name), text as string)
    process.chdir(folder)
  })
  afterAll(() => {
    process.chdir(home)
    rmSync(folder, { recursive: true })
  })
  property([fc.constantFrom(...commands.map(([kernel]) => kernel as string))], { numRuns: 4 })(
    'a random sample agrees with the reference',
    async (kernel) => {
      const { code, err } = await spt(commandOf(kernel).split(' '))
      expect({ kernel, code, err }).toEqual({ kernel, code: 0, err: '' })
    },
  )
})
