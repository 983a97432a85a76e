/** A condition that has a name protects the same accesses as one that is written out. */
import { expect, test } from 'vitest'
import { Names } from '../../src/ir/bound-names.ts'
import { type Expr, int, load, lt, select, variable } from '../../src/ir/expr.ts'
import type { Stmt } from '../../src/ir/loops.ts'
import { printBody } from '../../src/ir/print-stage2.ts'
import { store } from '../../src/ir/statement-builders.ts'
import { stmt } from '../../src/ir/tree.ts'
import { eliminateCommonSubexpressions } from '../../src/lower/common-subexpressions.ts'
import { buffer, loop } from '../../src/schedule/build.ts'

const [i, n] = [variable('i'), variable('n')]
const named = (name: string, value: Expr): Stmt => ({ kind: 'let', name, dtype: value.dtype, value })
const c = variable('c', 'bool')
const at = variable('at')
const body = (lets: readonly Stmt[], cond: Expr, index: Expr): string =>
  printBody(
    eliminateCommonSubexpressions(
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

test('a constant place stays in every condition, unless the array is that long', () => {
  const read = (length: Expr): string => {
    const holds = lt(int(0), n)
    const stores = [store('y', [variable('j')], load('x', [int(2)], 'f32'))]
    const buffers = [buffer('x', [length], 'in'), buffer('y', ['m'], 'out')]
    const text = loop('j', 'm', [stmt({ kind: 'if', cond: holds, then: stores, else: [] })], { nest: 'go' })
    return printBody(eliminateCommonSubexpressions([text], new Names(['j', 'm', 'n', 'x', 'y']), buffers))
  }
  expect(read(variable('p'))).toMatch(/if 0 < n\n.*x\[2\]/)
  expect(read(int(2))).toMatch(/if 0 < n\n.*x\[2\]/)
  expect(read(int(3))).toMatch(/let x_at = x\[2\]\nfor j/)
})
