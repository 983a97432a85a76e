import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  convertTensor,
  occupiedEntries,
  occupiedPositions,
  partsToCoords,
} from '../../src/storage/entries/stored-parts.ts'
import type { FormatOperands } from '../../src/storage/format-operands.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { runs } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'
import { lines } from './arbitrary.ts'
import {
  BAND_REST,
  BITMAP,
  BSR,
  CSR,
  DENSE_BLOCKS,
  DIA,
  HYB,
  NESTED,
  PIECES_ELL,
  ROWS_ELL,
  SELL,
  SR_BCRS,
  TOP,
  VBR,
} from './programs.ts'
import { givenFor, matrices, matrix, written } from './user-formats.ts'

/** Two trees: rows that hold something, and columns. */
const TREES = [
  'trees',
  `format trees over (i, j) {
    axis io = sparse_variable(i)
    axis jo = dense_fixed(ceildiv(j, 3))
    axis ji = dense_fixed(jo, 3)
    map (i, j) -> (i, j / 3, j % 3)
    inverse (io, jo, ji) -> (io, jo * 3 + ji)
  }`,
  [],
] as const

/** A list of boundaries from 0 to the extent. */
const list = (extent: number, step: number): Int32Array => {
  const out = [0]
  for (let x = 0; x < extent; ) {
    x = Math.min(extent, x + 1 + ((x * step) % 5))
    out.push(x)
  }
  return Int32Array.from(out)
}

const FORMATS: readonly [
  string,
  string,
  readonly (number | string)[],
  ((t: CoordTensor) => Partial<FormatOperands>)?,
][] = [
  ['csr', CSR, []],
  ['bsr', BSR, [3]],
  ['sell', SELL, [4, 8]],
  ['sell within everything', SELL, [2, 100]],
  ['rows_ell', ROWS_ELL, [2]],
  ['coo', ROWS_ELL, [1]],
  ['pieces_ell', PIECES_ELL, [3]],
  ['sr_bcrs', SR_BCRS, [3, 2]],
  ['dia', DIA, []],
  ['bitmap blocks', BITMAP, []],
  [
    'vbr',
    VBR,
    ['rows', 'cols'],
    (t) => ({
      lists: new Map([
        ['rows', list(t.shape[0]!, 3)],
        ['cols', list(t.shape[1]!, 2)],
      ]),
    }),
  ],
  ['hyb', HYB, [2, 2]],
  ['hyb of one range', HYB, [1, 1]],
  ['dense blocks', DENSE_BLOCKS, [2, 0.5]],
  ['band and rest', BAND_REST, [1, 2]],
  ['largest and rest', TOP, [2]],
  ['nested', NESTED, [2, 2]],
]

describe('conversion to formats and back', () => {
  it.each(FORMATS)('%s', (_, text, args, more) => {
    const instance = written(text, ...args)
    fc.assert(
      fc.property(matrices, (t) => {
        const given = givenFor(t.shape, more?.(t))
        const before = t.coords.map((c) => [...c])
        const stored = convertTensor(t, instance, given)
        const back = partsToCoords(stored)
        expect(lines(back.coords, back.values!, true)).toEqual(lines(t.coords, t.values!, false))
        expect(back.shape).toEqual(t.shape)
        expect(t.coords.map((c) => [...c])).toEqual(before)
        // Each coordinate is in one part.
        expect(stored.parts.reduce((n, p) => n + occupiedPositions(p)!.length, 0)).toBe(
          lines(t.coords, t.values!, false).length,
        )
      }),
      { numRuns: runs(50) },
    )
  })

  it('stored zeros are kept if every position is an entry', () => {
    const t = matrix(
      [2, 3],
      [
        [0, 1, 0],
        [1, 2, 3],
      ],
    )
    for (const [text, held] of [
      [CSR, [0, 3]],
      [BITMAP, [0, 3]],
      [DIA, [3]],
    ] as const)
      expect([...partsToCoords(convertTensor(t, written(text), givenFor(t.shape))).values!]).toEqual(held)
  })

  it('pieces of rows are as wide as the longest row by default', () => {
    const pieces = written(`format pieces(w: size) over (i, j) {
      axis io = sparse_variable(i) nonunique
      axis jo = sparse_fixed(io, j, w)
      map (i, j) -> (i, j)
      inverse (io, jo) -> (io, jo)
    }`)
    const t = matrix(
      [2, 5],
      [
        [0, 1, 1],
        [0, 3, 2],
        [0, 4, 3],
        [1, 2, 4],
      ],
    )
    const [part] = convertTensor(t, pieces, givenFor(t.shape)).parts
    expect([[...part!.measured.values()], part!.storage.size]).toEqual([[3], 6])
  })

  it('a segment is full by its own elements, not by the start of the next one', () => {
    const rows = written(`format rows over (i, j) {
      axis io = dense_fixed(i)
      axis jo = sparse_variable(io, j) full
      map (i, j) -> (i, j)
      inverse (io, jo) -> (io, jo)
    }`)
    const t = matrix(
      [2, 2],
      [
        [0, 0, 1],
        [1, 1, 2],
      ],
    )
    expect(refusal(() => convertTensor(t, rows, givenFor(t.shape))).message).toBe(
      'axis jo at (io) = (0) is claimed full, but does not store the coordinate 1',
    )
  })

  it('vectors', () => {
    const list = written(`format list over (i) {
      axis io = sparse_variable(i)
      map (i) -> (i)
      inverse (io) -> (io)
    }`)
    const t = matrix(
      [9],
      [
        [4, 1],
        [7, 2],
      ],
    )
    const stored = convertTensor(t, list, givenFor(t.shape))
    const [part] = stored.parts
    expect(occupiedPositions(part!)).toHaveLength(2)
    expect([...occupiedEntries(part!, stored).coords[0]!]).toEqual([4, 7])
  })

  it('entries keep their positions and coordinates', () => {
    const instances = [...FORMATS.filter(([, , , more]) => !more), TREES].map(([, text, args]) =>
      written(text, ...args),
    )
    fc.assert(
      fc.property(matrices, fc.nat(), (t, k) => {
        const stored = convertTensor(t, instances[k % instances.length]!, givenFor(t.shape))
        const held = stored.parts.map((p) => ({ ...occupiedEntries(p, stored), values: p.values }))
        const found = held.flatMap(({ positions, coords, values }) =>
          [...positions!].map((at, e) => `${coords.map((c) => c[e]).join(',')}=${values[at]}`),
        )
        expect(found.sort()).toEqual([...lines(t.coords, t.values!, false)].sort())
      }),
      { numRuns: runs(75) },
    )
  })

  it('from one format to another', () => {
    const instances = FORMATS.filter(([, , , more]) => !more).map(([, text, args]) => written(text, ...args))
    fc.assert(
      fc.property(matrices, fc.nat(), fc.nat(), (t, a, b) => {
        const given = givenFor(t.shape)
        const first = convertTensor(t, instances[a % instances.length]!, given)
        const back = partsToCoords(convertTensor(first, instances[b % instances.length]!, given))
        expect(lines(back.coords, back.values!, true)).toEqual(lines(t.coords, t.values!, false))
      }),
      { numRuns: runs(75) },
    )
  })
})
