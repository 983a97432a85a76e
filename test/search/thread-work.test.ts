/** What the cost model counts of a thread of a processor, against the rows themselves. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { modelDataOf, termsOfCompilation } from '../../src/cost-model/prediction.ts'
import type { Terms } from '../../src/cost-model/terms.ts'
import { coords, type Kernel, load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'

const named = async (name: string): Promise<Kernel> =>
  (await load(`sparsetile/kernels/${name}.spt`)).kernel(name)
const [vectors, shares, products] = await Promise.all(['spmv', 'softmax', 'spmm'].map(named))

/** Few lengths: more than some are told apart by their means. */
const rows = fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 2, maxLength: 60 })

function on(kernel: Kernel, lengths: readonly number[], params: Record<string, number> = {}): Terms {
  const is = lengths.flatMap((n, i) => Array<number>(n).fill(i))
  const js = lengths.flatMap((n) => [...Array(n).keys()])
  const A = coords([lengths.length, 16], [is, js])
  const data = modelDataOf({ A })
  return termsOfCompilation(kernel.compilation, { ...data, params: { m: lengths.length, n: 16, ...params } })
}

const sum = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0)

property([rows, fc.constantFrom(1, 2, 4, 8)], { numRuns: runs(60) })(
  'loops over rows: iterations, entries, and changes of length',
  (lengths, each) => {
    const base = vectors!.schedule('cpu')
    const unrolled = each === 1 ? base : base.unroll('j', each)
    const t = on(unrolled, lengths)
    const groups = lengths.map((n) => Math.floor(n / each) + (n % each))
    expect(t.branches).toBeCloseTo(lengths.length + sum(groups))
    expect(t.entries).toBeCloseTo(1 + lengths.length)
    expect(t.surprises).toBeCloseTo(lengths.filter((n, i) => n !== lengths[i - 1]).length)
    expect(t.functions).toBe(0)
    expect(t.spills).toBe(0)
  },
)

property([rows.filter((r) => sum(r) > 0)], { numRuns: runs(40) })(
  'padding is tested at each position of a row',
  (lengths) => {
    const padded = (more: number): Terms => on(vectors!.as('A', 'ell', Math.max(...lengths) + more), lengths)
    const [few, many] = [padded(2), padded(5)]
    // A condition that reads a coordinate, and nothing where there is none.
    expect(many.branches - few.branches).toBeCloseTo(3 * lengths.length)
  },
)

property([rows.filter((r) => sum(r) > 0)], { numRuns: runs(20) })(
  'an array that a loop indexes is not in registers',
  (lengths) => {
    const unrolled = products!.schedule('cpu', 4)
    const looped = products!.replay(unrolled.toJSON().slice(0, -1))
    const [fast, slow] = [unrolled, looped].map((k) => on(k, lengths, { d: 8 }).spills)
    // Tiles are written, once for each row, by loops of their own.
    expect(fast).toBeLessThanOrEqual(8 * lengths.length)
    expect(slow! - fast!).toBeGreaterThanOrEqual(8 * sum(lengths))
  },
)

property([rows], { numRuns: runs(40) })('functions are counted separately from operations', (lengths) => {
  const t = on(shares!.schedule('cpu'), lengths)
  expect(t.functions).toBeCloseTo(2 * sum(lengths))
  expect(t.operations).toBeGreaterThanOrEqual(t.functions)
})

property([rows.filter((r) => sum(r) > 0)], { numRuns: runs(20) })(
  'sums beyond the number of registers go through memory',
  (lengths) => {
    const [few, many] = [8, 32].map((each) => on(products!.schedule('cpu', each), lengths, { d: 64 }))
    expect(many!.spills / sum(lengths)).toBeGreaterThan(few!.spills / Math.max(1, sum(lengths)))
    expect(many!.entries).toBeLessThan(few!.entries)
    expect(many!.elements).toBeLessThan(few!.elements)
  },
)
