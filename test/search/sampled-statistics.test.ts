/** What samples of a matrix say in all is what the whole of it has, whatever the order that a format stores it in. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { outerDimension } from '../../src/cost-model/matrix/outer-dimension.ts'
import { structureOf } from '../../src/cost-model/matrix/structure.ts'
import { termsOf } from '../../src/cost-model/terms.ts'
import { workOf } from '../../src/cost-model/work/walk.ts'
import { coords, load } from '../../src/node.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import { runs } from '../support/cases.ts'
import { PRODUCT } from '../support/product.ts'
import { property } from '../support/property.ts'

const own = await load(`
import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-composed.spt"
import { csc, dcsc, csr, coo } from "sparsetile/kernels/formats.spt"
format block_columns(b) over (i, j) {
  axis jo = dense_fixed(ceildiv(j, b))
  axis io = sparse_variable(jo, ceildiv(i, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (j / b, i / b, i % b, j % b)
  inverse (jo, io, ii, ji) -> (io * b + ii, jo * b + ji)
}
format columns_by_length over (i, j) {
  sort j by -count(i by j) -> (place, column)
  axis jo = dense_fixed(j)
  axis io = sparse_variable(jo, i)
  map (i, j) -> (place[j], i)
  inverse (jo, io) -> (io, column[jo])
}
format column_pieces(w) over (i, j) {
  axis jo = sparse_variable(j) nonunique
  axis io = sparse_fixed(jo, i, w)
  map (i, j) -> (j, i)
  inverse (jo, io) -> (io, jo)
}
format parts_by_columns(c) over (i, j) {
  partition j into c {
    part csc
  }
}
format columns_under_root over (i, j) {
  axis p  = dense_fixed(1)
  axis jo = dense_fixed(p, j)
  axis io = sparse_variable(jo, i)
  map (i, j) -> (0, j, i)
  inverse (p, jo, io) -> (io, jo)
}
format mixed_order over (i, j) {
  part above = csc where (i < j)
  part csr
}
${PRODUCT}`)
const kernel = own.kernel('product')

/** Formats that hold any matrix, with arguments. */
const formats: readonly (readonly [string, ...number[]])[] = [
  ['csr'],
  ['csc'],
  ['coo'],
  ['dcsr'],
  ['dcsc'],
  ['by_length'],
  ['ragged'],
  ['ell'],
  ['sell', 4, 16],
  ['rows_ell', 4],
  ['pieces_ell', 4],
  ['gcoo', 4],
  ['bsr', 4],
  ['bsr_by_length', 4],
  ['bsr_groups_by_length', 4, 2],
  ['dbsr', 4],
  ['sr_bcrs', 1, 4],
  ['sr_bcrs', 8, 4],
  ['bitmap_blocks'],
  ['dia'],
  ['hyb', 4, 3],
  ['hyb_pieces', 4, 3],
  ['dense_blocks', 4, 0.5],
  ['band_rest', 2, 2],
  ['diagonal_rest'],
  ['top_rest', 4],
  ['strided_rest', 4],
  ['rows_by_length', 12],
  ['column_ranges', 4],
  ['column_ranges_by_length', 4],
  ['block_columns', 4],
  ['columns_by_length'],
  ['column_pieces', 4],
  ['parts_by_columns', 3],
  ['columns_under_root'],
  ['mixed_order'],
]

test.each(formats.map((f) => [f] as const))('%s has columns outside of rows if its name says so', (f) => {
  const [name, ...args] = f
  const { kernel: of } = kernel.as('A', name, ...args).compilation
  const isByColumns = /^d?csc$|^columns_|^block_columns|^column_pieces|by_columns/.test(name)
  expect(outerDimension(of, 'A')).toBe(isByColumns ? 1 : 0)
})

/** By how much they may be off; diagonals, of which neither rows nor columns have their own, are taken to be as many as there could be. */
const off = (format: string): number => (format === 'dia' ? 0.25 : 0.15)

/** Elements of a stratum: a fraction of what the matrices have. */
const SAMPLED = 1 << 10

