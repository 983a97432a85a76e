/** Dependence between iterations, from the subscripts of what they write. */
import { expect, test } from 'vitest'
import { blockOf } from '../../src/analysis/dependence/subscript-injectivity.ts'
import { add, int, mul, variable } from '../../src/ir/expressions/expr.ts'
import type { For } from '../../src/ir/statements/loops.ts'
import { dependentAfterReorder } from '../../src/schedule/legality/loop-dependence.ts'
import { at, expr, loop, reduce } from '../support/stage2-builders.ts'

test('rows of a symbolic width are apart if the column stays below the width', () => {
  const blocks = (extent: string, index = add(mul(variable('i'), variable('w')), variable('k'))) =>
    blockOf(index, 'i', { inner: new Map([['k', loop('k', extent, [])]]), indptr: new Set() })
  expect(blocks('w')).toBeDefined()
  expect(blocks('w', add(variable('k'), mul(variable('i'), variable('w'))))).toBe(blocks('w'))
  expect(blocks('v')).toBeUndefined()
  // A width that changes with the row, or within it, and rows that begin elsewhere.
  expect(blocks('w', add(mul(variable('i'), variable('i')), variable('k')))).toBeUndefined()
  expect(blocks('w', add(mul(variable('i'), variable('k')), variable('k')))).toBeUndefined()
  expect(blocks('w', add(mul(variable('i'), variable('w')), add(variable('k'), int(1))))).toBeUndefined()
})

test('a loop is tied to a reduction through any chain of dimensions, in any order', () => {
  const chain = (...index: (readonly string[])[]) => {
    const place = index.map((names) => names.map(expr).reduce((a, b) => add(a, b)))
    const body = reduce(at('y', place), '+', at('x', ['r']))
    const rest = loop('k', 4, [loop('j', 4, [body])])
    const i = loop('i', 4, [rest])
    const r = loop('r', 4, [i], { reduce: true })
    return dependentAfterReorder([r, i] as readonly For[], [i, r], [body]).map((l) => l.var)
  }
  expect(chain(['i'], ['r'])).toEqual([])
  expect(chain(['i', 'r'])).toEqual(['i'])
  expect(chain(['i', 'j'], ['j', 'r'])).toEqual(['i'])
  expect(chain(['j', 'r'], ['i', 'j'])).toEqual(['i'])
  expect(chain(['k', 'r'], ['j', 'k'], ['i', 'j'])).toEqual(['i'])
  expect(chain(['k', 'r'], ['i', 'j'])).toEqual([])
})
