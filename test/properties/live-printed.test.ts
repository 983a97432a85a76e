/** The printed builder of a live format is text of the language, except for one assertion of the compiler. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { KERNELS, LIVE } from './live-gen.ts'

const STEPS = ['live in place', 'live', 'live in place capacity k', 'live in place capacity m + 4 in all']

test.each(Object.keys(LIVE) as (keyof typeof LIVE)[])(
  'names are unique and conditions typed, and only the places of a list are not proved distinct: %s',
  (format) => {
    const { text, list } = LIVE[format]
    for (const kernel of [KERNELS.left, KERNELS.two])
      for (const step of STEPS) {
        const printed = parseProgram(
          `${text}\n${kernel}\nschedule product.s { A as ${format}(2, 4) ${step} }`,
        )
          .kernel()
          .schedule('s')
          .show(1)
        const problems = (): readonly string[] => {
          try {
            parseProgram(printed).kernel()
            return []
          } catch (e) {
            return (e as SptError).diagnostics.map((d) => `${d.code}: ${d.message}`)
          }
        }
        const [first, ...others] = problems()
        expect(first, printed).toMatch(new RegExp(`^check/spatial: .* the same element of ${list}_of_A$`))
        expect(others).toEqual([])
      }
  },
)

test('names of the builder give way to those of the kernel, also the name of the reducer of words', () => {
  const { text } = LIVE.panels
  const reducer = `monoid bit_or(x: i32) {
  identity -1
  combine (a, b) = bit_and(a.x, b.x)
}`
  const kernel = KERNELS.left
    .replace('mul [', 'rank_A [')
    .replace(
      /}$/,
      '  buffer D: i32[i, j] in\n  buffer E: i32[i] out\n  iterate list_A [i, j] as SR { E[i] bit_or= D[i, j] }\n}',
    )
  const printed = parseProgram(
    `${text}\n${reducer}\n${kernel}\nschedule product.s { A as panels(2, 4) live }`,
  )
    .kernel()
    .schedule('s')
    .show(1)
  expect(printed).toContain(reducer)
  for (const [name, statement] of [
    ['rank_A', 'C['],
    ['list_A', 'E[i] bit_or= D'],
    ['rank_A_2', 'iterate start_A'],
    ['list_A_2', 'jo_of_A['],
    ['mark_A', 'marks_A[io, jo_word] bit_or_2='],
  ])
    expect(printed.split(`iterate ${name} [`)[1]?.split('\n')[1]?.trim()).toContain(statement)
  expect(printed).toContain('combine (a, b) = bit_or(a.value, b.value)')
})
