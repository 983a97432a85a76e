/** The page on searching: what is printed is what its blocks print. */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { blocksOf, renewed, run } from './chapter.ts'

const page = readFileSync('docs/search.md', 'utf8')
const blocks = blocksOf(page)

test('runs, and prints what is shown', async () => {
  const { printed } = await run(blocks)
  if (process.env.UPDATE_GOLDEN) writeFileSync('docs/search.md', renewed(page, printed))
  const shown = blocks.filter((b) => b.kind === 'output').map((b) => [b.name, b.text] as const)
  expect(shown.length).toBeGreaterThan(0)
  expect([...printed].filter(([, text]) => text !== '')).toEqual(shown)
}, 120_000)
