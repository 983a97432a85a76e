/** Spaces of sketches as a caller sees them: decisions, points, what is refused, and the kernels of the package. */
import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { points, repaired } from '../../src/search/points.ts'
import { sketches } from '../../src/search/sketches.ts'
import { diagnosticOf, refusal } from '../support/refusal.ts'

const SUMS = `kernel sums(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
import "sparsetile/kernels/formats.spt"`

test('a point is ordinary steps, and its decisions come one after the other', async () => {
  const space = sketches((await load(SUMS)).kernel(), { device: 'cpu', formats: {} })
  expect(space.guess).toEqual({ 'sum.tile': 8, 'sum.order': 'rows', 'sum.written': 'unrolled' })
  expect(space.kernel(space.guess).trace).toEqual([
    'split f by 8 -> (fo, fi)',
    'reorder (i, fo, j, fi)',
    'cache_write C at fo in register',
    'unroll sum.fi',
  ])
  expect(space.next({})?.values).toEqual([0, 4, 8, 16, 32, 64])
  expect(space.next({ 'sum.tile': 0 })?.name).toBe('sum.unroll')
  expect(space.next(space.guess)).toBe(null)
  const all = [...points(space)]
  expect(new Set(all.map((p) => space.kernel(p).trace.join())).size).toBe(all.length)
})

test('formats are those of the program that fit, or those that are given', async () => {
  const kernel = (await load(SUMS)).kernel()
  const formats = sketches(kernel, { device: 'cpu' }).next({})
  expect(formats?.name).toBe('A.format')
  expect(formats?.values).toEqual(expect.arrayContaining(['as declared', 'csr', 'bsr', 'sell', 'coo']))
  // Segments of lists come with the data.
  expect(formats?.values).not.toContain('vbr')
  const given = sketches(kernel, { device: 'cpu', formats: { A: ['', 'bsr(4)'] } })
  expect(given.next({})?.values).toEqual(['as declared', 'bsr(4)'])
  const point = repaired(given, { 'A.format': 'bsr(4)' })!
  expect(given.kernel(point).trace[0]).toBe('A as bsr(4)')
})

test('what cannot be searched is refused', async () => {
  const kernel = (await load(SUMS)).kernel()
  const code = (f: () => unknown): string => refusal(f).code
  expect(code(() => sketches(kernel, { device: 'cpu', formats: { B: [''] } }))).toBe('search/unknown-tensor')
  expect(code(() => sketches(kernel, { device: 'gpu' as never }))).toBe('api/argument')
  expect(code(() => sketches(kernel.unroll('f', 4), { device: 'cpu' }))).toBe('search/has-schedule')
  const space = sketches(kernel, { device: 'cpu', formats: {} })
  expect(code(() => space.kernel({ ...space.guess, 'sum.tile': 7 }))).toBe('search/point')
})

const files = readdirSync('kernels').filter((f) => f.endsWith('.spt'))

for (const device of ['cpu'] as const)
  test(`every kernel of the package has a best guess for ${device}`, async () => {
    const refused: string[] = []
    for (const file of files) {
      const program = await load(`kernels/${file}`)
      for (const name of program.kernels) {
        const space = sketches(program.kernel(name), { device, formats: {} })
        const code = diagnosticOf(() => space.kernel(space.guess).emit('js'))?.code
        if (code) refused.push(`${name}: ${code}`)
      }
    }
    expect(refused).toEqual([])
  })
