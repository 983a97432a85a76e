/** Divisions of sums: neighbours share a base, and every value is that of flooring division. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Expr } from '../../src/ir/expressions/expr.ts'
import { add, builtin, div, int, load, mod, mul, sub, variable } from '../../src/ir/expressions/expr.ts'
import { rewriteExpr } from '../../src/ir/expressions/expr-tree.ts'
import type { Buffer, For, Kernel2, Let, Store } from '../../src/ir/statements/loops.ts'
import { stmt } from '../../src/ir/statements/tree.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { lowerIntegerDivision } from '../../src/lower/expressions/integer-division.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { loop as loopOver } from '../support/stage2-builders.ts'

const store = (e: Expr): Store =>
  stmt<Store>({ kind: 'store', buffer: 'X', index: [int(0)], value: e, span: undefined })

const lowered = (e: Expr, facts?: Kernel2['facts']): Expr => {
  const [s] = lowerIntegerDivision([store(e)], { params: [], buffers: [], facts })
  return (s as Store).value
}

const N = variable('n')
const SIZES = [{ name: 'n', kind: 'size', dtype: 'i32' }] as const

/** Sums, products, quotients and remainders of `n` and constants. */
const expressions: fc.Arbitrary<Expr> = fc.letrec<{ e: Expr }>((tie) => ({
  e: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    fc.constant<Expr>(N),
    fc.tuple(tie('e'), fc.integer({ min: -40, max: 40 })).map(([e, c]) => add(e, int(c))),
    fc.tuple(tie('e'), fc.constantFrom(2, 3, 4, 8)).map(([e, c]) => mul(e, int(c))),
    fc.tuple(tie('e'), fc.constantFrom(1, 2, 3, 4, 6, 8, 64)).map(([e, c]) => div(e, int(c))),
    fc.tuple(tie('e'), fc.constantFrom(1, 2, 3, 4, 6, 8, 64)).map(([e, c]) => mod(e, int(c))),
  ),
})).e

property([expressions, fc.integer({ min: -300, max: 300 })], { numRuns: runs(2000) })(
  'the value is the same',
  (e, n) => {
    const sizes = new Map([['n', n]])
    expect(evaluate(lowered(e), sizes) === evaluate(e, sizes)).toBe(true)
  },
)

property([expressions, fc.integer({ min: -50, max: 50 })], { numRuns: runs(1000) })(
  'so is the value of a required multiple',
  (e, n) => {
    const sizes = new Map([['n', 4 * n]])
    const facts = [{ size: 'n', relation: 'multiple', by: 4 } as const]
    expect(evaluate(lowered(e, facts), sizes) === evaluate(e, sizes)).toBe(true)
  },
)

// Offsets ascend; lists and tables say nothing of the kind where they are read anywhere.
const differences = fc.record({
  ascends: fc.boolean(),
  values: fc.array(fc.nat(50), { minLength: 8, maxLength: 8 }),
  at: fc.tuple(fc.nat(3), fc.nat(3)),
  named: fc.boolean(),
  by: fc.integer({ min: 2, max: 7 }),
})
property([differences, fc.nat(4)], { numRuns: runs(500) })(
  'so is the value of two loads of one array',
  ({ ascends, values, at: [a, b], named, by }, n) => {
    const held = ascends ? values.toSorted((x, y) => x - y) : values
    const z: Buffer = {
      name: 'z',
      dtype: 'i32',
      scope: 'global',
      role: 'index',
      shape: [int(8)],
      fill: 0,
      accumulate: 'i32',
      ...(ascends && { positions: variable('count') }),
    }
    const first = named ? variable('place') : add(N, int(a))
    const name = stmt<Let>({ kind: 'let', name: 'place', dtype: 'index', value: add(N, int(a)) })
    const read = (at: Expr): Expr => load('z', [at])
    const e = mod(sub(read(first), read(add(N, int(b)))), int(by))
    const last = lowerIntegerDivision([name, store(e)], { params: SIZES, buffers: [z] }).at(-1) as Store
    const sizes = new Map([
      ['n', n],
      ['place', n + a],
    ])
    const found = rewriteExpr(last.value, (x) =>
      x.kind === 'load' ? int(held[Number(evaluate(x.index[0]!, sizes))]!) : undefined,
    )
    const difference = held[n + a]! - held[n + b]!
    expect(Number(evaluate(found, sizes)) + 0).toBe(difference - by * Math.floor(difference / by))
  },
)

const remainders = (e: Expr): number => {
  let count = 0
  rewriteExpr(e, (x) => {
    if (x.kind === 'binary' && x.op === 'rem') count++
    return undefined
  })
  return count
}

/** Numbers of a loop, or of a launch's blocks, from `beyond` after the last one on. */
const counters = fc.record({
  loop: fc.boolean(),
  extent: fc.constantFrom(int(1), int(6), N, div(add(N, int(3)), int(4)), mul(N, int(2))),
  beyond: fc.integer({ min: -2, max: 2 }),
  by: fc.integer({ min: 2, max: 7 }),
  op: fc.constantFrom(div, mod),
})
property([counters, fc.nat(9)], { numRuns: runs(500) })(
  'a decreasing nonnegative value rounds as its quotient',
  ({ loop, extent, beyond, by, op }, n) => {
    const at = loop ? variable('v') : builtin('block.x')
    const e = op(sub(add(sub(extent, int(1)), int(beyond)), at), int(by))
    const body = loop ? [loopOver('v', extent, [store(e)])] : [store(e)]
    const launch = new Map(loop ? [] : [['block.x', extent] as const])
    const [first] = lowerIntegerDivision(body, { params: SIZES, buffers: [] }, launch)
    const { value } = (loop ? (first as For).body[0] : first) as Store
    if (beyond >= 0) expect(remainders(value)).toBeLessThanOrEqual(1)
    const count = Number(evaluate(extent, new Map([['n', n]])))
    for (let k = 0; k < count; k++) {
      const here = rewriteExpr(value, (x) => (x.kind === 'builtin' ? int(k) : undefined))
      const dividend = count - 1 + beyond - k
      const quotient = Math.floor(dividend / by)
      const sizes = new Map([
        ['n', n],
        ['v', k],
      ])
      expect(Number(evaluate(here, sizes)) + 0).toBe(op === div ? quotient : dividend - by * quotient)
    }
  },
)

test('elements of a group share a base address', () => {
  const at = (k: number): Expr => {
    const place = mod(add(mul(N, int(8)), int(k)), int(64))
    return add(mul(div(place, int(8)), int(100)), mod(place, int(8)))
  }
  const base = lowered(at(0))
  for (let k = 1; k < 8; k++) expect(lowered(at(k))).toEqual(add(base, int(k)))
  expect(lowered(at(8))).not.toEqual(add(base, int(8)))
})
