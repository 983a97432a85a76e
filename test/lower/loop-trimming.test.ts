/** Long loops end where their guard does, of what arrays say too, and visit what they visited. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { interpret } from '../../src/interpret/stage2.ts'
import { add, type Expr, lt, mul } from '../../src/ir/expressions/expr.ts'
import type { For, Kernel2 } from '../../src/ir/statements/loops.ts'
import { trimLoops } from '../../src/lower/specialise/loop-trimming.ts'
import { runs } from '../support/cases.ts'
import { at, buffer, expr, kernel2, loop, reduce } from '../support/stage2-builders.ts'

const LENGTH = 16

/** `y[t * LENGTH + v] += 1` for v below LENGTH, under these conditions. */
const visits = (guards: readonly Expr[], role: 'index' | 'in' = 'in'): Kernel2 =>
  kernel2(
    'visits',
    ['n', 'lists'],
    [
      buffer('y', [mul(expr('n'), expr(LENGTH))], 'inout'),
      buffer('counts', [expr('lists')], role, { dtype: 'i32' }),
    ],
    [
      loop('t', 'n', [
        loop('v', LENGTH, [reduce(at('y', [add(mul(expr('t'), expr(LENGTH)), expr('v'))]), '+', 1, {})], {
          guards,
        }),
      ]),
    ],
  )

function visited(kernel: Kernel2, n: number, counts: readonly number[]): number[] {
  const y = new Array<number>(n * LENGTH).fill(0)
  const arrays = new Map([
    ['y', y],
    ['counts', [...counts]],
  ])
  interpret(kernel, arrays, new Map(Object.entries({ n, lists: counts.length })))
  return y
}

const ended = (kernel: Kernel2): Kernel2 => trimLoops(kernel, { promote: true })
const inner = (kernel: Kernel2): For => (kernel.body[0] as For).body[0] as For
const count = (index: string): Expr => at('counts', [index], 'i32')

/** Of numbers that arrays hold the least and the greatest, and those about a loop's end. */
const counts = fc.oneof(
  fc.integer({ min: -2, max: 3 * LENGTH }),
  fc.constantFrom(-(2 ** 31), 2 - 2 ** 31, 2 ** 31 - 1),
)

describe('a loop over positions of a group', () => {
  test('ends at the end of its list', () => {
    fc.assert(
      fc.property(
        fc.array(counts, { maxLength: 4 }),
        fc.nat(LENGTH + 1),
        fc.boolean(),
        (lists, shift, each) => {
          const rest = each ? add(mul(expr('t'), expr(LENGTH)), expr(shift)) : expr(shift)
          const kernel = visits([lt(add(rest, expr('v')), count('t'))])
          const now = ended(kernel)
          expect(inner(now).guards).toEqual([])
          expect(visited(now, lists.length, lists)).toEqual(visited(kernel, lists.length, lists))
        },
      ),
      { numRuns: runs(60) },
    )
  })

  test('keeps its test if another guard protects its reads', () => {
    const kernel = visits([
      lt(add(mul(expr('v'), expr(2)), expr('t')), expr('lists')),
      lt(expr('v'), count('t')),
    ])
    const now = ended(kernel)
    expect(inner(now).guards).toHaveLength(2)
    expect(visited(now, 3, [5])).toEqual(visited(kernel, 3, [5]))
  })

  test('keeps its test if the addend may be negative', () => {
    const guard = lt(add(count('t'), expr('v')), expr('n'))
    const kernel = visits([guard])
    expect(ended(kernel)).toBe(kernel)
    expect(inner(ended(visits([guard], 'index'))).guards).toEqual([])
  })

  test('is unchanged for few positions, or with many threads', () => {
    const kernel = visits([lt(expr('v'), count('t'))])
    expect(trimLoops(kernel)).toBe(kernel)
  })
})
