/** Every kind of axis: assembly, enumeration, validation and search agree on the positions of one level. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { arraysOfLevel } from '../../src/columns/stored-level.ts'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import { bindLevel } from '../../src/levels/index.ts'
import { buildStorage } from '../../src/storage/build-storage.ts'
import { locateInLevels } from '../../src/storage/entries/locate.ts'
import { toCoords } from '../../src/storage/entries/stored-coords.ts'
import {
  bitmap,
  denseFixed,
  denseUnder,
  denseVariable,
  run,
  sparseFixed,
  sparseVariable,
} from '../formats/arbitrary.ts'
import { runs } from '../support/cases.ts'

const KINDS: readonly StoredAxis[] = [
  denseUnder('j', 'i'),
  denseVariable('j', 'i'),
  run('j', 'i'),
  sparseFixed('j', 'i'),
  sparseVariable('j', 'i'),
  bitmap('j', 'i'),
]
const ROWS = 4
const COLUMNS = 7
const extents = new Map([
  ['i', ROWS],
  ['j', COLUMNS],
])
const cells = fc.uniqueArray(fc.integer({ min: 0, max: ROWS * COLUMNS - 1 }), { maxLength: 12 })

test.each(KINDS)('$kind', (axis) => {
  const axes = [denseFixed('i'), axis]
  fc.assert(
    fc.property(cells, (at) => {
      const coords = [
        Int32Array.from(at, (x) => Math.floor(x / COLUMNS)),
        Int32Array.from(at, (x) => x % COLUMNS),
      ]
      const storage = buildStorage({ axes, extents, coords })
      const level = storage.levels.get('j')!
      // Validation accepts the arrays, and does not change them.
      const arrays = Object.fromEntries(arraysOfLevel(level))
      const fixed = { width: level.width ?? undefined }
      expect(bindLevel(axis, COLUMNS, storage.levels.get('i')!, arrays, fixed, null)).toEqual(level)
      // Search finds each enumerated coordinate at its position, and all elements.
      const ones = toCoords(storage, new Float32Array(storage.size).fill(1), 'f32')
      const levels = [storage.levels.get('i')!, level]
      const positions = locateInLevels(levels, ones.coords)
      expect(new Set(positions).size).toBe(positions.length)
      expect([...positions].every((q) => q >= 0 && q < level.positions)).toBe(true)
      const stored = new Set([...ones.coords[0]!].map((p, e) => p * COLUMNS + ones.coords[1]![e]!))
      expect(at.filter((x) => !stored.has(x))).toEqual([])
      for (let x = 0; x < ROWS * COLUMNS; x++)
        if (!stored.has(x))
          expect(() =>
            locateInLevels(levels, [Int32Array.of(Math.floor(x / COLUMNS)), Int32Array.of(x % COLUMNS)]),
          ).toThrow(
            `axis j does not store the coordinate ${x % COLUMNS} at position ${Math.floor(x / COLUMNS)}`,
          )
    }),
    { numRuns: runs(60) },
  )
})

test('a run stores the coordinates from the first to the last element', () => {
  const axes = [denseFixed('i'), run('j', 'i')]
  const coords = [Int32Array.of(0, 2, 2), Int32Array.of(3, 5, 1)]
  const { indptr, starts } = buildStorage({ axes, extents, coords }).levels.get('j')!
  expect([indptr, starts]).toEqual([Int32Array.of(0, 1, 1, 6, 6), Int32Array.of(3, 0, 1, 0)])
})
