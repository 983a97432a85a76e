/** The README: its example is legal, its program and its commands run. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { spt } from '../cli/support.ts'
import { blocksOf, renewed, run } from './chapter.ts'

const page = readFileSync('README.md', 'utf8')
const blocks = blocksOf(page)
const commands = [...page.matchAll(/^spt (.*?)(?: +#.*)?$/gm)].map((m) => m[1]!)

test('the first example', async () => {
  const first = blocks[0]!
  expect(first.kind).toBe('file')
  const folder = mkdtempSync(join(tmpdir(), 'spt-readme-'))
  writeFileSync(join(folder, first.name), first.text)
  const program = await load(join(folder, first.name))
  const kernel = program.kernel('spmm')
  expect(kernel.schedules).toEqual(['gpu', 'parts'])
  for (const name of kernel.schedules)
    expect(kernel.schedule(name).compilation.plan.steps.length).toBeGreaterThan(0)
  rmSync(folder, { recursive: true })
})

test('the programs', async () => {
  expect(blocks.filter((b) => b.kind === 'ts').length).toBe(2)
  const { printed } = await run(blocks)
  expect(printed.get('use')).toBe('')
  expect(renewed(page, printed)).toBe(page)
}, 120_000)

test.each(commands)(
  'spt %s',
  async (line) => {
    const folder = mkdtempSync(join(tmpdir(), 'spt-readme-'))
    const words = [...line.matchAll(/(?:'[^']*'|\S)+/g)].map(([word]) => word.replaceAll("'", ''))
    // A search that was asked for no number of trials takes a minute.
    if (words[0] === 'tune') words.push('--trials', '2')
    const isWritten = (k: number): boolean => ['--svg', '--html'].includes(words[k - 1] ?? '')
    const { code, err } = await spt(words.map((w, k) => (isWritten(k) ? join(folder, w) : w)))
    rmSync(folder, { recursive: true })
    expect({ code, err: err.replace(/^wrote .*\n$/, '') }).toEqual({ code: 0, err: '' })
  },
  120_000,
)

test('has commands', () => {
  expect(commands.length).toBeGreaterThan(3)
})
