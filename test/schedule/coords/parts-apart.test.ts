/** Who may write the same elements: by hand, and against what the iterations over small matrices write. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Kernel1 } from '../../../src/ir/stage1.ts'
import { sharing } from '../../../src/schedule/coords/sharing.ts'
import { runs } from '../../support/cases.ts'
import { inputsOf, pair } from './apply.ts'
import { FORMATS, KERNELS, REFUSED, USES } from './formats.ts'
import { matrices } from './matrices.ts'

const facts = (name: string, use: string) =>
  sharing(pair(FORMATS + KERNELS[name]!, `A as ${use}`).kernel).map(
    (w) =>
      `${w.iteration} ${w.buffer}: meets ${w.meets.join(' ') || 'none'}, repeats ${w.repeats.join(' ') || 'none'}`,
  )

describe('by hand', () => {
  test.each<readonly [string, string, readonly string[]]>([
    // By length of whole rows: a row is in one part.
    [
      'sum per row',
      'by_length',
      [
        'sum_w2 y: meets none, repeats none',
        'sum_w4 y: meets none, repeats none',
        'sum_w16 y: meets none, repeats none',
      ],
    ],
    [
      'sum per row',
      'ranges(2)',
      ['sum_p0 y: meets none, repeats none', 'sum_p1 y: meets none, repeats none'],
    ],
    // Columns cut in two: every row may be in both.
    [
      'sum per row',
      'two_sides',
      ['sum_p0 y: meets sum_p1, repeats none', 'sum_p1 y: meets sum_p0, repeats none'],
    ],
    [
      'transposed',
      'two_sides',
      ['scatter_p0 y: meets none, repeats none', 'scatter_p1 y: meets none, repeats none'],
    ],
    // Rows longer than the widest bucket are in several pieces.
    [
      'sum per row',
      'hyb(1, 1)',
      ['sum_w1 y: meets sum_w2, repeats io_w1', 'sum_w2 y: meets sum_w1, repeats io_w2'],
    ],
    ['sum per row', 'pieces_ell(2)', ['sum y: meets none, repeats p']],
    ['sum per row', 'csc', ['sum y: meets none, repeats none']],
    ['sum per row', 'sell(2, 4)', ['sum y: meets none, repeats k']],
    [
      'sampled product',
      'hyb(1, 1)',
      ['dot_w1 D_w1: meets none, repeats none', 'dot_w2 D_w2: meets none, repeats none'],
    ],
    [
      'scalar total',
      'ranges(2)',
      ['total_p0 t: meets total_p1, repeats none', 'total_p1 t: meets total_p0, repeats none'],
    ],
    // A block of the first part holds fill values in rows of the second.
    [
      'sum per row',
      'bsr(2) where (count(j by i) > 2) + csr',
      ['sum_bsr y: meets sum_csr, repeats none', 'sum_csr y: meets sum_bsr, repeats none'],
    ],
  ])('%s, %s', (name, use, expected) => {
    expect(facts(name, use)).toEqual(expected)
  })

  test('a part in parts of its own is told apart by both selections', () => {
    const { kernel } = pair(FORMATS + KERNELS['sum per row']!, 'A as ranges(2)\nA_p1 as two_sides')
    const meets = sharing(kernel).map((w) => [w.iteration, w.reformat, w.meets.join(' ')])
    expect(meets).toEqual([
      ['sum_p0', 0, ''],
      ['sum_p1_p0', 1, 'sum_p1_p1'],
      ['sum_p1_p0', 0, ''],
      ['sum_p1_p1', 1, 'sum_p1_p0'],
      ['sum_p1_p1', 0, ''],
    ])
  })
})

/** The rows of y that each part's iteration writes, from what the part holds. */
test('parts that do not meet write different elements', () => {
  const kernels = USES.filter((use) => !REFUSED['sum per row']?.has(use)).map(
    (use) => pair(FORMATS + KERNELS['sum per row']!, `A as ${use}`).kernel,
  )
  fc.assert(
    fc.property(fc.constantFrom<Kernel1[]>(...kernels.map((k) => [k])), matrices, ([kernel], data) => {
      const { held } = inputsOf(kernel!, { ...data, dense: {} })
      const rows = held.map((h) => new Set(h.entries.map((e) => e.at[0]!)))
      const all = sharing(kernel!)
      for (const w of all)
        for (const o of all)
          if (o.part !== w.part && !w.meets.includes(o.iteration))
            expect([...rows[w.part]!].filter((r) => rows[o.part]!.has(r))).toEqual([])
    }),
    { numRuns: runs(100) },
  )
})
