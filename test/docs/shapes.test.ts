/** The table of results of a search names every field of each type. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const doc = readFileSync('docs/reference/api/tuning-records.md', 'utf8')
const section = /## Shapes of results\n([\s\S]*)/.exec(doc)![1]!
/** A type may have several rows. */
const rows = new Map<string, Set<string>>()
for (const [, name, text] of section.matchAll(/^\| `(\w+)` \| (.*) \|$/gm))
  rows.set(
    name!,
    new Set([...(rows.get(name!) ?? []), ...[...text!.matchAll(/`(\w+)`/g)].map(([, word]) => word!)]),
  )
const sources = readdirSync('src/search', { recursive: true, encoding: 'utf8' })
  .filter((f) => f.endsWith('.ts'))
  .map((f) => readFileSync(`src/search/${f}`, 'utf8'))

/** Names of the fields that an interface, or an alternative of a union, declares itself. */
function fieldsOf(name: string): readonly string[] {
  for (const text of sources) {
    const found =
      new RegExp(`^export interface ${name}\\b[\\s\\S]*?\\{\\n([\\s\\S]*?)^\\}`, 'm').exec(text) ??
      new RegExp(`^export type ${name} =\\n([\\s\\S]*?)\\n\\n`, 'm').exec(text)
    if (found) return [...new Set([...found[1]!.matchAll(/readonly (\w+)\??:/g)].map(([, f]) => f!))]
  }
  return []
}

test.each([...rows])('%s', (name, words) => {
  const fields = fieldsOf(name)
  expect(fields.length).toBeGreaterThan(0)
  expect(fields.filter((f) => !words.has(f))).toEqual([])
})

test('every field returned by tune, search and records is documented', () => {
  const asked = [
    'Outcome',
    'Timing',
    'Trial',
    'SearchResult',
    'TuneResult',
    'Finalist',
    'StoredTrial',
    'StudySummary',
  ]
  expect(asked.filter((name) => !rows.has(name))).toEqual([])
})
