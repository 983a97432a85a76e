/** Logical grids on those of a device: as they are, folded, or refused. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { physicalGrid } from '../../src/backends/grid-folding.ts'
import { property } from '../support/property.ts'

const max = fc.tuple(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 1, max: 70 }), fc.constant(1))
const sides = fc.tuple(
  fc.integer({ min: 1, max: 90 }),
  fc.integer({ min: 1, max: 90 }),
  fc.integer({ min: 1, max: 3 }),
)
property([sides, max])(
  'a grid that fits is unchanged; a folded grid has every block and few more',
  (logical, limits) => {
    const grid = physicalGrid(logical, limits)
    const total = logical.reduce((a, b) => a * b, 1)
    if (logical.every((n, d) => n <= limits[d]!)) expect(grid).toEqual(logical)
    else if (!grid) expect(total).toBeGreaterThan(limits[0] * limits[1])
    else {
      expect(grid[0]).toBeLessThanOrEqual(limits[0])
      expect(grid[1]).toBeLessThanOrEqual(limits[1])
      expect(grid[0] * grid[1] - total).toBeLessThan(grid[1])
      expect(grid[0] * grid[1]).toBeGreaterThanOrEqual(total)
    }
  },
)

test('no folded grid exceeds the range of its index', () => {
  expect(physicalGrid([2 ** 31, 1, 1], [65535, 65535, 65535])).toBeUndefined()
  expect(physicalGrid([2 ** 31 - 1, 1, 1], [2 ** 31 - 1, 65535, 65535])).toEqual([2 ** 31 - 1, 1, 1])
})
