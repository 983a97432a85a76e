/** The README: its blocks and commands run, and its pictures are those that its commands write. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { chart } from '../../scripts/performance-chart.mjs'
import { spt } from '../cli/support.ts'
import { executes } from './site.ts'

executes('README.md')

const commands = [...readFileSync('README.md', 'utf8').matchAll(/^spt (.*?)(?: +#.*)?$/gm)].map((m) => m[1]!)

test.each(commands)('spt %s', async (line) => {
  const folder = mkdtempSync(join(tmpdir(), 'spt-readme-'))
  const words = [...line.matchAll(/(?:'[^']*'|\S)+/g)].map(([word]) => word.replaceAll("'", ''))
  // Without a number of trials the search takes a minute.
  if (words[0] === 'tune') words.push('--trials', '2')
  const isWritten = (k: number): boolean => ['--svg', '--html'].includes(words[k - 1] ?? '')
  const { code, err } = await spt(words.map((w, k) => (isWritten(k) ? join(folder, w) : w)))
  expect({ code, err: err.replace(/^wrote .*\n$/, '') }).toEqual({ code: 0, err: '' })
  const picture = words[words.indexOf('--svg') + 1]!
  if (picture.endsWith('.svg')) {
    const drawn = readFileSync(join(folder, picture), 'utf8')
    const shown = join('docs', picture)
    if (process.env.UPDATE_GOLDEN) writeFileSync(shown, drawn)
    expect(drawn).toBe(readFileSync(shown, 'utf8'))
  }
  rmSync(folder, { recursive: true })
})

test('contains commands', () => {
  expect(commands.length).toBeGreaterThan(3)
})

test('the chart is drawn from the stored times (node scripts/performance-chart.mjs renews it)', () => {
  expect(readFileSync('docs/performance.svg', 'utf8')).toBe(chart())
})
