/**
 * Lists of formats: coordinates that tiles share. Nothing is lost on the way there and back, whatever the coordinates, kernels
 * compute what the reference does, and what cannot be said of a list is refused.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { provedOf } from '../../src/formats/proof/prove.ts'
import { coords, dense, devices } from '../../src/node.ts'
import type { StoredPart } from '../../src/storage/entries/stored-parts.ts'
import { convertTensor, occupiedEntries, partsToCoords } from '../../src/storage/entries/stored-parts.ts'
import { partsFromArrays } from '../../src/storage/ready/ready-parts.ts'
import type { StoredTensor } from '../../src/storage/tensor.ts'
import { fitting, repeated, rowsFirst, summed, TEXTS } from '../formats/list-formats.ts'
import { givenFor, matrices, matrix, written } from '../formats/user-formats.ts'
import { costly } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'
import { agreeOnAll } from './agree.ts'

const kernel = `
kernel spmv(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: i32[i, j] in
  buffer x: i32[jd] in
  buffer y: i32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] * x[j] }
}
kernel back(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis id = dense_fixed(m)
  axis jd = dense_fixed(n)
  buffer A: i32[i, j] in
  buffer x: i32[id] in
  buffer y: i32[jd] out
  iterate sum [i, j] as RS { y[j] += A[i, j] * x[i] }
}`

const lines = (coords: readonly Int32Array[], values: ArrayLike<number>): string[] =>
  [...coords[0]!].map((_, e) => `${coords.map((c) => c[e]).join(' ')}: ${values[e]}`).sort()

const arraysOf = ({ storage, values }: StoredPart): StoredTensor => ({
  kind: 'stored',
  shape: storage.axes.map((a) => storage.levels.get(a.name)!.extent),
  arrays: Object.fromEntries(
    [...storage.levels].map(([name, { indptr, indices }]) => [
      name,
      { ...(indptr && { indptr }), ...(indices && { indices }) },
    ]),
  ),
  values,
  dtype: 'i32',
})

const SIZES = [
  [1, 1],
  [2, 4],
  [3, 5],
  [4, 3],
] as const

describe.each(TEXTS)('%s', (_, text) => {
  test.each(SIZES)('round trips and kernels, h = %i, s = %i', async (h, s) => {
    const to = written(text, h, s)
    expect(provedOf(to.parts[0]!.instance, to.over)).toMatchObject({ range: true, inverse: true })
    const program = parseProgram(
      `${kernel}${text}schedule spmv.s { A as tiles(${h}, ${s}) } schedule back.s { A as tiles(${h}, ${s}) }`,
    )
    const kernels = ['spmv', 'back'].map((k) => program.kernel(k).schedule('s').compilation)
    await fc.assert(
      fc.asyncProperty(matrices, async (drawn) => {
        const A = fitting(drawn, text, h, s)
        const made = convertTensor(A, to, givenFor(A.shape))
        const there = partsToCoords(made)
        expect(lines(there.coords, there.values!)).toEqual(lines(A.coords, A.values!))
        const held = occupiedEntries(made.parts[0]!, made)
        expect(lines(held.coords, held.coords[0]!)).toEqual(lines(A.coords, A.coords[0]!))
        const [part] = made.parts
        const arrays = arraysOf(part!)
        const ready = partsFromArrays(to, [{ tensor: arrays, tables: part!.tables }], givenFor(A.shape))
        const again = partsToCoords(ready)
        expect(lines(again.coords, again.values!)).toEqual(lines(A.coords, A.values!))
        const tables = Object.fromEntries(
          [...part!.tables].map(([name, values]) => [
            name,
            { kind: 'dense', shape: [values.length], values, dtype: 'i32' } as const,
          ]),
        )
        const [m, n] = A.shape as [number, number]
        for (const [k, size] of [n, m].entries()) {
          const values = Int32Array.from({ length: size }, (_x, at) => 1 + at)
          const x = { kind: 'dense', shape: [size], values, dtype: 'i32' } as const
          await agreeOnAll(kernels[k]!, { tensors: { A, x }, params: { m, n } })
          await agreeOnAll(kernels[k]!, { tensors: { A: arrays, ...tables, x }, params: { m, n } })
        }
      }),
      { numRuns: costly(3) },
    )
  })
})

test.each(TEXTS)('%s: equal coordinates are added, in inputs and outputs', async (_, text) => {
  const program = parseProgram(`
  kernel scaled(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis jd = dense_fixed(n)
    buffer A: i32[i, j] in
    buffer x: i32[jd] in
    buffer B: i32[i, j] out
    iterate each [i, j] as SS { B[i, j] = A[i, j] * x[j] }
  }
  ${text}schedule scaled.s { A as tiles(2, 3) }`)
  const { compilation } = program.kernel('scaled').schedule('s')
  await fc.assert(
    fc.asyncProperty(matrices, async (drawn) => {
      const A = repeated(fitting(drawn, text, 2, 3))
      const once = summed(A)
      const there = partsToCoords(convertTensor(A, written(text, 2, 3), givenFor(A.shape)))
      expect(lines(there.coords, there.values!)).toEqual(lines(once.coords, once.values!))
      const [m, n] = A.shape as [number, number]
      const values = Int32Array.from({ length: n }, (_x, at) => 1 + at)
      const x = { kind: 'dense', shape: [n], values, dtype: 'i32' } as const
      await agreeOnAll(compilation, { tensors: { A, x }, params: { m, n } })
    }),
    { numRuns: costly(5) },
  )
})

test('lists may have gaps, and separate groups', () => {
  const A = matrix(
    [5, 9],
    [
      [0, 1, 1],
      [0, 4, 2],
      [1, 6, 3],
      [1, 7, 4],
      [4, 8, 5],
    ],
  )
  const [part] = convertTensor(A, written(rowsFirst, 2, 3), givenFor(A.shape)).parts
  // Rows 0 and 1 have two lists, rows 2 and 3 none, row 4 one.
  expect([...part!.tables.get('jo')!]).toEqual([1, 4, 6, 7, 9, 9, 8, 9, 9])
  expect([...part!.values]).toEqual([1, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 5, 0, 0, 0, 0, 0])
})

describe('ready-made lists are checked', () => {
  const A = matrix(
    [4, 6],
    [
      [0, 1, 1],
      [1, 4, 2],
      [3, 5, 3],
    ],
  )
  const to = written(rowsFirst, 2, 3)
  const [part] = convertTensor(
    { ...A, values: Int32Array.from(A.values!), dtype: 'i32' },
    to,
    givenFor(A.shape),
  ).parts
  const code = (jo: readonly number[] | null): string =>
    refusal(() =>
      partsFromArrays(
        to,
        [{ tensor: arraysOf(part!), tables: new Map(jo ? [['jo', Int32Array.from(jo)]] : []) }],
        givenFor(A.shape),
      ),
    ).code
  test.each([
    ['missing', null, 'bind/missing-table'],
    ['short', [1, 4, 6, 5, 6], 'bind/width'],
    ['out of range', [1, 4, 7, 5, 6, 6], 'bind/index-range'],
    ['negative', [-1, 4, 6, 5, 6, 6], 'bind/index-range'],
    ['falling', [4, 1, 6, 5, 6, 6], 'bind/unsorted'],
    ['twice', [4, 4, 6, 5, 6, 6], 'bind/duplicate'],
    ['after padding', [1, 6, 4, 5, 6, 6], 'bind/padding'],
  ] as const)('%s', (_, jo, expected) => {
    expect([...part!.tables.get('jo')!]).toEqual([1, 4, 6, 5, 6, 6])
    expect(code(jo)).toBe(expected)
  })
})

test('parts with lists, in compositions', async () => {
  const program = parseProgram(`${kernel}${rowsFirst}
  format rest over (i, j) {
    axis io = dense_fixed(i)
    axis jo = sparse_variable(io, j)
    map (i, j) -> (i, j)
    inverse (io, jo) -> (io, jo)
  }
  format halves(h, s, c) over (i, j) {
    partition i into c {
      part long = tiles(h, s) where (count(j by i) > 1)
      part rest
    }
  }
  schedule spmv.s { A as halves(2, 3, 3) }
  schedule back.s { A as halves(2, 3, 3) }`)
  const kernels = ['spmv', 'back'].map((k) => program.kernel(k).schedule('s').compilation)
  await fc.assert(
    fc.asyncProperty(matrices, async (drawn) => {
      const A = fitting(drawn, rowsFirst, 2, 3)
      const there = program.format('halves', 2, 3, 3).convert(A).toCoords()
      expect(lines(there.coords, there.values!)).toEqual(lines(A.coords, A.values!))
      const [m, n] = A.shape as [number, number]
      for (const [k, size] of [n, m].entries()) {
        const values = Int32Array.from({ length: size }, (_x, at) => 1 + at)
        const x = { kind: 'dense', shape: [size], values, dtype: 'i32' } as const
        await agreeOnAll(kernels[k]!, { tensors: { A, x }, params: { m, n } })
      }
    }),
    { numRuns: costly(8) },
  )
})

describe('unsupported accesses to a list are rejected', () => {
  const dense = (body: string): string => `
    kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      axis jd = dense_fixed(n)
      buffer A: i32[i, j] in
      buffer y: i32[i] out
      ${body}
    }
    ${rowsFirst}
    schedule k.s { A as tiles(2, 3) }`
  const code = (text: string): string =>
    refusal(() => parseProgram(text).kernel('k').schedule('s').compilation.plan).code
  test.each([
    ['a maximum over tiles', 'iterate most [i, j] as SR { y[i] max= A[i, j] }', 'schedule/format-padding'],
    [
      'elsewhere than at its iterators',
      'iterate sum [i, j] as SR { y[i] += A[i, j] * A[i, 0] }',
      'schedule/format-lookup',
    ],
  ])('%s', (_, body, expected) => {
    expect(code(dense(body))).toBe(expected)
  })
  test('lists of every coordinate of a dense tensor', () => {
    const text = dense('iterate most [i, jd] as SR { y[i] max= A[i, jd] }')
      .replace('axis j = sparse_variable(i, n)\n', '')
      .replace('A: i32[i, j]', 'A: i32[i, jd]')
    expect(code(text)).toBe('schedule/format-padding')
  })
})

test('too many coordinates for a list are rejected, with their location', () => {
  const text = rowsFirst.replace('rank(j by i / h) / s', '0')
  const A = matrix(
    [4, 6],
    [0, 1, 3, 5].map((j) => [3, j, 1]),
  )
  const refused = refusal(() => convertTensor(A, written(text, 2, 3), givenFor(A.shape)))
  expect(refused.code).toBe('bind/width')
  expect(refused.message).toMatch(/axis jo has the width 3, .* stores 4 coordinates/)
})

test('a wrong position is rejected as an inverse', () => {
  const A = matrix(
    [2, 8],
    [1, 4, 6, 7].map((j) => [1, j, 1]),
  )
  for (const wrong of ['rank(j by i) - rank(j by i)', '(position(jo) + 1) % s', 'j % s']) {
    const text = rowsFirst.replace('position(jo)', wrong)
    const refused = refusal(() => convertTensor(A, written(text, 2, 4), givenFor(A.shape)))
    expect(refused.code).toBe('format/not-inverse')
  }
  // Padding holds no coordinate, also where the sum with another would be that of the element.
  const padded = `
  format f over (i, j) {
    axis io = dense_fixed(i)
    axis go = dense_fixed(io, 4)
    list jo = sparse_fixed(go, 2, 2)
    axis q  = dense_fixed(go, 2)
    map (i, j) -> (i, max(j / 2 - 1, 0), 0, 1)
    inverse (io, go, q) -> (io, go * 2 + jo[q])
  }`
  const B = matrix([1, 8], [[0, 4, 1]])
  expect(refusal(() => convertTensor(B, written(padded), givenFor(B.shape))).code).toBe('format/not-inverse')
})

test('lists are loaded only within their width', () => {
  const text = `
  format f over (i, j) {
    axis io = dense_fixed(i)
    axis go = dense_fixed(io, ceildiv(j, 4))
    list jo = sparse_fixed(go, 4, 1)
    axis ji = dense_fixed(go, 2)
    map (i, j) -> (i, j / 4, j % 4, 1 - j / 4)
    inverse (io, go, ji) -> (io, go * 4 + jo[ji])
  }`
  // Element 1 would be found in the list of element 5, which follows its own.
  const A = matrix(
    [1, 8],
    [
      [0, 1, 1],
      [0, 5, 1],
    ],
  )
  expect(refusal(() => convertTensor(A, written(text), givenFor(A.shape))).code).toBe('format/not-inverse')
})

test('a list position without a coordinate is not an element', async () => {
  const text = TEXTS.find(([name]) => name === 'V:N:M')![1]
  const tensor: StoredTensor = {
    kind: 'stored',
    shape: [1, 2, 1, 4],
    arrays: { q: { indices: Int32Array.of(0, 3, 0, 4) } },
    values: Int32Array.of(3, 5, 7, 0),
    dtype: 'i32',
  }
  // The second element would be the first column of the next block.
  const jo = Int32Array.of(1, 2, 5, 5, 0, 4, 5, 5)
  const to = written(text, 1, 5)
  const made = partsFromArrays(to, [{ tensor, tables: new Map([['jo', jo]]) }], givenFor([1, 10]))
  const there = partsToCoords(made)
  expect(lines(there.coords, there.values!)).toEqual(['0 1: 3', '0 5: 7'])
  const program = parseProgram(`${kernel}${text}schedule spmv.s { A as tiles(1, 5) }`)
  const x = { kind: 'dense', shape: [10], values: new Int32Array(10).fill(1), dtype: 'i32' } as const
  const own = { jo: { kind: 'dense', shape: [8], values: jo, dtype: 'i32' } as const }
  await agreeOnAll(program.kernel('spmv').schedule('s').compilation, {
    tensors: { A: tensor, ...own, x },
    params: { m: 1, n: 10 },
  })
})

test('a dense tensor is not written in a format that lists coordinates', () => {
  const text = `
  kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = dense_fixed(n)
    buffer x: i32[j] in
    buffer B: i32[i, j] out
    iterate all [i, j] as SS { B[i, j] = x[j] }
  }
  format kept over (i, j) {
    axis io = dense_fixed(i)
    axis go = dense_fixed(io, ceildiv(j, 4))
    list jo = sparse_fixed(go, 4, 2)
    axis ji = dense_fixed(go, jo)
    map (i, j) -> (i, j / 4, j % 4, position(jo))
    inverse (io, go, ji) -> (io, go * 4 + jo[ji])
  }
  schedule k.s { B as kept }`
  const { code } = refusal(() => parseProgram(text).kernel('k').schedule('s').compilation.plan)
  expect(code).toBe('schedule/format-output')
})

test('lists are not searched for a coordinate', () => {
  const text = `
  kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    buffer A: i32[i, j] in
    buffer y: i32[i] out
    iterate sum [i, j] as SR { y[i] += A[i, j] * A[i, 0] }
  }
  format kept over (i, j) {
    axis io = dense_fixed(i)
    axis go = dense_fixed(io, ceildiv(j, 4))
    list jo = sparse_fixed(go, 4, 1)
    map (i, j) -> (i, j / 4, j % 4)
    inverse (io, go) -> (io, go * 4 + jo[0])
  }
  schedule k.s { A as kept }`
  const refused = refusal(() => parseProgram(text).kernel('k').schedule('s').compilation.plan)
  expect(refused.code).toBe('schedule/format-lookup')
  expect(refused.message).toContain('in the list jo')
})

test('lists without padding without a coordinate need no condition', () => {
  const shown = (more: string): string => {
    const text = rowsFirst.replace('sparse_fixed(go, j, s)', `sparse_fixed(go, j, s) ${more}`)
    return parseProgram(`${kernel}${text}schedule spmv.s { A as tiles(2, 3) }`)
      .kernel('spmv')
      .schedule('s')
      .show(2)
  }
  const aliased = (more: string): string => {
    const text = `
    format tiles(h, s) over (i, j) {
      axis io = dense_fixed(i)
      axis go = sparse_variable(io, ceildiv(j, s))
      list jo = sparse_fixed(go, s, h) ${more}
      axis ji = dense_fixed(go, jo)
      map (i, j) -> (i, j / s, j % s, position(jo))
      inverse (io, go, ji) -> (io, go * s + jo[ji])
    }`
    return parseProgram(`${kernel}${text}schedule spmv.s { A as tiles(2, 3) }`)
      .kernel('spmv')
      .schedule('s')
      .show(2)
  }
  expect(shown('')).toMatch(/where jo.* < n/)
  expect(shown('padded with last')).not.toMatch(/where jo.* < n/)
  expect(aliased('')).toMatch(/jo.* < 3\b/)
  expect(aliased('compact')).not.toMatch(/jo.* < 3\b/)
  expect(aliased('padded with last')).not.toMatch(/jo.* < 3\b/)
})

test('conditions on lists follow from sizes if lists contain coordinates only', () => {
  const shown = (more: string): string => {
    const text = `
    format tiles over (i, j) {
      axis io = dense_fixed(i)
      axis go = sparse_variable(io, ceildiv(j, 4))
      list jo = sparse_fixed(go, 4, 2) ${more}
      axis ji = dense_fixed(go, jo)
      map (i, j) -> (i, j / 4, j % 4, position(jo))
      inverse (io, go, ji) -> (io, go * 4 + jo[ji])
    }`
    const program = parseProgram(`${kernel}${text}schedule spmv.s { A as tiles; require n % 4 == 0 }`)
    return program.kernel('spmv').schedule('s').show(2)
  }
  expect(shown('')).toMatch(/where jo.* < 4/)
  expect(shown('padded with last')).not.toContain('where')
  expect(shown('compact')).not.toContain('where')
})

test('a list that is declared compact is compact', () => {
  const text = rowsFirst.replace('sparse_fixed(go, j, s)', 'sparse_fixed(go, j, s) compact')
  const to = written(text, 2, 2)
  const at = (columns: readonly number[]) =>
    matrix(
      [2, 8],
      columns.map((j) => [1, j, 1]),
    )
  const made = convertTensor(at([1, 4, 6, 7]), to, givenFor([2, 8]))
  expect([...made.parts[0]!.tables.get('jo')!]).toEqual([1, 4, 6, 7])
  expect(refusal(() => convertTensor(at([1, 4, 6]), to, givenFor([2, 8]))).code).toBe('format/claim')
  const { storage, values } = made.parts[0]!
  const tables = new Map([['jo', Int32Array.of(1, 4, 6, 8)]])
  const tensor = { ...arraysOf({ ...made.parts[0]!, storage, values }), dtype: 'f64' as const }
  expect(refusal(() => partsFromArrays(to, [{ tensor, tables }], givenFor([2, 8]))).code).toBe('format/claim')
})

test('tables of formats are stored unchanged', () => {
  const text = `${kernel}${rowsFirst}
  format blocks over (d) {
    axis o = sparse_variable(d)
    map (d) -> (d)
    inverse (o) -> (o)
  }
  schedule spmv.s {
    A as tiles(2, 3)
    jo as blocks
  }`
  const refused = refusal(() => parseProgram(text).kernel('spmv').schedule('s').compilation.plan)
  expect(refused.code).toBe('schedule/unknown-buffer')
})

const FLOATS = kernel.replaceAll('i32', 'f32')

/** Columns that no element has are NaN in what is multiplied, and elements of tiles are where rows have none. */
describe.each(TEXTS)('%s: padding has no effect', (_, text) => {
  test.each([
    [2, 5],
    [3, 2],
  ] as const)('h = %i, s = %i', async (h, s) => {
    const program = parseProgram(`${FLOATS}${text}schedule spmv.s { A as tiles(${h}, ${s}) }`)
    const compiled = await program
      .kernel('spmv')
      .schedule('s')
      .build(await devices.cpu())
    await fc.assert(
      fc.asyncProperty(matrices, async (drawn) => {
        const A = fitting(drawn, text, h, s)
        const [m, n] = A.shape as [number, number]
        const x = new Float32Array(n).fill(Number.NaN)
        for (const j of A.coords[1]!) x[j] = 1 + j
        const y = new Float32Array(m)
        for (const [e, i] of A.coords[0]!.entries()) y[i]! += Number(A.values![e]) * x[A.coords[1]![e]!]!
        const tensors = { A: coords([...A.shape], A.coords, Float32Array.from(A.values!)), x: dense([n], x) }
        const prepared = await compiled.bind(tensors)
        await prepared.run()
        expect([...((await prepared.get('y')).values ?? [])]).toEqual([...y])
        prepared.free()
      }),
      { numRuns: costly(8) },
    )
  })
})

