/** The import graph of sources and tests, and the tests that are nearest to a source. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Tests that start other devices or processes do not see mutants, nor do those that replace modules. */
const IS_EXCLUDED = /\bvi\.(mock|hoisted)|devices?\.cuda\(|dist\/src/

const scripts = (folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((f) => f.endsWith('.ts') && !f.endsWith('.d.ts'))
    .map((f) => `${folder}/${f}`)

/** Returns a function from a source to all test files that reach it, the nearest first. */
export function testsByDistance() {
  const importers = new Map()
  const sizes = new Map()
  const tests = new Set()
  for (const file of [...scripts('src'), ...scripts('test'), ...scripts('bench')]) {
    const text = readFileSync(file, 'utf8')
    if (file.endsWith('.test.ts') && !IS_EXCLUDED.test(text)) tests.add(file)
    sizes.set(file, text.length)
    for (const [, path] of text.matchAll(/\b(?:from|import)\b\s*\(?\s*'(\.[^']+)'/g)) {
      const imported = join(dirname(file), path)
      importers.set(imported, [...(importers.get(imported) ?? []), file])
    }
  }
  return (source) => {
    const distances = new Map([[source, 0]])
    for (const file of distances.keys())
      for (const importer of importers.get(file) ?? [])
        if (!distances.has(importer)) distances.set(importer, distances.get(file) + 1)
    const rank = (test) => distances.get(test) - similarity(test, source) + sizes.get(test) / 100_000
    return [...tests].filter((t) => distances.has(t)).sort((a, b) => rank(a) - rank(b))
  }
}

/** Number of words that the paths have in common. */
function similarity(test, source) {
  const words = (path) => new Set(path.split(/[/.-]/).slice(1))
  const own = words(source)
  return [...words(test)].filter((w) => w !== 'ts' && own.has(w)).length
}
