/** What the cost model shares between schedules of one matrix changes nothing: neither the order of asking nor how it is bound. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { outerDimension } from '../../src/cost-model/matrix/outer-dimension.ts'
import { Samples } from '../../src/cost-model/matrix/rows.ts'
import { structureOf } from '../../src/cost-model/matrix/structure.ts'
import { coords, load, type Tensor } from '../../src/node.ts'
import { predictor } from '../../src/search.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'

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

property([matrices, orders], { numRuns: runs(12) })(
  'a prediction is independent of earlier ones, for rows and coordinates',
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

property([large, orders, sizes], { numRuns: runs(12) })(
  'samples drawn once, small and large, equal those drawn for each format',
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

const pieces = (
  await load(`import "sparsetile/kernels/formats.spt"
format row_pieces(w) over (i, j) {
  axis p = sparse_variable(ceildiv(j, w))
  axis io = sparse_variable(p, i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (rank(j by i) / w, i, j)
  inverse (p, io, jo) -> (io, jo)
}
format column_pieces(w) over (i, j) {
  axis p = sparse_variable(ceildiv(i, w))
  axis jo = sparse_variable(p, j)
  axis io = sparse_variable(jo, i)
  map (i, j) -> (rank(i by j) / w, j, i)
  inverse (p, jo, io) -> (io, jo)
}
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  iterate s [i, j] as SR { C[i] += A[i, j] }
}
`)
).kernel('k')

property(
  [
    fc.constantFrom('row_pieces', 'column_pieces', 'strip_pieces'),
    fc.record({
      size: fc.integer({ min: 100, max: 200 }),
      length: fc.integer({ min: 4, max: 20 }),
      w: fc.integer({ min: 1, max: 6 }),
    }),
  ],
  { numRuns: runs(15) },
)(
  'pieces belong to the rows, or columns, whose elements they number: a sample has as many of each row as the matrix',
  (format, { size, length, w }) => {
    // All rows and columns have as many elements.
    const at = Array.from({ length: size * length }, (_, e) => [Math.floor(e / length), e % length] as const)
    const A = coords([size, size], [at.map(([i]) => i), at.map(([i, k]) => (i + 3 * k) % size)])
    const args = format === 'strip_pieces' ? [1, w, 1] : [w]
    const { kernel, positions } = pieces.as('A', format, ...args).compilation
    expect(outerDimension(kernel, 'A')).toBe(format === 'column_pieces' ? 1 : 0)
    const given = { tensors: { A }, params: { m: size, n: size } }
    const { params, lengths } = structureOf(kernel, positions, given, 256)
    const each = Math.ceil(length / w)
    const of = format === 'row_pieces' ? 'io' : format === 'column_pieces' ? 'jo' : 'so'
    expect(params.get('p_count')).toBe(each)
    expect(Math.abs(params.get(`${of}_count`)! - size * each)).toBeLessThanOrEqual(1)
    const whole = structureOf(kernel, positions, given, 2 ** 20)
    expect(lengths.get('p_indptr')?.sum).toBe(whole.lengths.get('p_indptr')?.sum)
  },
)