describe('invalid lists', () => {
  const text = (list: string, more = '', map = 'position(jo)', inverse = 'jo[ji]'): string => `
  format f(s, w: size) over (i, j) {
    axis io = dense_fixed(i)
    axis rp = sparse_variable(io, j) nonunique
    ${list}
    ${more}
    axis ji = dense_fixed(io, 4)
    map (i, j) -> (i, j, j, ${more ? 'j, ' : ''}${map})
    inverse (io, rp, ${more && !more.startsWith('list') ? 'x, ' : ''}ji) -> (io, ${inverse})
  }`
  const LIST = 'list jo = sparse_fixed(io, j, 4)'
  test.each([
    ['another kind', text('list jo = sparse_variable(io, j)'), 'check/list-kind'],
    ['nonunique', text(`${LIST} nonunique`), 'check/list-nonunique'],
    ['under a nonunique axis', text('list jo = sparse_fixed(rp, j, 4)'), 'check/list-nonunique'],
    ['packed', text(`${LIST} packed 4`), 'check/list-claim'],
    ['padded with a number', text(`${LIST} padded with 0`), 'check/list-claim'],
    ['full', text(`${LIST} full`), 'check/list-claim'],
    ['a measured width', text('list jo = sparse_fixed(io, j, w)'), 'check/list-size'],
    ['its own size', text('list jo = sparse_fixed(io, j, jo)'), 'check/list-size'],
    ['an axis under it', text(LIST, 'axis x = dense_fixed(jo, 2)'), 'check/list-parent'],
    ['full axes beside it', text(LIST, 'axis x = dense_fixed(io, 2) full'), 'check/list-claim'],
    ['a number', text(LIST, '', 'jo'), 'check/not-a-number'],
    ['a coordinate in the map', text(LIST, '', 'jo[j]'), 'check/table-in-map'],
    ['a position in the inverse', text(LIST, '', 'position(jo)', 'position(jo)'), 'check/query-place'],
    ['the position of an axis', text(LIST, '', 'position(io)'), 'check/query-arguments'],
    ['an unknown list', text(LIST, '', 'position(jo)', 'ji[ji]'), 'check/unknown-buffer'],
    [
      'its own position',
      text(LIST).replace('-> (i, j, j, position(jo))', '-> (i, j, position(jo), position(jo))'),
      'check/list-cycle',
    ],
    ['in a kernel', 'kernel k(n: size) { list i = dense_fixed(n) }', 'parse/unexpected'],
  ])('%s', (_, of, code) => {
    expect(refusal(() => parseProgram(of)).code).toBe(code)
  })
})