/** Lengths of rows, or of columns, from even to uneven by `steep`. */
function matrixOf(seed: number, steep: number, byColumns: boolean) {
  const random = new Random(seed)
  const [rows, columns] = [900, 700]
  const [lines, across] = byColumns ? [columns, rows] : [rows, columns]
  const cells = new Set<number>()
  for (let r = 0; r < lines; r++) {
    const length = Math.min(across, Math.round(8 * (1 - steep) * (random.next() + 1e-3) ** -steep))
    for (let k = 0; k < length; k++) {
      const c = Math.floor(random.next() * across)
      cells.add(byColumns ? c * columns + r : r * columns + c)
    }
  }
  const at = [...cells].sort((a, b) => a - b)
  return {
    tensors: {
      A: coords([rows, columns], [at.map((c) => Math.floor(c / columns)), at.map((c) => c % columns)]),
    },
    params: { m: rows, n: columns, d: 16 },
  }
}

/** Equal rows are not neighbours: row i has the columns of class i % classes. */
function scattered(seed: number, classes: number) {
  const random = new Random(seed)
  const [rows, columns] = [960, 700]
  const own = Array.from({ length: classes }, () => {
    const of = Array.from({ length: 12 }, () => Math.floor(random.next() * columns))
    return [...new Set(of)].sort((a, b) => a - b)
  })
  const cells = Array.from({ length: rows }, (_, r) => own[r % classes]!.map((c) => [r, c] as const)).flat()
  return {
    tensors: { A: coords([rows, columns], [cells.map(([r]) => r), cells.map(([, c]) => c)]) },
    params: { m: rows, n: columns, d: 16 },
  }
}

const TOTALS = ['statements', 'entries', 'elements', 'loadBytes', 'atomicRequests', 'footprint'] as const

property(
  [
    fc.integer({ min: 0, max: 2 ** 31 - 1 }),
    fc.constantFrom(0, 0.3, 0.5),
    fc.boolean(),
    fc.constantFrom(...formats),
  ],
  {
    numRuns: runs(30),
    examples: [
      [1, 0.5, true, ['csc']],
      [1, 0.3, false, ['csc']],
      [1, 0.3, false, ['ell']],
      [1, 0, false, ['dia']],
    ],
  },
)(
  'the expected counts of samples equal those of the whole structure',
  (seed, steep, byColumns, [name, ...args]) => {
    expectSamples([matrixOf(seed, steep, byColumns)], name, args, off(name))
  },
)

/** Compares the sum over the matrices of each count of samples with that of whole structures; `off`: the relative tolerance. */
function expectSamples(
  matrices: readonly ReturnType<typeof matrixOf>[],
  name: string,
  args: number[],
  off: number,
): void {
  const { kernel: stored, loops, positions } = kernel.as('A', name, ...args).compilation
  const counted = (sampled?: number) =>
    matrices.map((given) => {
      const structure = structureOf(stored, positions, given, sampled)
      return termsOf(loops, workOf(loops, structure), structure, null)
    })
  const [some, all] = [counted(SAMPLED), counted(Number.POSITIVE_INFINITY)]
  for (const term of TOTALS) {
    const total = (terms: typeof some): number => terms.reduce((sum, t) => sum + t[term], 0)
    if (total(all) === 0) continue
    expect(total(some) / total(all), term).toBeGreaterThan(1 - off)
    expect(total(some) / total(all), term).toBeLessThan(1 + off)
  }
}

property(
  [
    fc.integer({ min: 0, max: 2 ** 31 - 1 }),
    fc.integer({ min: 10, max: 60 }),
    fc.constantFrom<[string, ...number[]]>(['sorted_panels', 8, 4], ['strips', 4, 4]),
  ],
  { numRuns: runs(10) },
)('samples contain the rows that a format groups', (seed, classes, [name, ...args]) =>
  // The sampling error of one matrix exceeds 25 % in 1 of 70 cases.
  expectSamples(
    [0, 1, 2, 3, 4, 5].map((k) => scattered((seed + k) % 2 ** 31, classes)),
    name,
    args,
    0.25,
  ),
)
