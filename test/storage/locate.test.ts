/** Where equal coordinates meet, each goes to an element, whatever repeats its coordinate beside it. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import { int } from '../../src/ir/expressions/expr.ts'
import { buildStorage } from '../../src/storage/build-storage.ts'
import { locate } from '../../src/storage/entries/locate.ts'
import { runs } from '../support/cases.ts'

const M = 3
const N = 4
const flags = fc.record({ ordered: fc.boolean(), unique: fc.boolean() })
const entries = fc.array(fc.tuple(fc.nat(M - 1), fc.nat(N - 1)), { minLength: 1, maxLength: 12 })

const shapes = fc.record({
  root: flags,
  leaf: flags,
  padding: fc.constantFrom<'last' | number | undefined>('last', undefined, 0, 1, N - 1),
  pieces: fc.boolean(),
  share: fc.boolean(),
})

test('equal coordinates of a padded structure', () => {
  fc.assert(
    fc.property(shapes, entries, fc.gen(), ({ root, leaf, padding, pieces, share }, at, g) => {
      const io: StoredAxis = { kind: 'sparse_variable', name: 'io', parent: null, extent: int(M), ...root }
      const jo: StoredAxis = {
        kind: 'sparse_fixed',
        name: 'jo',
        parent: 'io',
        extent: int(N),
        width: int(2),
        ...leaf,
        ...(padding === undefined ? {} : { padding: padding === 'last' ? padding : int(padding) }),
      }
      const columns = (of: readonly (readonly [number, number])[]): Int32Array[] =>
        [0, 1].map((d) => Int32Array.from(of, (e) => e[d]!))
      const storage = buildStorage({
        axes: [io, jo],
        extents: new Map([
          ['io', M],
          ['jo', N],
        ]),
        coords: columns(at),
        // Rows are of one piece where they are one position each.
        widths: new Map([['jo', pieces && !root.unique ? 2 : at.length]]),
        paddings: new Map(typeof padding === 'number' ? [['jo', padding]] : []),
        ...(share ? { duplicates: 'share' as const } : {}),
      })
      const held = storage.entries.positions ?? Int32Array.from(at.keys())
      const order = g(fc.shuffledSubarray, [...at.keys()], { minLength: at.length })
      const keys = columns(order.map((e) => at[e]!))
      // The entries of a tree determine which positions are elements. Without them, all positions may be.
      const found = locate(storage, keys, true, new Map([['jo', storage.entries]]))
      const places = (key: string, of: (e: number) => number): number[] =>
        at.flatMap((x, e) => (x.join() === key ? [of(e)] : [])).sort((a, b) => a - b)
      for (const key of new Set(at.map((x) => x.join())))
        expect(places(key, (e) => found[order.indexOf(e)]!)).toEqual(places(key, (e) => held[e]!))
      expect(() => locate(storage, keys)).not.toThrow()
    }),
    { numRuns: runs(500) },
  )
})
