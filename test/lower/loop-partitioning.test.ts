/** Conditions that hold in whole tiles, and only those, are asked in the last tile alone. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { interpret } from '../../src/interpret/stage2.ts'
import { add, ceildiv, div, type Expr, lt, mod, mul } from '../../src/ir/expressions/expr.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import type { For, Kernel2 } from '../../src/ir/statements/loops.ts'
import { partitionLoops } from '../../src/lower/specialise/loop-partitioning.ts'
import { tightenLoopBounds } from '../../src/lower/specialise/loop-trimming.ts'
import { runs } from '../support/cases.ts'
import { at, buffer, expr, kernel2, loop, reduce } from '../support/stage2-builders.ts'

/**
 * `y[t * size + r] += 1` for r below `inner`, where that is less than n: tiles overlap where `inner` is more than `size`. Places
 * lie `shift` before where y has them.
 */
function tiles(size: number, inner: number, shift: number): Kernel2 {
  const where = add(mul(expr('t'), expr(size)), add(expr('r'), expr(-shift)))
  const n = expr('n')
  return kernel2(
    'tiles',
    ['n'],
    [buffer('y', [add(n, expr(shift))], 'inout')],
    [
      loop('t', div(add(n, expr(size - 1)), expr(size)), [
        loop('r', inner, [reduce(at('y', [add(where, expr(shift))]), '+', 1, {})], {
          guards: [lt(where, n)],
        }),
      ]),
    ],
  )
}

const run = (kernel: Kernel2, n: number, more = 0): number[] => {
  const y = new Array<number>(n + more).fill(0)
  interpret(kernel, new Map([['y', y]]), new Map([['n', n]]))
  return y
}

test('overlapping tiles', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      // About as many as a tile has, and sizes that tiles divide: one too many is seen there alone.
      fc.integer({ min: -4, max: 2 }),
      fc.nat(5),
      fc.constantFrom(0, 0, 1, 2),
      fc.constantFrom(0, 0, 2),
      (size, more, count, over, shift) => {
        const inner = Math.max(1, size + more)
        const n = size * count + over
        const kernel = tiles(size, inner, shift)
        const partitioned = partitionLoops(kernel)
        if (size > 1 && inner - shift <= size) expect(partitioned).not.toEqual(kernel)
        expect(run(partitioned, n, shift)).toEqual(run(kernel, n, shift))
      },
    ),
  )
})

/**
 * Tiles of `outer` tiles of `inner`: `y[(t * outer + w) * inner + r] += 1` for w below `outer + more` and r below `inner`, where that is
 * less than n and, if `asks`, the tile is one.
 */
function tilesOfTiles(outer: number, inner: number, more: number, asks: boolean): Kernel2 {
  const tile = add(mul(expr('t'), expr(outer)), expr('w'))
  const count = ceildiv(expr('n'), expr(inner))
  const place = add(mul(tile, expr(inner)), expr('r'))
  const innermost = loop('r', inner, [reduce(at('y', [place]), '+', 1, {})], {
    guards: [lt(place, expr('n'))],
  })
  return kernel2(
    'nested',
    ['n'],
    [buffer('y', ['n'], 'inout')],
    [
      loop('t', ceildiv(count, expr(outer)), [
        loop('w', Math.max(1, outer + more), [innermost], { guards: asks ? [lt(tile, count)] : [] }),
      ]),
    ],
  )
}

test('tiles of tiles have no conditions in full ones', () => {
  const sizes = fc.integer({ min: 1, max: 4 })
  fc.assert(
    fc.property(
      sizes,
      sizes,
      fc.constantFrom(0, 0, 1, -1),
      fc.boolean(),
      fc.nat(3),
      fc.nat(16),
      (outer, inner, more, asks, count, over) => {
        const n = outer * inner * count + over
        const kernel = tilesOfTiles(outer, inner, more, asks)
        const partitioned = partitionLoops(kernel)
        expect(run(partitioned, n)).toEqual(run(kernel, n))
        if (outer === 1 || inner === 1 || more > 0) return
        const [whole] = partitioned.body as readonly For[]
        expect(loopsOf(whole!.body).flatMap((l) => l.guards)).toEqual([])
      },
    ),
    { numRuns: runs(100) },
  )
})

/** The same the other way: r is outside, and `shift` away, so that places begin in another tile or before the first. */
function turns(size: number, inner: number, shift: number): Kernel2 {
  const where = add(mul(expr('t'), expr(size)), add(expr('r'), expr(shift)))
  const n = expr('n')
  const round = loop(
    't',
    div(add(n, expr(size - 1)), expr(size)),
    [reduce(at('y', [add(where, expr(4))]), '+', 1, {})],
    { guards: [lt(where, n)] },
  )
  return kernel2('turns', ['n'], [buffer('y', [add(n, expr(4))], 'inout')], [loop('r', inner, [round])])
}

test('strided loops end at the last element, if each begins in the first tile', () => {
  for (const size of [2, 3, 4])
    for (const inner of [1, 2, 3])
      for (const shift of [-1, 0, 1, 2]) {
        const kernel = turns(size, inner, shift)
        const tight = tightenLoopBounds(kernel)
        expect(tight !== kernel, `${size} ${inner} ${shift}`).toBe(shift >= 0 && shift + inner <= size)
        for (const n of [0, 1, 3, 4, 5, 8, 9])
          expect(run(tight, n, 4), `${size} ${inner} ${shift} ${n}`).toEqual(run(kernel, n, 4))
      }
})

test('loops of other lengths are unchanged', () => {
  const around = (extent: Expr): Kernel2 =>
    kernel2(
      'others',
      ['n'],
      [buffer('y', ['n'], 'inout')],
      [
        loop('t', extent, [
          loop('r', 2, [reduce(at('y', [0]), '+', 1, {})], {
            guards: [lt(add(mul(expr('t'), expr(2)), expr('r')), expr('n'))],
          }),
        ]),
      ],
    )
  const padded = add(expr('n'), expr(1))
  expect(partitionLoops(around(div(padded, expr(2))))).not.toEqual(around(div(padded, expr(2))))
  for (const extent of [mul(padded, expr(2)), mod(padded, expr(2))]) {
    const kernel = around(extent)
    expect(partitionLoops(kernel)).toEqual(kernel)
  }
})
