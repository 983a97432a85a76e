/** A declaration that was read before is read wherever it stands, with whatever comments, as by a parser that has seen nothing. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { type Parser, parserFor } from '../../src/ast/parse/parse.ts'
import { print } from '../../src/ast/print/print.ts'
import { STEP_SYNTAX } from '../../src/schedule/steps/language.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { file } from './arbitrary.ts'

const newParser = (): Parser => parserFor(Object.values(STEP_SYNTAX))

/** The tree, or what is said of the text. */
function outcome({ parse }: Parser, name: string, text: string): unknown {
  try {
    return parse({ name, text })
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics
    throw e
  }
}

/** What stands between declarations, some of which end nothing. */
const between = fc.constantFrom('\n', '\n\n', '\n// said\n', '/* said */\n', '\n}\n', '\nkernel\n')

const nodesOf = (x: unknown): object[] =>
  typeof x === 'object' && x !== null ? [x, ...Object.values(x).flatMap(nodesOf)] : []

property(
  [
    fc.array(file, { minLength: 1, maxLength: 3 }),
    fc.array(fc.array(fc.tuple(fc.nat(), between), { minLength: 1, maxLength: 5 }), {
      minLength: 3,
      maxLength: 6,
    }),
  ],
  { numRuns: runs(15) },
)('a program that was parsed before is parsed as if it were new', (files, orders) => {
  const declared = files.flatMap((f) => f.decls.map((d) => print({ ...f, imports: [], decls: [d] })))
  if (declared.length === 0) return
  const seasoned = newParser()
  const before = new Set<object>()
  for (const [k, order] of orders.entries()) {
    const text = order.map(([at, blank]) => declared[at % declared.length]! + blank).join('')
    for (const name of [`${k}.spt`, 'again.spt']) {
      const tree = outcome(seasoned, name, text)
      expect(tree).toEqual(outcome(newParser(), name, text))
      // Comments are hung on nodes: no two trees share any.
      const nodes = nodesOf(tree)
      expect(nodes.some((n) => before.has(n))).toBe(false)
      for (const n of nodes) before.add(n)
    }
  }
})

test('two trees of a text share no lists', () => {
  const text = 'schedule a.b extends { }\nschedule a.c choose from "c.spt"\n'
  const first = new Set(nodesOf(outcome(newParser(), 'first.spt', text)))
  expect(first.size).toBeGreaterThan(10)
  expect(nodesOf(outcome(newParser(), 'second.spt', text)).some((n) => first.has(n))).toBe(false)
})
