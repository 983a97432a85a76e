/** Rules of permutable dimensions: each format is accepted as text, and computes what the reference does. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { dense, devices, load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'

const matmul = (imports = '') => `${imports}
kernel mm(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(k)
  buffer A: f32[i, p] in
  buffer B: f32[p, j] in
  buffer C: f32[i, j] out
  iterate product [i, j, p] as SSR { C[i, j] += A[i, p] * B[p, j] }
}
`
const BATCHED = `
kernel bmm(b: size, m: size, n: size, k: size) {
  axis g = dense_fixed(b)
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(k)
  buffer A: f32[g, i, p] in
  buffer X: f32[p] in
  buffer B: f32[g, p, j] in
  buffer C: f32[g, i, j] out
  iterate product [g, i, j, p] as SSSR { C[g, i, j] += A[g, i, p] * X[p] * B[g, p, j] }
}
`
/** Of which the input is met at sums of coordinates: it has no formats, the filter has. */
const CONVOLUTION = `
kernel conv(n: size, m: size, f: size) {
  axis b = dense_fixed(n)
  axis c = dense_fixed(m)
  axis o = dense_fixed(f)
  axis x = dense_fixed(8)
  axis i = dense_fixed(3)
  axis z = dense_fixed(10)
  buffer A: f32[b, c, z] in
  buffer W: f32[o, c, i] in
  buffer Y: f32[b, o, x] out
  iterate slide [b, o, x, c, i] as SSSRR { Y[b, o, x] += A[b, c, x + i] * W[o, c, i] }
}
`
const FIXED: Readonly<Record<string, number>> = { x: 8, i: 3, z: 10 }
const extent = fc.integer({ min: 1, max: 4 })

test.each([
  ['matmul', matmul(), ['i', 'j', 'p'], 4],
  ['batched', BATCHED, ['g', 'i', 'j', 'p'], 7],
  ['convolution', CONVOLUTION, ['b', 'o', 'c', 'i', 'x'], 2],
])('%s: formats are accepted as text, and verify', async (_, text, axes, count) => {
  const cpu = await devices.cpu()
  await fc.assert(
    fc.asyncProperty(
      fc.array(extent, { minLength: 5, maxLength: 5 }),
      fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 4, maxLength: 4 }),
      fc.infiniteStream(fc.constantFrom(0, 0, 0, 0, 1, -2, 3)),
      async (tile, sizes, values) => {
        const wanted = Object.fromEntries(axes.map((a, k) => [a, tile[k]!]))
        const rules = parseProgram(text)
          .kernel()
          .inspect.microTiles(wanted)
          .filter((r) => r.format !== null)
        expect(rules.length).toBe(count)
        for (const { dimension: d, extents, tile: all, format } of rules) {
          expect(all).toEqual(wanted)
          expect(extents[d.dimension]).toBe(1)
          const program = parseProgram(format!.text + text)
          const name = [...program.formats.keys()][0]!
          const kernel = program.kernel().as(d.tensor, name)
          const of = (a: string) => (text === CONVOLUTION ? FIXED[a] : undefined) ?? sizes[axes.indexOf(a)]!
          const tensors = Object.fromEntries(
            kernel.source.buffers
              .filter((b) => b.role === 'in')
              .map((b) => {
                const shape = b.axes.map(of)
                const total = shape.reduce((x, y) => x * y, 1)
                return [
                  b.name,
                  dense(
                    shape,
                    Array.from({ length: total }, () => values.next().value!),
                  ),
                ]
              }),
          )
          const compiled = await kernel.build(cpu)
          const prepared = await compiled.bind(tensors)
          expect((await prepared.verify()).problems, format!.text).toEqual([])
          prepared.free()
          compiled.release()
        }
      },
    ),
    { numRuns: runs(4) },
  )
})

test('extents are 1 along the dimension, those of the tile along others', () => {
  const rules = parseProgram(matmul()).kernel().inspect.microTiles({ i: 32, p: 64, j: 16 })
  const of = rules.map((r) => [r.dimension.tensor, r.dimension.axis, r.extents, r.dimension.results])
  expect(of).toEqual([
    ['A', 'i', [1, 64], 'permuted'],
    ['A', 'p', [32, 1], 'kept'],
    ['B', 'p', [1, 16], 'kept'],
    ['B', 'j', [64, 1], 'permuted'],
  ])
})

test('equivalent formats of the program are named, with arguments', async () => {
  const program = await load(matmul('import "sparsetile/kernels/formats.spt"'), { name: 'mm.spt' })
  const known = (tile: Record<string, number>) =>
    program
      .kernel()
      .inspect.microTiles(tile)
      .map((r) => [`${r.dimension.tensor}.${r.dimension.axis}`, r.format!.equalFormats])
  expect(known({ i: 32, p: 64 })).toEqual([
    ['A.i', []],
    ['A.p', ['sr_bcrs(32, 64)']],
    ['B.p', []],
    ['B.j', ['sr_bcrs(64, 32)']],
  ])
})

test('no format is proposed if skipped elements would change the result', () => {
  const text = `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  iterate s [i, j] as SR { C[i] += exp(A[i, j]) }
}`
  const rules = parseProgram(text).kernel().inspect.microTiles()
  expect(rules.length).toBe(2)
  for (const r of rules) {
    expect(r.format).toBeNull()
    expect(r.rejection).toMatch(/\w/)
  }
})

test('sparse inputs, temporaries and results have no tiles; rejected tensors neither', () => {
  const text = `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis q = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer X: f32[q] in
  buffer Y: f32[i] in
  buffer C: f32[i] out
  iterate s [i, j] as SR { C[i] += A[i, j] * X[j] * Y[i] * f32(i) }
}`
  const rules = parseProgram(text).kernel().inspect.microTiles()
  expect(rules.map((r) => `${r.dimension.tensor}.${r.dimension.axis}`)).toEqual(['X.q'])
})

test.each([
  [{ x: 4 }, /axis of a dense tile/],
  [{ i: 0 }, /dense tile/],
  [{ i: 1.5 }, /dense tile/],
  [4, /dense tile/],
])('a tile of %j is rejected', (tile, said) => {
  expect(() =>
    parseProgram(matmul())
      .kernel()
      .inspect.microTiles(tile as never),
  ).toThrow(said)
})
