/** The pages on pruning name all exports and all diagnostics. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as pruning from '../../src/prune.ts'
import { namedIn, proseOf, read } from './site.ts'

const text = [
  'docs/how-to/prune-weights.md',
  'docs/how-to/run-pruned-layers.md',
  'docs/explanation/pruning-accuracy.md',
]
  .map(read)
  .join('\n')
const prose = proseOf(text)

test('every export, including types, is documented', () => {
  const named = namedIn(text)
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

test('every reason for rejection is documented', () => {
  const texts = readdirSync('src/prune', { recursive: true, encoding: 'utf8' })
    .filter((f) => f.endsWith('.ts'))
    .map((f) => readFileSync(`src/prune/${f}`, 'utf8'))
  const codes = new Set(
    texts.flatMap((t) => [...t.matchAll(/(?:code: |failWith\(\s*)'(prune\/[a-z-]+)'/g)].map((m) => m[1]!)),
  )
  expect(codes.size).toBeGreaterThan(8)
  expect([...codes].filter((c) => !prose.includes(`\`${c}\``))).toEqual([])
})
