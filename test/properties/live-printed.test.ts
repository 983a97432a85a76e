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
