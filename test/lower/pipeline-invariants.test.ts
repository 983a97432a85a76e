/** Of what copies compute, what has one value for a tile, and can be computed whenever the tile has copies at all. */
import { expect, test } from 'vitest'
import { Facts } from '../../src/analysis/integers/facts.ts'
import { Names } from '../../src/ir/expressions/bound-names.ts'
import { add, builtin, div, type Expr, int, lt, mod, mul, variable } from '../../src/ir/expressions/expr.ts'
import { printExpr } from '../../src/ir/print/print-stage2.ts'
import type { Stmt } from '../../src/ir/statements/loops.ts'
import { when } from '../../src/ir/statements/statement-builders.ts'
import { pipelineInvariants } from '../../src/lower/pipelining/address-prefetch.ts'
import { at, loop, store } from '../support/stage2-builders.ts'

const [tile, go, m, thread] = [variable('tile'), variable('go'), variable('m'), builtin('thread.x')]
const row = at('rows', [tile], 'i32')
const quotient = div(tile, m)

/** What is computed once of a copy in `go`, for each `tile`. */
function once(copy: Stmt): readonly string[] {
  const inner = loop('go', 'n', [copy])
  const facts = new Facts({ sizes: [] })
  const { fill } = pipelineInvariants(inner.body, inner, loop('tile', 'n', [inner]), facts, new Names())
  return fill().map((s) => (s.kind === 'store' ? printExpr(s.value) : s.kind))
}
const element = (from: Expr): Stmt => store(at('Xs', ['e']), at('X', [from, 'e']))
const elements = (...body: Stmt[]): Stmt => loop('e', 4, body)

test('are loads for all copies, and quotients', () => {
  expect(once(elements(element(row)))).toEqual(['rows[tile]'])
  expect(once(elements(element(add(quotient, go))))).toEqual(['tile / m'])
  expect(once(elements(element(add(mul(tile, int(4)), go))))).toEqual([])
  expect(once(elements(element(at('rows', [add(tile, go)], 'i32'))))).toEqual([])
  expect(once(elements(element(mod(add(tile, variable('e')), m))))).toEqual([])
})

test('are no known multiples, nor registers', () => {
  expect(once(elements(element(mod(mul(tile, int(8)), mul(m, int(8))))))).toEqual([])
})

test('are no conditional loads, except conditions on threads', () => {
  expect(once(elements(when(lt(tile, m), [element(row)])))).toEqual([])
  expect(once(elements(when(lt(tile, m), [element(quotient)])))).toEqual(['tile / m'])
  expect(once(elements(when(lt(thread, int(2)), [element(row)])))).toEqual(['rows[tile]'])
  expect(once(elements(when(lt(thread, int(2)), [], [element(row)])))).toEqual([])
  expect(once(loop('e', 'm', [element(row)]))).toEqual([])
})

test('are read from registers in other computations', () => {
  const last = at('rows', [quotient], 'i32')
  expect(once(elements(element(add(last, quotient))))).toEqual(['tile / m', 'rows[tile_value[0]]'])
})
