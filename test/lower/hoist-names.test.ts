/** A condition that has a name protects the same accesses as one that is written out. */
import { expect, test } from 'vitest'
import { store } from '../../src/ir/build.ts'
import { type Expr, int, load, lt, select, variable } from '../../src/ir/expr.ts'
import type { Stmt } from '../../src/ir/loops.ts'
import { printBody } from '../../src/ir/print2.ts'
import { hoist } from '../../src/lower/hoist.ts'
import { Names } from '../../src/lower/names.ts'

const [i, n] = [variable('i'), variable('n')]
const named = (name: string, value: Expr): Stmt => ({ kind: 'let', name, dtype: value.dtype, value })
const c = variable('c', 'bool')
const at = variable('at')
const body = (lets: readonly Stmt[], cond: Expr, index: Expr): string =>
  printBody(
    hoist(
      [
        {
          kind: 'for',
          var: 'i',
          name: 'i',
          nest: 'go',
          extent: int(8),
          reduce: false,
          guards: [],
          mode: { kind: 'serial' },
          body: [
            ...lets,
            {
              kind: 'for',
              var: 'j',
              name: 'j',
              nest: 'go',
              extent: int(4),
              reduce: false,
              guards: [],
              mode: { kind: 'serial' },
              body: [
                store(
                  'y',
                  [variable('j')],
                  select(cond, load('x', [index], 'f32'), load('z', [variable('j')], 'f32')),
                ),
              ],
            },
          ],
        },
      ],
      new Names(['i', 'j', 'c', 'at', 'x', 'y', 'z']),
    ),
  )

test.each([
  ['written out', body([], lt(i, n), i)],
  ['a name', body([named('c', lt(i, n))], c, i)],
  ['a name of a name', body([named('at', i), named('c', lt(at, n))], c, i)],
  ['a condition whose index has a name', body([named('at', i)], lt(i, n), at)],
])('%s: the load stays in its branch', (_, text) => {
  expect(text).not.toMatch(/let \w+ = x\[/)
  expect(text).toMatch(/select\(.*x\[/)
})
