import fc from 'fast-check'
import { expect } from 'vitest'
import { TextCache } from '../../src/ast/latest.ts'
import { property } from '../support/property.ts'

property([
  fc.array(fc.tuple(fc.boolean(), fc.stringMatching(/^[ab]{1,4}$/))),
  fc.integer({ min: 1, max: 12 }),
])('the most recently used entries are kept, as many as fit', (asked, most) => {
  const cache = new TextCache<number>(most)
  const kept: [string, number][] = []
  for (const [k, [isKept, text]] of asked.entries()) {
    const at = kept.findIndex(([t]) => t === text)
    const [known] = at < 0 ? [] : kept.splice(at, 1)
    if (isKept) cache.put(text, k)
    else expect(cache.get(text)).toBe(known?.[1])
    if (isKept || known) kept.push([text, isKept ? k : known![1]])
    while (kept.reduce((n, [t]) => n + t.length, 0) > most) kept.shift()
  }
  for (const [text, k] of kept) expect(cache.get(text)).toBe(k)
})
