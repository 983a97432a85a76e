/** What prefixes combine is combined once, in the order it had; what is no prefix stays as it is. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { interpret } from '../../src/interpret/stage2.ts'
import { add, type Expr, int, lt, mul } from '../../src/ir/expressions/expr.ts'
import { mentions } from '../../src/ir/expressions/expr-tree.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import type { For, Kernel2, Stmt } from '../../src/ir/statements/loops.ts'
import { simplifyPrefixReductions } from '../../src/lower/reduce/prefix-reductions.ts'
import { initializeReductions } from '../../src/lower/reduce/reduction-initialization.ts'
import { runs } from '../support/cases.ts'
import { at, buffer, expr, kernel2, loop, reduce, store } from '../support/stage2-builders.ts'

const MOST = 64

/** In each t: `y[t, x] = op of a[t, p] for p below length`, x below `count`; `more`: of the loop over p, and of that over x. */
function prefixes(
  length: Expr,
  {
    op = '+' as Parameters<typeof reduce>[1],
    value = at('a', ['t', 'p'], 'f64') as Expr,
    more = {} as Partial<For>,
    outer = {} as Partial<For>,
    behind = [] as readonly Stmt[],
  } = {},
): Kernel2 {
  const sum = loop('p', length, [reduce(at('y', ['t', 'x'], 'f64'), op, value)], { reduce: true, ...more })
  return initializeReductions(
    kernel2(
      'prefixes',
      ['n', 'count', 'all'],
      [
        buffer('a', ['n', MOST], 'in', { dtype: 'f64' }),
        buffer('y', ['n', 'count'], 'out', { dtype: 'f64' }),
        buffer('z', ['n', MOST], 'inout', { dtype: 'f64' }),
      ],
      [loop('t', 'n', [loop('x', 'count', [sum, ...behind], outer)])],
    ),
  )
}

function results(kernel: Kernel2, n: number, count: number, all: number, a: readonly number[]): number[] {
  const y = new Array<number>(n * count).fill(Number.NaN)
  const arrays = new Map([
    ['a', Array.from({ length: n * MOST }, (_, k) => a[k % a.length]!)],
    ['y', y],
    ['z', new Array<number>(n * MOST).fill(0)],
  ])
  interpret(kernel, arrays, new Map(Object.entries({ n, count, all })))
  return y
}

const quadratic = (kernel: Kernel2): boolean =>
  loopsOf(kernel.body).some((l) => l.reduce && mentions(l.extent, 'x'))

describe('reductions over a prefix', () => {
  test('are combined once, in the original order', () => {
    fc.assert(
      fc.property(
        fc.record({
          op: fc.constantFrom('+' as const, 'max' as const, '*' as const),
          each: fc.constantFrom(0, 1, 2, 3, 5),
          first: fc.oneof(fc.nat(4), fc.constant('all')),
          n: fc.nat(2),
          count: fc.nat(8),
          all: fc.nat(MOST),
          a: fc.array(fc.double({ min: -1e9, max: 1e9, noNaN: true }), { minLength: 1 }),
          mode: fc.constantFrom({ kind: 'serial' } as const, { kind: 'unroll', factor: 4 } as const),
        }),
        ({ op, each, first, n, count, all, a, mode }) => {
          const isSize = typeof first === 'string'
          const slope = isSize ? 0 : each
          const kernel = prefixes(add(mul(expr('x'), int(slope)), expr(first)), { op, more: { mode } })
          const now = simplifyPrefixReductions(kernel)
          expect(now).not.toBe(kernel)
          expect(quadratic(now)).toBe(false)
          expect(results(now, n, count, all, a)).toEqual(results(kernel, n, count, all, a))
        },
      ),
      { numRuns: runs(100) },
    )
  })

  test('read the same elements, and no others', () => {
    // Of the last iteration, what the next would have combined is not there.
    const kernel = prefixes(expr('x'))
    const read = (k: Kernel2): number[] => results(k, 1, MOST + 1, 0, [1])
    expect(read(simplifyPrefixReductions(kernel))).toEqual(Array.from({ length: MOST + 1 }, (_, x) => x))
  })

  const a = at('a', ['t', 'p'], 'f64')
  test.each([
    ['fewer from iteration to iteration', prefixes(add(int(20), mul(expr('x'), int(-1))))],
    ['from a number that may be negative', prefixes(add(expr('x'), expr('all')))],
    ['of values that change', prefixes(expr('x'), { value: mul(a, at('a', ['t', 'x'], 'f64')) })],
    [
      'of what the loop writes',
      prefixes(expr('x'), {
        value: at('z', ['t', 'p'], 'f64'),
        behind: [store(at('z', ['t', 'x'], 'f64'), at('y', ['t', 'x'], 'f64'))],
      }),
    ],
    ['some of them', prefixes(expr('x'), { more: { guards: [lt(expr('p'), expr('all'))] } })],
    ['in some iterations', prefixes(expr('x'), { outer: { guards: [lt(expr('x'), expr('all'))] } })],
    ['by a step of its own', prefixes(expr('x'), { more: { mode: { kind: 'accumulate', by: 2 } } })],
    ['on threads', prefixes(expr('x'), { outer: { mode: { kind: 'bind', to: 'thread.x' } } })],
  ])('are unchanged: %s', (_, kernel) => {
    expect(simplifyPrefixReductions(kernel)).toBe(kernel)
  })
})
