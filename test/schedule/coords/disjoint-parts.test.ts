/** Who may write the same elements: by hand, and against what the iterations over small matrices write. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Kernel1 } from '../../../src/ir/coordinates/stage1.ts'
import { partsApart } from '../../../src/schedule/coordinates/legality/part-write-conflicts.ts'
import { runs } from '../../support/cases.ts'
import { inputsOf, pair } from './apply.ts'
import { FORMATS, KERNELS, REFUSED, USES } from './formats.ts'
import { matrices } from './matrices.ts'

/** Pairs of nests that never write the same elements of a buffer. */
const pairs = (kernel: Kernel1): string[] =>
  partsApart(kernel).flatMap(({ buffer, nests }) =>
    nests.flatMap((first, k) =>
      nests.slice(k + 1).flatMap((second) => first.flatMap((a) => second.map((b) => `${buffer}: ${a} ${b}`))),
    ),
  )

const facts = (name: string, use: string) => pairs(pair(FORMATS + KERNELS[name]!, `A as ${use}`).kernel)

describe('by hand', () => {
  test.each<readonly [string, string, readonly string[]]>([
    // By length of whole rows: a row is in one part.
    ['sum per row', 'by_length', ['y: sum_w2 sum_w4', 'y: sum_w2 sum_w16', 'y: sum_w4 sum_w16']],
    ['sum per row', 'ranges(2)', ['y: sum_p0 sum_p1']],
    // Columns cut in two: every row may be in both.
    ['sum per row', 'two_sides', []],
    ['transposed', 'two_sides', ['y: scatter_p0 scatter_p1']],
    // Rows longer than the widest bucket are in several pieces.
    ['sum per row', 'hyb(1, 1)', []],
    ['sum per row', 'pieces_ell(2)', []],
    ['sampled product', 'hyb(1, 1)', []],
    ['scalar total', 'ranges(2)', []],
    // A block of the first part holds fill values in rows of the second.
    ['sum per row', 'bsr(2) where (count(j by i) > 2) + csr', []],
  ])('%s, %s', (name, use, expected) => {
    expect(facts(name, use)).toEqual(expected)
  })

  test('nested parts are distinguished by both selections', () => {
    const { kernel } = pair(FORMATS + KERNELS['sum per row']!, 'A as ranges(2)\nA_p1 as two_sides')
    expect(pairs(kernel)).toEqual(['y: sum_p0 sum_p1_p0', 'y: sum_p0 sum_p1_p1'])
  })

  test('common conditions of iterations are evaluated once', () => {
    const twice = `${FORMATS}
      kernel k(m: size, n: size) {
        axis i = dense_fixed(m)
        axis j = sparse_variable(i, n)
        buffer A: f32[i, j] in
        buffer y: f32[i] out
        iterate first [i, j] as SR { y[i] += A[i, j] }
        iterate second [i, j] as SR { y[i] += A[i, j] }
      }`
    const { kernel } = pair(twice, 'A as ranges(2)')
    expect(partsApart(kernel).map((a) => a.nests)).toEqual([
      [
        ['first_p0', 'second_p0'],
        ['first_p1', 'second_p1'],
      ],
    ])
  })
})

/** The rows of y that each part's iteration writes, from what the part holds. */
test('disjoint parts write different elements', () => {
  const kernels = USES.filter((use) => !REFUSED['sum per row']?.has(use)).map(
    (use) => pair(FORMATS + KERNELS['sum per row']!, `A as ${use}`).kernel,
  )
  fc.assert(
    fc.property(fc.constantFrom<Kernel1[]>(...kernels.map((k) => [k])), matrices, ([kernel], data) => {
      const { held } = inputsOf(kernel!, { ...data, dense: {} })
      const rows = held.map((h) => new Set(h.entries.map((e) => e.at[0]!)))
      const { parts } = kernel!.reformats[0]!.instance
      const axes = new Map(
        kernel!.body.flatMap((s) => (s.kind === 'iterate' ? [[s.name, s.iters] as const] : [])),
      )
      const over = (nest: string) => axes.get(nest)!.map((x) => x.axis)
      const rowsOf = (nest: string) =>
        rows[parts.findIndex((p) => p.instance.order.includes(over(nest)[0]!))]!
      for (const { nests } of partsApart(kernel!))
        for (const [k, first] of nests.entries())
          for (const a of first)
            for (const b of nests.slice(k + 1).flat())
              expect([...rowsOf(a)].filter((r) => rowsOf(b).has(r))).toEqual([])
    }),
    { numRuns: runs(100) },
  )
})
