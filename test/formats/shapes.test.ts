/** The named structures, array by array, on one small matrix and on the awkward shapes. */
import { describe, expect, it } from 'vitest'
import { hasIndices, type StoredAxis } from '../../src/ir/coordinates/axis.ts'
import { div, int, mod, variable } from '../../src/ir/expressions/expr.ts'
import { type BuiltStorage, buildStorage } from '../../src/storage/build-storage.ts'
import { locate, scatterValues } from '../../src/storage/entries/locate.ts'
import { coordsOfDense, toCoords } from '../../src/storage/entries/stored-coords.ts'
import { storedValues, validateStored } from '../../src/storage/ready/validate.ts'
import type { Storage } from '../../src/storage/storage.ts'
import { describe as report } from '../../src/storage/storage-report.ts'
import { mapped } from '../support/host-frame.ts'
import { without } from '../support/omit.ts'
import { denseFixed, denseUnder, denseVariable, sparseFixed, sparseVariable } from './arbitrary.ts'

// 0 5 0 0 1
// 0 0 0 0 0
// 2 0 3 0 0
// 0 4 0 0 0
const rows = Int32Array.of(3, 0, 2, 0, 2)
const cols = Int32Array.of(1, 4, 0, 1, 2)
const values = Float64Array.of(4, 1, 2, 5, 3)
const shape = [4, 5]

const build = (
  axes: readonly StoredAxis[],
  sizes: readonly number[],
  coords: readonly Int32Array[],
  more: { widths?: ReadonlyMap<string, number> } = {},
): BuiltStorage =>
  buildStorage({ axes, extents: new Map(axes.map((a, k) => [a.name, sizes[k]!])), coords, ...more })

const arrays = (s: Storage, axis: string): (number[] | null)[] => {
  const l = s.levels.get(axis)!
  return [l.indptr && [...l.indptr], l.indices && [...l.indices]]
}
const place = (s: Storage, coords: readonly Int32Array[], fill = 0): number[] => [
  ...scatterValues(s, { coords, values, dtype: 'f64' }, 'f64', fill),
]

