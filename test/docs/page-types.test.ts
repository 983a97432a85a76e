/** The TypeScript of all pages that run, type checked as one program. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { executedPages, typeErrors } from './site.ts'

test('the TypeScript of pages type-checks', () => {
  const pages = executedPages()
  expect(pages.length).toBeGreaterThan(20)
  expect(typeErrors(pages).join('\n')).toBe('')
})

test('every executable page is executed by a test file', () => {
  const files = readdirSync('test/docs').filter((name) => name.endsWith('.test.ts'))
  const texts = files.map((name) => readFileSync(`test/docs/${name}`, 'utf8'))
  const run = texts.flatMap((text) => [...text.matchAll(/^executes\('(.*)'\)/gm)].map((m) => m[1]!))
  for (const page of executedPages())
    expect(run.filter((path) => page.startsWith(path))).toEqual([expect.any(String)])
})
