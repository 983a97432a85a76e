/** The page on pruning: it runs, and names all that can be imported and all that is refused. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as pruning from '../../src/prune.ts'
import { blocksOf, renewed, run } from './chapter.ts'

const path = 'docs/pruning.md'
const page = readFileSync(path, 'utf8')
const prose = page.replace(/^```[\s\S]*?^```$/gm, '')

test('its blocks run, and print what it says', async () => {
  const { printed } = await run(blocksOf(page))
  if (process.env.UPDATE_GOLDEN) writeFileSync(path, renewed(page, printed))
  else expect(renewed(page, printed)).toBe(page)
}, 120_000)

test('every export is in it, types as well', () => {
  const named = new Set(
    [...prose.matchAll(/`([^`\n]+)`/g)].flatMap(([, code]) => code!.match(/[A-Za-z_]\w*/g)),
  )
  const listed = [...readFileSync('src/prune.ts', 'utf8').matchAll(/\btype (\w+)|export type \{ ([^}]*) \}/g)]
  const types = [
    ...listed.flatMap(([, one, list]) => (one ? [one] : list!.split(', '))),
    ...[...readFileSync('src/prune/types.ts', 'utf8').matchAll(/^export (?:interface|type) (\w+)/gm)].map(
      (m) => m[1]!,
    ),
  ]
  expect(types).toContain('PruneReport')
  expect(types).toContain('PruneOptions')
  expect([...Object.keys(pruning), ...types].filter((n) => !named.has(n))).toEqual([])
})

test('every refusal is in it', () => {
  const texts = readdirSync('src/prune', { recursive: true, encoding: 'utf8' })
    .filter((f) => f.endsWith('.ts'))
    .map((f) => readFileSync(`src/prune/${f}`, 'utf8'))
  const codes = new Set(texts.flatMap((t) => [...t.matchAll(/code: '(prune\/[a-z-]+)'/g)].map((m) => m[1]!)))
  expect(codes.size).toBeGreaterThan(8)
  expect([...codes].filter((c) => !prose.includes(`\`${c}\``))).toEqual([])
})