describe('matrices', () => {
  it('CSR: dense rows, compressed columns', () => {
    const s = build([denseFixed('i'), sparseVariable('j', 'i')], shape, [rows, cols])
    expect(arrays(s, 'j')).toEqual([
      [0, 2, 2, 4, 5],
      [1, 4, 0, 2, 1],
    ])
    expect(place(s, [rows, cols])).toEqual([5, 1, 2, 3, 4])
  })

  it('CSC: the same with the axes the other way round', () => {
    const s = build([denseFixed('j'), sparseVariable('i', 'j')], [5, 4], [cols, rows])
    expect(arrays(s, 'i')).toEqual([
      [0, 1, 3, 4, 4, 5],
      [2, 0, 3, 2, 0],
    ])
    expect(place(s, [cols, rows])).toEqual([2, 5, 4, 3, 1])
  })

  it('DCSR: only nonempty rows', () => {
    const s = build([sparseVariable('i', null), sparseVariable('j', 'i')], shape, [rows, cols])
    expect(arrays(s, 'i')).toEqual([
      [0, 3],
      [0, 2, 3],
    ])
    expect(arrays(s, 'j')[0]).toEqual([0, 2, 4, 5])
  })

  it('COO: every entry has its own row position', () => {
    const axes = [sparseVariable('i', null, { unique: false }), sparseFixed('j', 'i')]
    const s = build(axes, shape, [rows, cols], { widths: new Map([['j', 1]]) })
    expect(arrays(s, 'i')).toEqual([
      [0, 5],
      [0, 0, 2, 2, 3],
    ])
    expect(arrays(s, 'j')).toEqual([null, [1, 4, 0, 2, 1]])
    expect(s.levels.get('j')!.width).toBe(1)
  })

  it('COO keeps duplicates separate, also', () => {
    const axes = [sparseVariable('i', null, { unique: false }), sparseFixed('j', 'i')]
    const twice = [Int32Array.of(1, 0, 1), Int32Array.of(2, 0, 2)]
    const s = build(axes, [2, 3], twice, { widths: new Map([['j', 1]]) })
    expect(s.size).toBe(3)
    expect([...s.entries.positions!]).toEqual([1, 0, 2])
    expect([
      ...locate(
        s,
        twice.map((c) => c.slice()),
      )!,
    ]).toEqual([1, 0, 2])
  })

  it('ELL: the width is that of the longest row; padding is the extent, at the end', () => {
    const s = build([denseFixed('i'), sparseFixed('j', 'i')], shape, [rows, cols])
    expect(s.levels.get('j')!.width).toBe(2)
    expect(arrays(s, 'j')).toEqual([null, [1, 4, 5, 5, 0, 2, 1, 5]])
    expect(place(s, [rows, cols], -1)).toEqual([5, 1, -1, -1, 2, 3, 4, -1])
    const wide = build([denseFixed('i'), sparseFixed('j', 'i')], shape, [rows, cols], {
      widths: new Map([['j', 3]]),
    })
    expect(arrays(wide, 'j')[1]).toEqual([1, 4, 5, 5, 5, 5, 0, 2, 5, 1, 5, 5])
    expect(report(wide, 'f32')).toMatchObject({
      size: 12,
      padding: 7,
      structureBytes: 48,
      valueBytes: 48,
      bytes: 96,
      levels: [{}, { axis: 'j', padding: 7, segments: 4, emptySegments: 1, longestSegment: 2 }],
    })
    expect([
      ...storedValues(s, { kind: 'stored', shape, arrays: {}, values: null, dtype: 'f32' }, 9),
    ]).toEqual([1, 1, 9, 9, 1, 1, 1, 9])
  })

  it('ragged: rows as long as their largest coordinate', () => {
    const axes = [denseFixed('i'), denseVariable('j', 'i')]
    const s = build(axes, shape, [rows, cols])
    expect(arrays(s, 'j')).toEqual([[0, 5, 5, 8, 10], null])
    expect(place(s, [rows, cols])).toEqual([0, 5, 0, 0, 1, 2, 0, 3, 0, 4])
  })

  it('BSR and DBSR: blocks by a coordinate map, absent elements of a block are fill', () => {
    const [i, j] = [variable('i'), variable('j')]
    const map = [div(i, int(2)), div(j, int(2)), mod(i, int(2)), mod(j, int(2))]
    const coords = mapped(map, { i: rows, j: cols })
    const inner = [denseFixed('ii'), denseFixed('ji')]
    const sizes = [2, 3, 2, 2]
    const bsr = build([denseFixed('io'), sparseVariable('jo', 'io'), ...inner], sizes, coords)
    expect(arrays(bsr, 'jo')).toEqual([
      [0, 2, 4],
      [0, 2, 0, 1],
    ])
    expect(place(bsr, coords, 7)).toEqual([7, 5, 7, 7, 1, 7, 7, 7, 2, 7, 7, 4, 3, 7, 7, 7])
    const upper = coords.map((c) => c.filter((_, e) => coords[0]![e] === 1))
    const dbsr = build([sparseVariable('io', null), sparseVariable('jo', 'io'), ...inner], sizes, upper)
    expect(arrays(dbsr, 'io')).toEqual([[0, 1], [1]])
    expect(arrays(dbsr, 'jo')).toEqual([
      [0, 2],
      [0, 1],
    ])
  })
})

describe('blocks as COO', () => {
  it('gives each block its own position, shared by its elements', () => {
    const axes = [
      sparseVariable('io', null, { unique: false }),
      sparseFixed('jo', 'io'),
      denseFixed('ii'),
      denseFixed('ji'),
    ]
    // Blocks (0, 0) with three entries, two of them equal, (0, 2) and (1, 0).
    const at = [
      [0, 0, 1, 0, 0],
      [0, 2, 0, 0, 0],
      [1, 0, 0, 0, 1],
      [0, 1, 1, 0, 0],
    ].map((c) => Int32Array.from(c))
    const s = build(axes, [2, 3, 2, 2], at, { widths: new Map([['jo', 1]]) })
    expect(arrays(s, 'io')[1]).toEqual([0, 0, 1])
    expect(arrays(s, 'jo')).toEqual([null, [0, 2, 0]])
    expect(place(s, at)).toEqual([5, 0, 4 + 3, 0, 0, 1, 0, 0, 0, 2, 0, 0])
  })
})

