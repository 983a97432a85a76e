/** Ready-made arrays of a format that takes a list stand where its map puts elements, under that list. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { coords, devices, load, SptError, type StoredTensor } from '../../src/node.ts'
import { ROW_SUMS, segmentsOfRows } from '../formats/programs.ts'
import { runs } from '../support/cases.ts'

const TEXT = `${segmentsOfRows('seg')}${ROW_SUMS}`
const drawn = fc.tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 5 })).chain(([m, n]) => {
  const cuts = (size: number) =>
    fc
      .array(fc.integer({ min: 0, max: m }), { minLength: size, maxLength: size })
      .map((xs) => [0, ...xs.sort((a, b) => a - b), m])
  return fc.integer({ min: 0, max: 3 }).chain((size) =>
    fc.record({
      shape: fc.constant([m, n] as const),
      points: fc.uniqueArray(fc.integer({ min: 0, max: m * n - 1 })),
      own: cuts(size),
      other: cuts(size),
    }),
  )
})
const refused = (work: () => unknown): string | null => {
  try {
    work()
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    return e.diagnostics[0]!.code
  }
  return null
}

it('arrays are accepted with a list that has their elements in the same segments, and no other list', async () => {
  const device = await devices.cpu()
  const program = await load(TEXT)
  const format = program.format('seg')
  const compiled = await program.kernel().as('A', 'seg(rows)').build(device, { auto: false })
  fc.assert(
    fc.property(drawn, ({ shape, points, own, other }) => {
      const [m, n] = shape
      const at = points.map((p) => [Math.floor(p / n), p % n] as const)
      const t = coords(
        shape,
        [0, 1].map((d) => at.map((p) => p[d]!)),
        Float32Array.from(at, (_, e) => e + 1),
      )
      const { parts } = format.convert(t, { rows: own })
      const A = parts[0]!.tensor as StoredTensor
      const tries = (rows: readonly number[]) => [
        refused(() => format.fromParts(shape, parts, { rows })),
        refused(() => compiled.bindOnHost({ A, rows: [...rows] })),
      ]
      expect(tries(own)).toEqual([null, null])
      // Where each element comes to stand under the other list, and whether that is where its map has it.
      const find = (i: number): number => other.findLastIndex((b) => b <= i)
      const right = at.every(([i]) => {
        const s = own.findLastIndex((b) => b <= i)
        const now = other[s]! + i - own[s]!
        return now >= m || find(now) === s
      })
      if (right) expect(tries(other).every((x) => x === null || x === 'bind/duplicate')).toBe(true)
      else for (const code of tries(other)) expect(code).toMatch(/format\/not-inverse|bind\/duplicate/)
    }),
    { numRuns: runs(40) },
  )
  await device.dispose()
})
