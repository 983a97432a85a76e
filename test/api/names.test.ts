/** The main entries stay small. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** Names that an entry exports, types included. */
function namesOf(file: string): Set<string> {
  const text = readFileSync(file, 'utf8')
  const names = new Set<string>()
  for (const [, list] of text.matchAll(/^export (?:type )?\{([^}]*)\}/gm))
    for (const part of list!.split(',')) {
      const name = part
        .trim()
        .replace(/^type /, '')
        .replace(/^.* as /, '')
      if (name !== '') names.add(name)
    }
  for (const [, name] of text.matchAll(/^export (?:type )?\* as (\w+)/gm)) names.add(name!)
  for (const [, name] of text.matchAll(/^export (?:async )?(?:function|const|class|interface|type) (\w+)/gm))
    names.add(name!)
  return names
}

test('sparsetile and sparsetile/node export at most 60 names', () => {
  const main = namesOf('src/index.ts')
  const node = new Set([...main, ...namesOf('src/node.ts')])
  expect(main.size).toBeGreaterThan(40)
  expect(node.size).toBeLessThanOrEqual(60)
  // A star would hide names from this count.
  expect([...readFileSync('src/index.ts', 'utf8').matchAll(/^export (?:type )?\* from/gm)]).toEqual([])
})
