import { describe, expect, test } from 'vitest'
import {
  add,
  binary,
  call,
  cast,
  ceildiv,
  constant,
  div,
  type Expr,
  int,
  lt,
  max,
  mod,
  mul,
  neg,
  not,
  search,
  select,
  sub,
  variable,
} from '../../src/ir/expressions/expr.ts'
import { print2, printExpr } from '../../src/ir/print/print-stage2.ts'
import { when } from '../../src/ir/statements/statement-builders.ts'
import { at, buffer, expr, kernel2, loop, reduce, store } from '../support/stage2-builders.ts'

const [a, b, c] = ['a', 'b', 'c'].map((n) => expr(n)) as [Expr, Expr, Expr]

describe('expressions print with the fewest parentheses that keep their meaning', () => {
  test.each<[string, Expr]>([
    ['a + b + c', add(add(a, b), c)],
    ['a + (b + c)', add(a, add(b, c))],
    ['(a + b) * c', mul(add(a, b), c)],
    ['a - (b - c)', sub(a, sub(b, c))],
    ['a * b % c', mod(mul(a, b), c)],
    ['a / (b / c)', div(a, div(b, c))],
    ['ceildiv(a, 8)', ceildiv(a, int(8))],
    ['-(a + b)', neg(add(a, b))],
    ['a < b or not b < c', binary('or', lt(a, b), not(lt(b, c)))],
    ['select(a < b, a, max(b, c))', select(lt(a, b), a, max(b, c))],
    ['f32(a) * -1.5', mul(cast(a, 'f32'), constant(-1.5, 'f32'))],
    ['exp(x)', call('exp', [variable('x', 'f32')])],
    ['x + inf', add(variable('x', 'f32'), constant(Number.POSITIVE_INFINITY, 'f32'))],
    ['x + 0.1', add(variable('x', 'f32'), constant(0.1, 'f32'))],
    ['A[a, b + 1]', at('A', [a, add(b, int(1))])],
    ['search_lower(idx, a, b, c)', search('lower', 'idx', a, b, c)],
  ])('%s', (text, e) => {
    expect(printExpr(e)).toBe(text)
  })
})

test('a kernel: signature, buffers, modes, guards, marks', () => {
  const k = kernel2(
    'k',
    ['m'],
    [buffer('X', ['m'], 'in'), buffer('Y', ['m'], 'out', { fill: -1 })],
    [
      { kind: 'fill', buffer: 'Y', value: constant(0, 'f32') },
      loop(
        'io',
        ceildiv(expr('m'), int(8)),
        [
          { kind: 'alloc', buffer: buffer('R', [1], 'local', { scope: 'register' }) },
          loop(
            'ii_2',
            8,
            [
              store(at('R', [0]), at('X', [add(mul(expr('io'), int(8)), expr('ii_2'))])),
              when(lt(expr('ii_2'), int(4)), [
                reduce(at('Y', [add(mul(expr('io'), int(8)), expr('ii_2'))]), 'max', at('R', [0]), {
                  atomic: true,
                }),
              ]),
            ],
            {
              name: 'ii',
              guards: [lt(add(mul(expr('io'), int(8)), expr('ii_2')), expr('m'))],
              mode: { kind: 'unroll', factor: 2 },
            },
          ),
        ],
        { mode: { kind: 'bind', to: 'block.x' } },
      ),
    ],
  )
  expect(print2(k, { mark: ['ii_2'] })).toMatchInlineSnapshot(`
    "kernel k(m: size)
      X: f32[m] in
      Y: f32[m] out  fill -1
      fill Y = 0
      for io in 0..ceildiv(m, 8)  @block.x
        alloc R: f32[1] register
    >   for ii_2 (main.ii) in 0..8  @unroll(2)  where io * 8 + ii_2 < m
          R[0] = X[io * 8 + ii_2]
          if ii_2 < 4
            Y[io * 8 + ii_2] max= R[0]  atomic"
  `)
})
