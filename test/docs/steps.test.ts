/** Pages of schedule steps: a heading for each step of the grammar, with an example that the compiler printed. */
import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { pagesIn, read } from './site.ts'
import { codesOfSteps, examplesOfSteps, stepsOfGrammar } from './step-examples.ts'

const FOLDER = 'docs/reference/steps'
const pages = pagesIn(FOLDER)
/** `<!-- example split -->` … `<!-- end -->` */
const MARKED = /<!-- (example|codes) ([\w ]+) -->\n[\s\S]*?<!-- end -->/g

// Without links: the error index moves codes between its pages.
const listed = (codes: readonly string[]): string =>
  codes.length > 0
    ? `Error codes: ${codes.map((c) => `\`${c}\``).join(', ')}.`
    : 'Error codes: only the [codes of every step](index.md#error-codes-of-every-step).'

test("examples and error codes equal the compiler's output (UPDATE_GOLDEN=1 renews them)", () => {
  const [examples, codes] = [examplesOfSteps(), codesOfSteps()]
  for (const page of pages) {
    const text = read(page)
    const renewed = text.replaceAll(MARKED, (_, kind: string, step: string) => {
      const own = kind === 'example' ? examples.get(step) : listed(codes.get(step) ?? [])
      return `<!-- ${kind} ${step} -->\n${own}\n<!-- end -->`
    })
    if (process.env.UPDATE_GOLDEN && renewed !== text) writeFileSync(page, renewed)
    else expect(text, page).toBe(renewed)
  }
})

test('each step of the grammar has one heading, its example and a row of the index', () => {
  const steps = stepsOfGrammar()
  const text = pages.map(read).join('\n')
  const headings = [...text.matchAll(/^## `([^`]*)`/gm)].map((m) => m[1]!)
  const shown = [...text.matchAll(/^<!-- example ([\w ]+) -->$/gm)].map((m) => m[1]!)
  expect(steps.filter((s) => !headings.includes(s))).toEqual([])
  expect([...examplesOfSteps().keys()].filter((s) => !shown.includes(s))).toEqual([])
  const rows = [...read(`${FOLDER}/index.md`).matchAll(/^\| \[`([\w ]+)`\]/gm)].map((m) => m[1]!)
  expect(rows.toSorted()).toEqual([...steps].toSorted())
})
