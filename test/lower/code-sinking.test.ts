/** Names are computed as late as they may be. */
import { expect, test } from 'vitest'
import { Names } from '../../src/ir/expressions/bound-names.ts'
import { add, type Expr, int, load, lt, mul, variable } from '../../src/ir/expressions/expr.ts'
import { printBody } from '../../src/ir/print/print-stage2.ts'
import type { For, Stmt } from '../../src/ir/statements/loops.ts'
import { barrier, when } from '../../src/ir/statements/statement-builders.ts'
import { sinkCode } from '../../src/lower/expressions/code-sinking.ts'

const name = (n: string, value: Expr): Stmt => ({ kind: 'let', name: n, dtype: 'index', value })
const put = (at: Expr): Stmt => ({ kind: 'store', buffer: 'C', index: [at], value: int(1) })
const loop = (...body: Stmt[]): For => ({
  kind: 'for',
  var: 'k',
  name: 'k',
  nest: 'n',
  extent: variable('n'),
  reduce: true,
  guards: [],
  mode: { kind: 'serial' },
  body,
})

test('a value that is used only after a loop is sunk behind the loop, with its operands', () => {
  const body = [
    name('a', mul(variable('n'), int(3))),
    name('b', add(variable('a'), int(1))),
    name('c', load('A', [variable('n')])),
    name('d', add(variable('n'), int(7))),
    loop(put(variable('d'))),
    put(variable('b')),
    put(variable('c')),
  ]
  expect(printBody(sinkCode(body, new Names()))).toBe(`\
let c = A[n]
let d = n + 7
for k in 0..n  reduce
  C[d] = 1
let a = n * 3
let b = a + 1
C[b] = 1
C[c] = 1`)
})

test('without a loop in between, or inside a loop, nothing is sunk', () => {
  const straight = [name('a', mul(variable('n'), int(3))), put(int(0)), put(variable('a'))]
  expect(sinkCode(straight, new Names())).toBe(straight)
  const inside = [name('a', mul(variable('n'), int(3))), loop(put(variable('a'))), put(variable('a'))]
  expect(sinkCode(inside, new Names())).toBe(inside)
})

test('a value that only branches with barriers use is sunk into each, behind their loops', () => {
  const lets = [
    name('a', mul(variable('n'), int(3))),
    name('b', add(variable('a'), int(1))),
    name('c', load('A', [variable('n')])),
    name('d', add(variable('n'), int(7))),
    name('e', add(variable('n'), int(8))),
  ]
  const meeting = loop(barrier(), put(variable('d')))
  const condition = (body: Stmt, otherwise: readonly Stmt[]): Stmt =>
    when(lt(variable('n'), variable('e')), [body, put(variable('b')), put(variable('c'))], otherwise)
  const body = [...lets, condition(meeting, [put(variable('b'))])]
  const names = new Names(['a', 'b', 'c', 'd', 'e', 'n'])
  expect(printBody(sinkCode(body, names))).toBe(`\
let c = A[n]
let e = n + 8
if n < e
  let d = n + 7
  for k in 0..n  reduce
    barrier
    C[d] = 1
  let a = n * 3
  let b = a + 1
  C[b] = 1
  C[c] = 1
else
  let a_2 = n * 3
  let b_2 = a_2 + 1
  C[b_2] = 1`)
  // Where threads may part, or there is one branch, or another statement uses it, it is computed once.
  for (const others of [
    [...lets, condition(loop(put(variable('d'))), [put(variable('b'))])],
    [...lets, condition(meeting, [])],
  ])
    expect(sinkCode(others, names)).toBe(others)
  const again = [
    name('f', mul(variable('n'), int(3))),
    condition(loop(barrier(), put(variable('f'))), [put(int(0))]),
  ]
  expect(sinkCode([...again, put(variable('f'))], names)).toEqual([...again, put(variable('f'))])
})
