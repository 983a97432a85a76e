/** Random integer expressions over names, and values for these. */
import fc from 'fast-check'
import { add, binary, type Expr, int, max, min, mul, neg, select, sub, variable } from '../../src/ir/expr.ts'

/** Loops of a constant extent, loops of as many rounds as a size says, and sizes. */
export const NAMES = ['i', 'j', 'v', 'w', 'n', 'm'] as const
export type Name = (typeof NAMES)[number]

/** Extents by loop. */
export const EXTENTS: ReadonlyMap<string, { readonly extent: Expr }> = new Map([
  ['i', { extent: int(4) }],
  ['j', { extent: int(7) }],
  ['v', { extent: variable('n') }],
  ['w', { extent: variable('m') }],
])

/** Values of the sizes, and of the loops within their extents. */
export const values: fc.Arbitrary<ReadonlyMap<string, number>> = fc
  .tuple(
    fc.integer({ min: 1, max: 50 }),
    fc.integer({ min: 1, max: 50 }),
    fc.array(fc.nat(), { minLength: 4, maxLength: 4 }),
  )
  .map(
    ([n, m, at]) =>
      new Map([
        ['i', at[0]! % 4],
        ['j', at[1]! % 7],
        ['v', at[2]! % n],
        ['w', at[3]! % m],
        ['n', n],
        ['m', m],
      ]),
  )

const constants = fc.integer({ min: -9, max: 20 }).map(int)

/** Arithmetic of one type; divisors are constants or names. */
export const integers: fc.Arbitrary<Expr> = fc.letrec<{ e: Expr }>((tie) => {
  const pair = fc.tuple(tie('e'), tie('e'))
  const divisors = fc.oneof(
    fc.constantFrom(1, 2, 3, 4, 6, 8, 16).map(int),
    fc.constantFrom('n', 'i').map((v) => variable(v)),
  )
  return {
    e: fc.oneof(
      { depthSize: 'medium', maxDepth: 7, withCrossShrink: true },
      fc.oneof(
        fc.constantFrom(...NAMES).map((v) => variable(v)),
        constants,
      ),
      pair.map(([a, b]) => add(a, b)),
      pair.map(([a, b]) => sub(a, b)),
      fc.tuple(tie('e'), constants).map(([a, b]) => mul(a, b)),
      fc.tuple(tie('e'), fc.constantFrom(...NAMES)).map(([a, v]) => mul(a, variable(v))),
      fc
        .tuple(fc.constantFrom('div', 'mod', 'quo', 'rem'), tie('e'), divisors)
        .map(([op, a, b]) => binary(op, a, b)),
      pair.map(([a, b]) => min(a, b)),
      pair.map(([a, b]) => max(a, b)),
      fc
        .tuple(fc.constantFrom('lt', 'ge', 'eq'), pair, pair)
        .map(([op, [a, b], [x, y]]) => select(binary(op, a, b), x, y)),
      tie('e').map((a) => neg(a)),
    ),
  }
}).e
