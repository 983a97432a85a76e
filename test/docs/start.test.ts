/** The start pages: their blocks and their commands run. test/browser runs the pages of docs/start/browser.md. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { spt } from '../cli/support.ts'
import { blocksOf } from './chapter.ts'
import { executes, pagesIn, read } from './site.ts'

executes('docs/start')

const commandsIn = (page: string): readonly string[] =>
  [...read(page).matchAll(/^npx spt (.*?)(?: +#.*)?$/gm)].map(([, line]) => line!)
const withCommands = pagesIn('docs/start').filter((page) => commandsIn(page).length > 0)

test('most start pages have commands', () => expect(withCommands.length).toBeGreaterThan(2))

describe.each(withCommands)('%s', (page) => {
  const text = read(page)
  const commands = commandsIn(page)
  const home = process.cwd()
  let folder = ''
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'spt-start-'))
    for (const block of blocksOf(text))
      if (block.kind === 'file') writeFileSync(join(folder, block.name), block.text)
    process.chdir(folder)
  })
  afterAll(() => {
    process.chdir(home)
    rmSync(folder, { recursive: true })
  })
  test.for(commands)('spt %s', async (line, { skip }) => {
    const words = [...line.matchAll(/(?:'[^']*'|\S)+/g)].map(([word]) => word.replaceAll("'", ''))
    const { code, err } = await spt(words)
    skip(words.includes('cuda') && err.includes('device/absent'), 'there is no CUDA device')
    expect({ code, err: err.replace(/^wrote .*\n$/, '') }).toEqual({ code: 0, err: '' })
  })
})