describe('padding under padding', () => {
  // Rows of two fixed positions, a dense pair under each: row 0 has one position, row 1 two.
  const axes = [denseFixed('i'), sparseFixed('j', 'i'), denseUnder('k', 'j')]
  const at = [Int32Array.of(0, 1, 1), Int32Array.of(1, 0, 2), Int32Array.of(1, 0, 0)]
  const s = build(axes, [2, 3, 2], at)

  it('is counted, and is not a value of a pattern', () => {
    const r = report(s, 'f32')
    expect(r.levels.map((l) => l.padding)).toEqual([0, 1, 2])
    expect([r.size, r.padding]).toEqual([8, 2])
    expect(r.levels[2]).toMatchObject({ segments: 4, emptySegments: 1, longestSegment: 2 })
    const indices = s.levels.get('j')!.indices!
    const pattern = {
      kind: 'stored',
      shape: [2, 3, 2],
      arrays: { j: { indices } },
      values: null,
      dtype: 'f32',
    } as const
    const extents = new Map([
      ['i', 2],
      ['j', 3],
      ['k', 2],
    ])
    const bound = validateStored(axes, { extents }, pattern)
    expect([...storedValues(bound, pattern, -1)]).toEqual([1, 1, -1, -1, 1, 1, 1, 1])
  })

  it('has no elements below', () => {
    const deep = [...axes, sparseVariable('l', 'k')]
    const extents = new Map(deep.map((a, k) => [a.name, [2, 3, 2, 4][k]!]))
    const bind = (indptr: number[]) => () =>
      validateStored(
        deep,
        { extents },
        {
          kind: 'stored',
          shape: [2, 3, 2, 4],
          arrays: {
            j: { indices: s.levels.get('j')!.indices! },
            l: { indptr: Int32Array.from(indptr), indices: Int32Array.of(0) },
          },
          values: null,
          dtype: 'f32',
        },
      )
    expect(bind([0, 1, 1, 1, 1, 1, 1, 1, 1])().size).toBe(1)
    expect(bind([0, 0, 0, 1, 1, 1, 1, 1, 1])).toThrow(
      'bind/padding: axis l stores position 0 under the padding at position 2 of k',
    )
  })
})

describe('more dimensions', () => {
  const i = Int32Array.of(1, 0, 1, 1, 0)
  const j = Int32Array.of(0, 2, 0, 2, 2)
  const k = Int32Array.of(3, 1, 0, 0, 1)

  it('CSF: equal prefixes are stored once, and duplicates are added', () => {
    const axes = [sparseVariable('i', null), sparseVariable('j', 'i'), sparseVariable('k', 'j')]
    const s = build(axes, [2, 3, 4], [i, j, k])
    expect(arrays(s, 'i')[1]).toEqual([0, 1])
    expect(arrays(s, 'j')).toEqual([
      [0, 1, 3],
      [2, 0, 2],
    ])
    expect(arrays(s, 'k')).toEqual([
      [0, 1, 3, 4],
      [1, 0, 3, 0],
    ])
    expect(place(s, [i, j, k])).toEqual([1 + 3, 2, 4, 5])
  })

  it('a dense root before a sparse tree: all batches share the union of their coordinates', () => {
    const axes = [denseFixed('b'), denseFixed('i'), sparseVariable('j', 'i')]
    const batch = Int32Array.of(0, 1, 1)
    const at = [batch, Int32Array.of(0, 0, 1), Int32Array.of(2, 0, 1)]
    const s = build(axes, [2, 2, 3], at)
    expect(arrays(s, 'j')).toEqual([
      [0, 2, 3],
      [0, 2, 1],
    ])
    expect(s.size).toBe(6)
    expect([
      ...scatterValues(s, { coords: at, values: Float32Array.of(1, 2, 3), dtype: 'f32' }, 'f32', 0),
    ]).toEqual([0, 1, 0, 2, 0, 3])
  })

  it('fixed levels under fixed levels: padding has padding under it', () => {
    const axes = [denseFixed('r'), sparseFixed('i', 'r'), sparseFixed('j', 'i')]
    const s = build(axes, [2, 3, 4], [Int32Array.of(0, 0, 1), Int32Array.of(0, 2, 1), Int32Array.of(3, 1, 0)])
    expect(arrays(s, 'i')[1]).toEqual([0, 2, 1, 3])
    expect(arrays(s, 'j')[1]).toEqual([3, 1, 0, 4])
    expect(toCoords(s, Float64Array.of(1, 2, 3, 0), 'f64').values).toEqual(Float64Array.of(1, 2, 3))
  })
})

