/** Names are computed as late as they may be. */
import { expect, test } from 'vitest'
import { add, type Expr, int, load, mul, variable } from '../../src/ir/expr.ts'
import type { For, Stmt } from '../../src/ir/loops.ts'
import { printBody } from '../../src/ir/print-stage2.ts'
import { sinkCode } from '../../src/lower/code-sinking.ts'

const name = (n: string, value: Expr): Stmt => ({ kind: 'let', name: n, dtype: 'i32', value })
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

test('what is used after a loop alone, with what only that uses', () => {
  const body = [
    name('a', mul(variable('n'), int(3))),
    name('b', add(variable('a'), int(1))),
    name('c', load('A', [variable('n')], 'i32')),
    name('d', add(variable('n'), int(7))),
    loop(put(variable('d'))),
    put(variable('b')),
    put(variable('c')),
  ]
  expect(printBody(sinkCode(body))).toBe(`\
let c = A[n]
let d = n + 7
for k in 0..n  reduce
  C[d] = 1
let a = n * 3
let b = a + 1
C[b] = 1
C[c] = 1`)
})

test('without a loop in between, or inside of one, nothing moves', () => {
  const straight = [name('a', mul(variable('n'), int(3))), put(int(0)), put(variable('a'))]
  expect(sinkCode(straight)).toBe(straight)
  const inside = [name('a', mul(variable('n'), int(3))), loop(put(variable('a'))), put(variable('a'))]
  expect(sinkCode(inside)).toBe(inside)
})
