/** The explanations of fast kernels show schedules as they are in `kernels/`. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { pagesIn, read } from './site.ts'

const kernels = readdirSync('kernels')
  .filter((f) => f.endsWith('.spt'))
  .map((f) => readFileSync(`kernels/${f}`, 'utf8'))

test('every schedule shown is in kernels/', () => {
  const shown = pagesIn('docs/explanation').flatMap((page) => [
    ...read(page).matchAll(/```spt\n([\s\S]*?)```/g),
  ])
  expect(shown.length).toBeGreaterThan(3)
  for (const [, text] of shown)
    expect(
      kernels.some((k) => k.includes(text!.trimEnd())),
      text,
    ).toBe(true)
})
