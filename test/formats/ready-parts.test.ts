/** Arrays that are brought without a kernel are checked as those that a kernel is given. */
import { expect, test } from 'vitest'
import { coords, load, stored } from '../../src/node.ts'
import { refusal } from '../support/refusal.ts'

const program = await load(`import "sparsetile/kernels/formats.spt"
format first_row over (i, j) {
  part csr where (i < 1)
  part csr
}`)
const A = coords(
  [3, 4],
  [
    [0, 0, 1, 2],
    [0, 2, 1, 3],
  ],
  [1, 2, 3, 4],
)
const code = (call: () => unknown): string => refusal(call).code

test.each([[[3, 3]], [[2, 4]], [[3, 5]], [[4, 4]]])(
  'arrays of a 3 by 4 tensor are none of shape %j',
  (shape) => {
    for (const format of [program.format('csr'), program.format('ell', 2), program.format('bsr', 1)])
      expect(code(() => format.fromParts(shape, format.convert(A).parts))).toBe('bind/shape')
  },
)

test('the order of rows is a permutation, and comes with the arrays', () => {
  const format = program.format('by_length')
  const [part] = format.convert(A).parts
  const made = (tables: Record<string, Int32Array>) =>
    format.fromParts([3, 4], [{ tensor: part!.tensor, tables }])
  expect(made({ row: Int32Array.of(0, 1, 2) }).toCoords().values).toEqual(Float64Array.of(1, 2, 3, 4))
  for (const row of [
    [0, 1, 9],
    [0, 1, -1],
    [0, 0, 1],
    [0, 1],
  ])
    expect(code(() => made({ row: Int32Array.from(row) }))).toBe('bind/table')
  expect(code(() => made({}))).toBe('bind/missing-table')
  expect(code(() => made({ rows: Int32Array.of(0, 1, 2) }))).toBe('bind/missing-table')
})

test('no element is in two parts', () => {
  const format = program.format('first_row')
  const [first, rest] = format.convert(A).parts
  expect(format.fromParts([3, 4], [first!, rest!]).toCoords().values).toHaveLength(4)
  const { arrays } = rest!.tensor
  const name = Object.keys(arrays).find((a) => arrays[a]!.indices)
  const both = stored(
    [3, 4],
    { [name!]: { indptr: Int32Array.of(0, 1, 2, 3), indices: Int32Array.of(0, 1, 3) } },
    Float64Array.of(9, 3, 4),
  )
  const refused = refusal(() => format.fromParts([3, 4], [first!, { tensor: both, tables: {} }]))
  expect(refused.code).toBe('format/overlap')
  expect(refused.message).toContain('(i, j) = (0, 0)')
})
