/**
 * Sorts of a dense axis, by what the tensor holds at each of its coordinates: tiles come in the order that is asked for,
 * nothing is lost, kernels compute what the reference does, and descriptions that make no sense are refused.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { provedOf } from '../../src/formats/proof/prove.ts'
import { convertTensor, partsToCoords, type StoredPart } from '../../src/storage/entries/stored-parts.ts'
import { partsFromArrays } from '../../src/storage/ready/ready-parts.ts'
import type { CoordTensor, StoredTensor } from '../../src/storage/tensor.ts'
import { givenFor, matrices, written } from '../formats/user-formats.ts'
import { costly } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'
import { agreeOnAll } from './agree.ts'

const columns = (
  sort: string,
  first = 'sort j by -min(count(i by j), 1) -> (place, col)',
  to = 'dense_fixed(ceildiv(j, g))',
): string => `
format tiles(g) over (i, j) {
  ${first}
  axis to = ${to}
  ${sort} -> (tp, tc)
  axis io = sparse_variable(to, i)
  axis ji = dense_fixed(io, g)
  map (i, j) -> (tp[place[j] / g], i, place[j] % g)
  inverse (to, io, ji) -> (io, col[tc[to] * g + ji])
}`
const rows = `
format tiles(g) over (i, j) {
  axis to = dense_fixed(ceildiv(i, g))
  sort to by -count(i, j by to) -> (tp, tc)
  axis jo = sparse_variable(to, j)
  axis ii = dense_fixed(jo, g)
  map (i, j) -> (tp[i / g], j, i % g)
  inverse (to, jo, ii) -> (tc[to] * g + ii, jo)
}`
const kernel = `
kernel spmv(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: i32[i, j] in
  buffer x: i32[jd] in
  buffer y: i32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] * x[j] }
}`
const TEXTS = [
  ['by columns in use', columns('sort to by -count(i by to)')],
  ['within windows', columns('sort to by count(i by to) within 2')],
  ['alone', rows],
] as const

const lines = (t: CoordTensor): string[] =>
  [...t.values!].map((x, e) => `${t.coords.map((c) => c[e]).join(' ')}: ${x}`).sort()

const arraysOf = ({ storage, values }: StoredPart): StoredTensor => ({
  kind: 'stored',
  shape: storage.axes.map((a) => storage.levels.get(a.name)!.extent),
  arrays: Object.fromEntries(
    [...storage.levels].flatMap(([name, { indptr, indices }]) =>
      indptr && indices ? [[name, { indptr, indices }]] : [],
    ),
  ),
  values,
  dtype: 'i32',
})

/** Values at equal coordinates added up; none is 0, which a tile would not tell from nothing. */
function summed(t: CoordTensor): CoordTensor {
  const n = t.coords[0]!.length
  const seen = new Map(Array.from({ length: n }, (_, e) => [`${t.coords[0]![e]} ${t.coords[1]![e]}`, e]))
  const kept = [...seen.values()]
  return {
    ...t,
    coords: t.coords.map((c) => Int32Array.from(kept, (e) => c[e]!)),
    values: Int32Array.from(kept, (_, k) => 1 + (k % 7)),
    dtype: 'i32',
  }
}

test.each(TEXTS)('%s: round trips and kernels', async (_, text) => {
  for (const g of [1, 2, 3]) {
    const to = written(text, g)
    expect(provedOf(to.parts[0]!.instance, to.over)).toMatchObject({ range: true, inverse: true })
    const program = parseProgram(`${kernel}${text}schedule spmv.s { A as tiles(${g}) }`)
    const { compilation } = program.kernel('spmv').schedule('s')
    await fc.assert(
      fc.asyncProperty(matrices, async (matrix) => {
        const A = summed(matrix)
        const stored = convertTensor(A, to, givenFor(A.shape))
        expect(lines(partsToCoords(stored))).toEqual(lines(A))
        const [part] = stored.parts
        const ready = partsFromArrays(
          to,
          [{ tensor: arraysOf(part!), tables: part!.tables }],
          givenFor(A.shape),
        )
        expect(lines(partsToCoords(ready))).toEqual(lines(A))
        const [m, n] = A.shape as [number, number]
        const x = Int32Array.from({ length: n }, (_, k) => 1 + k)
        const tensors = { A, x: { kind: 'dense', shape: [n], values: x, dtype: 'i32' } as const }
        await agreeOnAll(compilation, { tensors, params: { m, n } })
        // Rows of sorted tiles are apart: no block meets another there.
        if (text === rows)
          await agreeOnAll(program.kernel('spmv').schedule('s').bind({ to: 'block.x' }).compilation, {
            tensors,
            params: { m, n },
          })
      }),
      { numRuns: costly(10) },
    )
  }
})

test('tiles are sorted by their counts; ties keep their order', () => {
  fc.assert(
    fc.property(matrices, fc.constantFrom(1, 2, 3), (matrix, g) => {
      const A = summed(matrix)
      const [part] = convertTensor(A, written(rows, g), givenFor(A.shape)).parts
      const count = new Int32Array(Math.ceil(A.shape[0]! / g))
      for (const i of A.coords[0]!) count[Math.floor(i / g)]!++
      const expected = [...count.keys()].sort((a, b) => count[b]! - count[a]! || a - b)
      expect([...part!.tables.get('tc')!]).toEqual(expected)
    }),
    { numRuns: costly(50) },
  )
})

test.each([
  ['a key of something else', columns('sort to by i'), /key of a sort of to cannot depend/],
  [
    'no place in the map',
    columns('sort to by -count(i by to)').replace('tp[place[j] / g]', 'place[j] / g'),
    /does not use the sort/,
  ],
  [
    'a later place',
    columns('sort to by -count(i by to)', '').replace(
      'axis io',
      'sort j by -count(i by j) -> (place, col)\n  axis io',
    ),
    /a later sort/,
  ],
  [
    'an extent that is measured',
    columns('sort to by -count(i by to)', undefined, 'dense_fixed(w)').replace(
      'tiles(g)',
      'tiles(g, w: size)',
    ),
    /measured/,
  ],
  ['no dense axis', columns('sort io by -count(i by io)'), /a sort needs a dense axis/],
])('%s is rejected', (_, text, message) => {
  const refused = refusal(() => parseProgram(text))
  expect(refused.message).toMatch(message)
})
