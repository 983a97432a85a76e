/** Conditions that hold in whole tiles, and only those, are asked in the last tile alone. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { add, div, lt, mul } from '../../src/ir/expr.ts'
import { interpret } from '../../src/ir/interpret.ts'
import type { Kernel2 } from '../../src/ir/loops.ts'
import { partitionLoops } from '../../src/lower/partition.ts'
import { at, buffer, expr, kernel2, loop, reduce } from '../../src/schedule/build.ts'

/** `y[t * size + r] += 1` for r below `inner`, where that is less than n: tiles overlap where `inner` is more than `size`. */
function tiles(size: number, inner: number): Kernel2 {
  const where = add(mul(expr('t'), expr(size)), expr('r'))
  const n = expr('n')
  return kernel2(
    'tiles',
    ['n'],
    [buffer('y', ['n'], 'inout')],
    [
      loop('t', div(add(n, expr(size - 1)), expr(size)), [
        loop('r', inner, [reduce(at('y', [where]), '+', 1, {})], { guards: [lt(where, n)] }),
      ]),
    ],
  )
}

const run = (kernel: Kernel2, n: number): number[] => {
  const y = new Array<number>(n).fill(0)
  interpret(kernel, new Map([['y', y]]), new Map([['n', n]]))
  return y
}

test('tiles that reach into the next', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      // About as many as a tile has, and sizes that tiles divide: one too many is seen there alone.
      fc.integer({ min: -4, max: 2 }),
      fc.nat(5),
      fc.constantFrom(0, 0, 1, 2),
      (size, more, count, over) => {
        const inner = Math.max(1, size + more)
        const n = size * count + over
        const kernel = tiles(size, inner)
        const partitioned = partitionLoops(kernel)
        if (inner <= size) expect(partitioned).not.toBe(kernel)
        expect(run(partitioned, n)).toEqual(run(kernel, n))
      },
    ),
  )
})
