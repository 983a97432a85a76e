/** What users write in formats beyond the package's: devices hold it, or refuse it, exactly as the host does. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { conversionPlan, uploadResident } from '../../src/storage/engines/device/index.ts'
import { queueOf } from '../../src/storage/engines/device/resident-tensors.ts'
import { convertTensor } from '../../src/storage/entries/stored-parts.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { givenFor, matrices, matrix, written } from '../formats/user-formats.ts'
import { runs } from '../support/cases.ts'
import { arraysOf } from '../support/packaged-schedules.ts'
import { opened, openInBlocks } from './devices.ts'

const ROWS = `format rows over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`
/** A format over rows with one axis below, as said. */
const below = (axis: string): string => `format f over (i, j) {
  axis io = dense_fixed(i)
  axis jo = ${axis}
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}`
const FORMATS: readonly (readonly [what: string, text: string])[] = [
  ['the largest of a row', `${ROWS}format f over (i, j) { part a = rows where (top(2 by i))\n part rows }`],
  ['the largest of all', `${ROWS}format f over (i, j) { part a = rows where (largest() < 5)\n part rows }`],
  ['values', `${ROWS}format f over (i, j) { part a = rows where (value >= 6)\n part rows }`],
  [
    'one width of two axes',
    `format f(w: size) over (i, j) {
      axis io = dense_fixed(i)
      axis jb = sparse_fixed(io, ceildiv(j, 4), w)
      axis jo = sparse_fixed(jb, 4, w)
      map (i, j) -> (i, j / 4, j % 4)
      inverse (io, jb, jo) -> (io, jb * 4 + jo)
    }`,
  ],
  [
    'nonunique over nonunique of a width',
    `format f over (i, j) {
      axis io = sparse_variable(i) nonunique
      axis jb = sparse_fixed(io, ceildiv(j, 4), 2) nonunique
      axis jo = sparse_fixed(jb, 4, 1)
      map (i, j) -> (i, j / 4, j % 4)
      inverse (io, jb, jo) -> (io, jb * 4 + jo)
    }`,
  ],
  [
    'nonunique over nonunique of any length',
    `format f over (i, j) {
      axis io = sparse_variable(i) nonunique
      axis jb = sparse_variable(io, ceildiv(j, 4)) nonunique
      axis jo = sparse_fixed(jb, 4, 2)
      map (i, j) -> (i, j / 4, j % 4)
      inverse (io, jb, jo) -> (io, jb * 4 + jo)
    }`,
  ],
  ['full, compressed', below('sparse_variable(io, j) full')],
  ['full, ragged', below('dense_variable(io, j) full')],
  ['full, of a width', below('sparse_fixed(io, j, j) full')],
  [
    'full, dense',
    `format f over (i, j) {
      axis io = dense_fixed(i)
      axis jb = sparse_variable(io, ceildiv(j, 2))
      axis jo = dense_fixed(jb, 2) full
      map (i, j) -> (i, j / 2, j % 2)
      inverse (io, jb, jo) -> (io, jb * 2 + jo)
    }`,
  ],
  [
    'sorted tiles of sorted columns',
    `format f over (i, j) {
      sort j by -count(i by j) -> (place, col)
      axis to = dense_fixed(ceildiv(j, 2))
      sort to by -count(i by to) within 4 -> (tp, tc)
      axis io = sparse_variable(to, i)
      axis ji = dense_fixed(io, 2)
      map (i, j) -> (tp[place[j] / 2], i, place[j] % 2)
      inverse (to, io, ji) -> (io, col[tc[to] * 2 + ji])
    }`,
  ],
  ['compact', below('sparse_fixed(io, j, 2) compact')],
  [
    'compact under padding',
    `format f over (i, j) {
      axis io = dense_fixed(i)
      axis jb = sparse_fixed(io, ceildiv(j, 2), ceildiv(j, 2))
      axis jo = sparse_fixed(jb, 2, 2) compact
      map (i, j) -> (i, j / 2, j % 2)
      inverse (io, jb, jo) -> (io, jb * 2 + jo)
    }`,
  ],
]

describe.each([
  ['', createCpuDevice],
  ['in blocks', openInBlocks],
])('equal on a device and on the host: %s', (_, open) => {
  const on = opened(open)

  const outcome = async <T>(f: () => T | Promise<T>): Promise<T | string> => {
    try {
      return await f()
    } catch (e) {
      if (e instanceof SptError) return e.diagnostics[0]!.code
      throw e
    }
  }
  /** All elements of a small matrix, so that claims hold of some. */
  const full: fc.Arbitrary<CoordTensor> = fc
    .tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 4 }), fc.nat(1))
    .map(([m, n, without]) =>
      matrix(
        [m, n],
        Array.from({ length: m * n - without }, (_, k) => [Math.floor(k / n), k % n, k + 1]),
      ),
    )

  test.each(FORMATS)('%s', async (_, text) => {
    const to = written(text)
    const plan = conversionPlan(on.device, to)
    await fc.assert(
      fc.asyncProperty(fc.oneof(matrices, full), fc.boolean(), async (m, pattern) => {
        const t: CoordTensor = pattern ? { ...m, values: null } : m
        const given = givenFor(t.shape)
        const from = await uploadResident(on.device, t)
        const { bytes } = queueOf(on.device)
        const found = await outcome(async () => {
          const made = await plan.run(from, given)
          const arrays = arraysOf(await made.download())
          made.free()
          return arrays
        })
        expect(found).toEqual(await outcome(() => arraysOf(convertTensor(t, to, given))))
        expect(queueOf(on.device).bytes).toBe(bytes)
        from.free()
      }),
      { numRuns: runs(12) },
    )
  })

  test('more positions than 32 bits can count, even if the number wraps to a small one', async () => {
    const to = written(below('dense_variable(io, j)'))
    const [m, n] = [108_000, 40_000]
    const rows = Int32Array.from({ length: m }, (_, k) => k)
    const t: CoordTensor = {
      kind: 'coords',
      shape: [m, n],
      coords: [rows, rows.map(() => n - 1)],
      values: null,
      dtype: 'f32',
    }
    const from = await uploadResident(on.device, t)
    expect(await outcome(() => conversionPlan(on.device, to).run(from, givenFor(t.shape)))).toBe(
      'convert/too-large',
    )
    from.free()
  })
})