describe('awkward shapes', () => {
  const none = (): Int32Array[] => [new Int32Array(0), new Int32Array(0)]
  const kinds: Record<string, readonly StoredAxis[]> = {
    CSR: [denseFixed('i'), sparseVariable('j', 'i')],
    DCSR: [sparseVariable('i', null), sparseVariable('j', 'i')],
    COO: [sparseVariable('i', null, { unique: false }), sparseFixed('j', 'i')],
    ELL: [denseFixed('i'), sparseFixed('j', 'i')],
    ragged: [denseFixed('i'), denseVariable('j', 'i')],
    dense: [denseFixed('i'), denseFixed('j')],
  }
  for (const [name, axes] of Object.entries(kinds)) {
    it.each([
      [0, 0],
      [0, 3],
      [3, 0],
      [3, 3],
    ])(`${name}: %i × %i without entries`, (m, n) => {
      const s = build(axes, [m, n], none())
      const out = scatterValues(s, { coords: none(), values: null, dtype: 'f32' }, 'f32', 2)
      expect(out.length).toBe(name === 'dense' ? m * n : 0)
      expect(without(toCoords(s, out, 'f32'), 2).values!.length).toBe(0)
      expect(report(s, 'f32').padding).toBe(0)
    })
    it(`${name}: one full row among empty ones, and a pattern`, () => {
      const at = [new Int32Array(6).fill(2), Int32Array.from({ length: 6 }, (_, e) => 5 - e)]
      const s = build(axes, [4, 6], at)
      const out = scatterValues(s, { coords: at, values: null, dtype: 'f32' }, 'i8', 0)
      const back = without(toCoords(s, out, 'i8'), 0)
      expect([...back.coords[0]!]).toEqual([2, 2, 2, 2, 2, 2])
      expect([...back.coords[1]!]).toEqual([0, 1, 2, 3, 4, 5])
      expect(out.filter((x) => x === 1).length).toBe(6)
      const stored = axes.some(hasIndices) ? (name === 'ELL' ? 24 : 6) : name === 'ragged' ? 6 : 24
      expect(s.size).toBe(stored)
    })
  }

  it('a dense tensor is stored as its elements that differ from the fill value', () => {
    const t = coordsOfDense({
      kind: 'dense',
      shape: [2, 3],
      values: Float32Array.of(0, 1, 0, 2, 0, 3),
      dtype: 'f32',
    })
    expect(t.coords.map((c) => [...c])).toEqual([
      [0, 1, 1],
      [1, 0, 2],
    ])
    expect([...t.values!]).toEqual([1, 2, 3])
    const back = build([denseFixed('i'), denseFixed('j')], [2, 3], t.coords)
    expect([...scatterValues(back, t, 'f32', 0)]).toEqual([0, 1, 0, 2, 0, 3])
  })
})

describe('values', () => {
  const at = [Int32Array.of(0, 0, 1, 0)]
  const s = build([denseFixed('i')], [3], at)
  const put = (v: number[], dtype: 'f32' | 'i8' | 'bool', fill = 0): number[] => [
    ...scatterValues(s, { coords: at, values: Float64Array.from(v), dtype: 'f64' }, dtype, fill),
  ]

  it('adds duplicates in float64 and rounds once', () => {
    expect(put([2 ** 24, 1, 5, 1], 'f32')).toEqual([2 ** 24 + 2, 5, 0])
  })
  it('fills other positions; combines booleans by or', () => {
    expect(put([2, 3, 5, 4], 'f32', -1)).toEqual([9, 5, -1])
    expect(put([1, 0, 0, 1], 'bool')).toEqual([1, 0, 0])
  })
  it('rejects values beyond an integer type', () => {
    expect(() => put([100, 100, 0, 0], 'i8')).toThrow(
      'bind/value-range: the value 200 at element 0 does not fit i8',
    )
    expect(() => put([0.5, 1, 0, 0], 'i8')).toThrow('bind/value-range')
  })
})

it('coordinates are located in the structure of another tensor, in any order', () => {
  const axes = [denseFixed('i'), sparseVariable('j', 'i', { ordered: false })]
  const extents = new Map([
    ['i', 1],
    ['j', 5],
  ])
  const j = { indptr: Int32Array.of(0, 3), indices: Int32Array.of(4, 0, 2) }
  const given = { kind: 'stored', shape: [1, 5], arrays: { j }, values: null, dtype: 'f32' } as const
  const known = new Map([['j', validateStored(axes, { extents }, given).levels.get('j')!]])
  const coords = [Int32Array.of(0, 0, 0), Int32Array.of(0, 2, 4)]
  expect([...buildStorage({ axes, extents, coords, existing: known }).entries.positions!]).toEqual([1, 2, 0])
})
