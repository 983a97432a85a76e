/** Padding of register tiles: combined into without asking, where whoever reads asks and nothing else is reached. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { interpret } from '../../src/interpret/stage2.ts'
import { add, div, type Expr, lt, mul } from '../../src/ir/expressions/expr.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import type { Kernel2 } from '../../src/ir/statements/loops.ts'
import { alloc } from '../../src/ir/statements/statement-builders.ts'
import { accumulateIntoPadding } from '../../src/lower/specialise/padding-accumulation.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { at, buffer, expr, kernel2, loop, reduce, store } from '../support/stage2-builders.ts'

/** Each is by itself a reason to go on asking. */
const REASONS = {
  more: 'there are strips beyond the last row: nothing says that the first row of each is there',
  other: 'whoever writes back asks something else',
  shift: 'loads begin amid the values of a strip',
  short: 'values are no whole number of strips',
  apart: 'values of a strip lie apart from each other, by no constant',
  divided: 'what is read depends on a quotient by the loop',
  shared: 'the tile is no thread’s own',
  lengths: 'lengths of inner loops are read from the padding',
  counted: 'another statement of the loop counts rows',
  masked: 'another condition, which goes on being asked, reads what only rows have',
} as const
type Reason = keyof typeof REASONS

/** `y[row] = sum over k of x[strip, k, row in it]` by strips of `r` rows, `x` with padding. */
function strips(r: number, why?: Reason): Kernel2 {
  const row = (v: string): Expr => add(mul(expr('s'), expr(r)), expr(v))
  const count = div(add(expr('m'), expr(r - 1)), expr(r))
  const slot = add(mul(expr('s'), expr('w')), expr('k'))
  const next = add(mul(slot, expr(r)), add(expr('v'), expr(why === 'shift' ? 1 : 0)))
  const place = why === 'apart' ? add(mul(expr('v'), expr('n')), slot) : next
  const none = div(expr('zero'), add(expr('v'), expr(1)))
  const size = mul(expr('n'), expr(r))
  const value = why === 'lengths' ? at('x', ['f']) : at('x', [why === 'divided' ? add(place, none) : place])
  const sum = reduce(at('T', ['v']), '+', value)
  const more = why === 'short' ? 1 : why === 'shift' ? r : 0
  return kernel2(
    'strips',
    ['m', 'w', 'n', 'zero'],
    [
      buffer('x', [add(size, expr(more))], 'in'),
      buffer('mask', ['m'], 'in'),
      buffer('lengths', [size], 'index'),
      buffer('y', [add(expr('m'), expr(1))], 'out'),
    ],
    [
      loop('s', why === 'more' ? add(count, expr(1)) : count, [
        alloc(buffer('T', [r], 'local', { scope: why === 'shared' ? 'shared' : 'register' })),
        loop(
          'k',
          'w',
          [
            loop(
              'v',
              r,
              [
                why === 'lengths'
                  ? loop('f', at('lengths', [row('v')], 'index'), [sum], { reduce: true })
                  : sum,
                ...(why === 'counted' ? [reduce(at('y', ['m']), '+', 1, {})] : []),
              ],
              {
                guards: [
                  lt(row('v'), expr('m')),
                  ...(why === 'masked' ? [lt(at('mask', [row('v')]), expr(1))] : []),
                ],
              },
            ),
          ],
          { reduce: true },
        ),
        loop('u', r, [store(at('y', [row('u')]), at('T', ['u']))], {
          guards: [lt(row('u'), why === 'other' ? add(expr('m'), expr(1)) : expr('m'))],
        }),
      ]),
    ],
  )
}

const asks = (kernel: Kernel2): number => loopsOf(kernel.body).find((l) => l.var === 'v')!.guards.length

function run(kernel: Kernel2, r: number, m: number, w: number, why?: Reason): number[] {
  const y = new Array<number>(m + 1).fill(-1)
  const n = Math.ceil(m / r) * w
  const size = n * r + (why === 'short' ? 1 : why === 'shift' ? r : 0)
  const x = Array.from({ length: size }, (_, k) => 1 + ((k * 7) % 11))
  interpret(
    kernel,
    new Map([
      ['x', x],
      ['mask', new Array<number>(m).fill(0)],
      ['lengths', new Array<number>(n * r).fill(1)],
      ['y', y],
    ]),
    new Map(Object.entries({ m, w, n, zero: 0 })),
  )
  return y
}

property([fc.integer({ min: 2, max: 4 }), fc.nat(9), fc.integer({ min: 1, max: 3 })], {
  numRuns: runs(30),
})('results are equal, without conditions', (r, m, w) => {
  const kernel = strips(r)
  const padded = accumulateIntoPadding(kernel)
  expect([asks(kernel), asks(padded)]).toEqual([1, 0])
  expect(run(padded, r, m, w)).toEqual(run(kernel, r, m, w))
})

test.each(Object.keys(REASONS) as Reason[])('conditions are kept (%s)', (why) => {
  const kernel = strips(2, why)
  expect(accumulateIntoPadding(kernel)).toBe(kernel)
  // The kernel is one that runs, so that this is no refusal of nonsense.
  expect(run(kernel, 2, 5, 2, why)).toHaveLength(6)
})
