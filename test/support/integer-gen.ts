/** Random integer expressions over names, and values for these. */
import fc from 'fast-check'
import { Facts } from '../../src/analysis/integers/facts.ts'
import {
  add,
  binary,
  ceildiv,
  div,
  type Expr,
  ge,
  int,
  lt,
  max,
  min,
  mul,
  neg,
  operation,
  select,
  sub,
  variable,
} from '../../src/ir/expressions/expr.ts'
import type { Pattern } from '../../src/ir/expressions/patterns.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { Choices, choiceNumbers } from './choices.ts'

/** Loops of a constant extent, loops of as many rounds as a size says, and sizes. */
const NAMES = ['i', 'j', 'v', 'w', 'n', 'm'] as const

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

/** Quotients and remainders of sums, one inside of the other. */
export const quotients: fc.Arbitrary<Expr> = fc
  .array(
    fc.tuple(
      fc.constantFrom('div', 'mod'),
      fc.constantFrom(2, 3, 4, 6, 8, 12),
      fc.integer({ min: -9, max: 12 }),
      fc.constantFrom('i', 'j', 'v', 'n'),
      constants,
    ),
    { minLength: 1, maxLength: 3 },
  )
  .map((steps) =>
    steps.reduce(
      (e: Expr, [op, by, factor, name, c]) =>
        binary(op, add(add(mul(e, int(factor)), mul(variable(name), int(2 * factor))), c), int(by)),
      variable('m'),
    ),
  )

/** Facts that are true, and an expression and an end to ask about, the expression as the pattern of a rule has it. */
export interface Question {
  readonly at: ReadonlyMap<string, number>
  readonly facts: Facts
  readonly of: Expr
  readonly end: Expr
}

export const questions = (pattern: Pattern): fc.Arbitrary<Question> =>
  fc.noBias(choiceNumbers(60)).map((numbers) => {
    const c = new Choices(numbers)
    const by = c.pick([2, 3, 4, 8])
    const at = new Map([
      ['n', by * c.between(1, 12)],
      ['m', c.between(1, 40)],
      ['s', c.between(0, 9)],
      ['a', c.between(-6, 30)],
      ['b', c.chance(70) ? c.below(by) : c.between(-6, 40)],
    ])
    const name = (...of: string[]): Expr => variable(c.pick(of))
    const size = (): Expr => c.pick([name('n', 'm'), name('n', 'm'), int(c.between(1, 40))])
    const end = (): Expr =>
      c.pick([
        size,
        () => sub(size(), variable('s')),
        () => sub(size(), variable('s')),
        () => min(size(), size()),
        () => ceildiv(size(), int(by)),
        () => div(size(), int(by)),
      ])()
    const ends = [end(), end()]
    const facts = new Facts({ sizes: c.chance(80) ? [{ size: 'n', relation: 'multiple', by }] : [] })
    for (const v of ['n', 'm', 's', 'a', 'b'])
      if (c.chance(80) && at.get(v)! >= 0) facts.holds(ge(variable(v), int(0)))
    for (const v of ['a', 'b'])
      for (const cond of [...ends, int(by), variable('s')].map((e) => lt(variable(v), e)))
        if (c.chance(70) && evaluate(cond, at) !== 0) facts.holds(cond)
    const letters = new Map<string, Expr>([['c', int(by)]])
    const made = (p: Pattern, others: () => Expr): Expr => {
      if (typeof p === 'number') return int(p)
      if (typeof p !== 'string') {
        const [op, ...operands] = p
        return operation(
          op,
          operands.map((o) => made(o, others)),
        )
      }
      const e = letters.get(p) ?? (p === 'y' && c.chance(60) ? variable('s') : others())
      letters.set(p, e)
      return e
    }
    const sum = (): Expr => add(mul(variable('a'), int(by)), c.pick([variable('b'), int(c.below(by + 1))]))
    const of = made(pattern, () => c.pick([() => variable('a'), () => name('a', 'b', 's'), sum, sum])())
    const asked = (): Expr =>
      c.pick([
        () => c.pick(ends),
        () => ceildiv(c.pick(ends), int(by)),
        // What an end is made of.
        () => c.pick(ends.flatMap((e) => (e.kind === 'binary' ? [e.a, e.b] : [e]))),
        size,
        () => variable('n'),
      ])()
    return { at, facts, of, end: asked() }
  })
