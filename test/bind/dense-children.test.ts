/** Outputs and temporaries over a dense axis below a structured one: the structure of the parent determines their positions. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, devices, load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'

/** Axes i, j over a 3 × 4 matrix, and the columns that a row with these elements stores. */
const KINDS: Readonly<
  Record<string, readonly [axes: string, stored: (columns: readonly number[]) => readonly number[]]>
> = {
  compressed: ['axis i = dense_fixed(m) axis j = sparse_variable(i, 4)', (c) => c],
  hypersparse: ['axis i = sparse_variable(m) axis j = sparse_variable(i, 4)', (c) => c],
  ragged: ['axis i = dense_fixed(m) axis j = dense_variable(i, 4)', (c) => range(0, Math.max(-1, ...c))],
  run: [
    'axis i = dense_fixed(m) axis j = run(i, 4)',
    (c) => (c.length === 0 ? [] : range(Math.min(...c), Math.max(...c))),
  ],
  bitmap: ['axis i = dense_fixed(m) axis j = bitmap(i, 4)', (c) => c],
  'coordinate list': ['axis i = sparse_variable(m) axis j = singleton(i, 4)', (c) => c],
  'repeated columns': ['axis i = dense_fixed(m) axis j = sparse_variable(i, 4) nonunique', (c) => c],
}
const range = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, k) => from + k)

const cells = fc
  .uniqueArray(fc.integer({ min: 0, max: 11 }), { maxLength: 8 })
  .map((at) => at.sort((a, b) => a - b))

test.each(Object.entries(KINDS))('%s', async (_, [axes, stored]) => {
  const program = await load(`kernel q(m: size, d: size) {
    ${axes}
    axis f = dense_fixed(j, d)
    axis g = dense_fixed(f, 2)
    buffer A: i32[i, j] in
    buffer T: i32[i, j, f] local
    buffer Y: i32[i, j, f, g] out
    iterate t [i, j, f] as SSS { T[i, j, f] = A[i, j] + f }
    iterate u [i, j, f, g] as SSSS { Y[i, j, f, g] = T[i, j, f] * 2 + g }
  }`)
  const device = await devices.cpu()
  const compiled = await program.kernel().build(device)
  await fc.assert(
    fc.asyncProperty(cells, fc.integer({ min: 0, max: 3 }), async (at, d) => {
      const rows = at.map((x) => Math.floor(x / 4))
      const columns = at.map((x) => x % 4)
      const A = coords(
        [3, 4],
        [rows, columns],
        Int32Array.from(at, (x) => x + 1),
      )
      const { Y } = await compiled({ d, A })
      const expected = range(0, 2).flatMap((i) =>
        stored(columns.filter((_, e) => rows[e] === i)).flatMap((j) =>
          range(0, d - 1).flatMap((f) => {
            const value = at.includes(i * 4 + j) ? i * 4 + j + 1 : 0
            return range(0, 1).map((g) => `${[i, j, f, g]}=${(value + f) * 2 + g}`)
          }),
        ),
      )
      if (Y?.kind !== 'coords') throw new Error('the result has coordinates')
      expect(Array.from(Y.values!, (v, e) => `${Y.coords.map((c) => c[e])}=${v}`)).toEqual(expected)
    }),
    { numRuns: runs(12) },
  )
  await device.dispose()
})
