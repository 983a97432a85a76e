/** Which addresses of copies are loaded an iteration before the copies start. */
import { expect, test } from 'vitest'
import { Names } from '../../src/ir/expressions/bound-names.ts'
import { lt, variable } from '../../src/ir/expressions/expr.ts'
import { mentions } from '../../src/ir/expressions/expr-tree.ts'
import type { Stmt } from '../../src/ir/statements/loops.ts'
import { addressesAhead } from '../../src/lower/pipelining/address-prefetch.ts'
import { at, loop, store } from '../support/stage2-builders.ts'

test('an address that one copy tests per element is computed by all of its copies', () => {
  const row = at('list', ['p'], 'i32')
  const copy = (to: string, from: string, v: string, bound?: 'n' | 'p'): Stmt =>
    loop(v, 4, [store(at(to, [v]), at(from, [row, v]))], {
      guards: bound ? [lt(variable(v), variable(bound))] : [],
    })
  const heldIf = (stable: (buffer: string) => boolean, ...copies: Stmt[]): readonly string[] =>
    addressesAhead(copies, [], (a) => mentions(a, 'p'), stable, new Names()).registers.map((b) => b.name)
  const held = (...copies: Stmt[]) => heldIf(() => true, ...copies)

  expect(held(copy('Xs', 'X', 'e'), copy('Ys', 'Y', 'f', 'n'))).toEqual(['list_next'])
  // The list may be written meanwhile.
  expect(heldIf((b) => b !== 'list', copy('Xs', 'X', 'e'))).toEqual([])
  // Whether the row is listed is not known before `f` is.
  expect(held(copy('Xs', 'X', 'e'), copy('Ys', 'Y', 'f', 'p'))).toEqual([])
})
