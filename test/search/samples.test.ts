/** What the cost model shares between schedules of one matrix changes nothing: neither the order of asking nor how it is bound. */
import { fc, test as law } from '@fast-check/vitest'
import { expect } from 'vitest'
import { coords, load, type Tensor } from '../../src/node.ts'
import { Samples } from '../../src/search/model/rows.ts'
import { structureOf } from '../../src/search/model/structure.ts'
import { predictor } from '../../src/search.ts'
import { runs } from '../support/cases.ts'

const spmm = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm')
const scheduled = [
  spmm.schedule('vector'),
  spmm.schedule('balanced_ordered'),
  spmm.schedule('by_length', 4),
  spmm.schedule('by_length_merged', 2),
  spmm.schedule('strips_ordered', 2, 4, 4),
  spmm.schedule('hyb', 1, 3),
]

const matricesOf = (least: number, elements: { readonly minLength: number; readonly maxLength: number }) =>
  fc
    .record({
      rows: fc.integer({ min: least, max: least + 40 }),
      columns: fc.integer({ min: least, max: 40 }),
    })
    .chain(({ rows, columns }) =>
      fc.uniqueArray(fc.integer({ min: 0, max: rows * columns - 1 }), elements).map((cells) => {
        const at = cells.sort((a, b) => a - b).map((c) => [Math.floor(c / columns), c % columns] as const)
        return { rows, columns, i: at.map(([i]) => i), j: at.map(([, j]) => j) }
      }),
    )
const matrices = matricesOf(1, { minLength: 0, maxLength: 200 })
/** Of several windows of rows, and of more elements than small samples have. */
const large = matricesOf(33, { minLength: 40, maxLength: 200 })
const orders = fc.shuffledSubarray(
  scheduled.map((_, k) => k),
  { minLength: 2 },
)

law.prop([matrices, orders], { numRuns: runs(12) })(
  'a prediction is the same whatever was predicted before, of rows and of coordinates',
  ({ rows, columns, i, j }, order) => {
    const params = { m: rows, n: columns, d: 32 }
    const indptr = Int32Array.from({ length: rows + 1 }, (_, r) => i.filter((x) => x < r).length)
    const byRows: Tensor = {
      kind: 'stored',
      shape: [rows, columns],
      arrays: { j: { indptr, indices: Int32Array.from(j) } },
      values: null,
      dtype: 'f32',
    }
    const of = (A: Tensor) => predictor(spmm, { device: 'cuda', inputs: { tensors: { A }, params } })
    const [first, second] = [of(byRows), of(coords([rows, columns], [i, j]))]
    for (const k of order) {
      const alone = of(coords([rows, columns], [i, j]))(scheduled[k]!)
      expect(first(scheduled[k]!)).toEqual(alone)
      expect(second(scheduled[k]!)).toEqual(alone)
      expect(second(scheduled[k]!)).toEqual(alone)
    }
  },
)

const sizes = fc.shuffledSubarray([4, 16, 1000], { minLength: 2 })

law.prop([large, orders, sizes], { numRuns: runs(12) })(
  'samples that are drawn once, some small and some large, say the same as those drawn for each format',
  ({ rows, columns, i, j }, order, of) => {
    const given = {
      tensors: { A: coords([rows, columns], [i, j]) },
      params: { m: rows, n: columns, d: 32 },
    }
    const samples = new Samples()
    for (const [turn, k] of order.entries()) {
      const { kernel, loops } = scheduled[k]!.compilation
      const sampled = of[turn % of.length]!
      const shared = structureOf(kernel, loops, { ...given, samples }, sampled)
      expect(shared).toEqual(structureOf(kernel, loops, given, sampled))
    }
  },
)
