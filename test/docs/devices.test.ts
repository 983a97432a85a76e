/** The page on devices: what is printed is what its blocks print. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { blocksOf, run } from './chapter.ts'

const blocks = blocksOf(readFileSync('docs/devices.md', 'utf8'))

test('runs, and prints what is shown', async () => {
  expect(blocks.filter((b) => b.kind === 'other')).toEqual([])
  const { printed } = await run(blocks)
  const shown = blocks.filter((b) => b.kind === 'output').map((b) => [b.name, b.text] as const)
  expect(shown.length).toBeGreaterThan(0)
  expect([...printed].filter(([, text]) => text !== '')).toEqual(shown)
}, 120_000)
