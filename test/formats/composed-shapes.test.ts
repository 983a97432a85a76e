/** Formats by hand: every array, on one small matrix. */
import { describe, expect, it } from 'vitest'
import { lengthReport, reportTensor } from '../../src/pictures/format-figures.ts'
import {
  convertTensor,
  occupiedPositions,
  partsToCoords,
  type StoredParts,
} from '../../src/storage/entries/stored-parts.ts'
import { partsFromArrays } from '../../src/storage/ready/ready-parts.ts'
import type { StoredTensor } from '../../src/storage/tensor.ts'
import { refusal } from '../support/refusal.ts'
import { lines } from './arbitrary.ts'
import { BITMAP, CSR, DIA, HYB, PIECES_ELL, ROWS_ELL, SELL, SR_BCRS } from './programs.ts'
import { givenFor, matrix, written } from './user-formats.ts'

// 0 1 0 0 2
// 0 0 0 0 0
// 3 0 4 5 0
// 0 6 0 0 0
const t = matrix(
  [4, 5],
  [
    [0, 1, 1],
    [0, 4, 2],
    [2, 0, 3],
    [2, 2, 4],
    [2, 3, 5],
    [3, 1, 6],
  ],
)
const given = givenFor(t.shape)
const into = (text: string, ...args: number[]): StoredParts => convertTensor(t, written(text, ...args), given)

/** Arrays of an axis of a part: those that its kind has. */
function arrays(s: StoredParts, axis: string, part = 0): (number[] | null)[] {
  const l = s.parts[part]!.storage.levels.get(axis)!
  return [l.indptr, l.indices, l.mask].map((a) => a && [...a])
}
const values = (s: StoredParts, part = 0): number[] => [...s.parts[part]!.values]

describe('hand-written formats', () => {
  it('sliced ELL: slices of rows that are sorted by length, each as wide as its longest', () => {
    const s = into(SELL, 2, 4)
    expect([...s.parts[0]!.tables.get('row')!]).toEqual([2, 0, 3, 1])
    expect(arrays(s, 'k')).toEqual([[0, 3, 4], null, null])
    expect(arrays(s, 'jo')).toEqual([null, [0, 1, 2, 4, 3, 5, 1, 5], null])
    expect(values(s)).toEqual([3, 1, 4, 2, 5, 0, 6, 0])
  })

  it('rows in pieces of two: a row has one entry per piece', () => {
    const s = into(ROWS_ELL, 2)
    expect(arrays(s, 'io')).toEqual([[0, 4], [0, 2, 2, 3], null])
    expect(arrays(s, 'jo')).toEqual([null, [1, 4, 0, 2, 3, 5, 1, 5], null])
    const together = into(PIECES_ELL, 2)
    expect(arrays(together, 'io')).toEqual([[0, 3], [0, 2, 3], null])
    expect(arrays(together, 'p')).toEqual([[0, 1, 3, 4], null, null])
    expect(arrays(together, 'jo')).toEqual(arrays(s, 'jo'))
  })

  it('duplicates of a tensor share a position', () => {
    const twice = { ...t, coords: t.coords.map((c) => Int32Array.of(...c, ...c)), values: null }
    const s = convertTensor(twice, written(ROWS_ELL, 2), given)
    expect(arrays(s, 'io')[1]).toEqual([0, 2, 2, 3])
    expect(values(s)).toEqual([2, 2, 2, 2, 2, 0, 2, 0])
  })

  it('columns of a strip of rows in groups', () => {
    const s = into(SR_BCRS, 2, 2)
    expect(arrays(s, 'go')).toEqual([[0, 1, 3], null, null])
    expect(arrays(s, 'jo')).toEqual([null, [1, 4, 0, 1, 2, 3], null])
    expect(values(s)).toEqual([1, 0, 2, 0, 3, 0, 0, 6, 4, 0, 5, 0])
  })

  it('nonempty diagonals', () => {
    const s = into(DIA)
    expect(arrays(s, 'do')).toEqual([[0, 4], [1, 3, 4, 7], null])
    expect(values(s)).toEqual([0, 0, 3, 6, 0, 0, 4, 0, 1, 0, 5, 0, 2, 0, 0, 0])
  })

  it('blocks as bits', () => {
    const s = into(BITMAP)
    const word = [1, 4, 16, 18, 19, 25].reduce((w, bit) => w | (1 << bit), 0)
    expect(arrays(s, 'e')).toEqual([[0, 6], null, [word, 0]])
    expect(values(s)).toEqual([1, 2, 3, 4, 5, 6])
  })

  it('rows by length, the longest in pieces', () => {
    const s = into(HYB, 1, 1)
    expect(s.parts.map((p) => p.part.label)).toEqual(['w1', 'w2'])
    expect(arrays(s, 'io_w1')[1]).toEqual([2, 3])
    expect(arrays(s, 'jo_w1')[1]).toEqual([3, 1])
    expect(arrays(s, 'io_w2', 1)[1]).toEqual([0, 2])
    expect(arrays(s, 'jo_w2', 1)[1]).toEqual([1, 4, 0, 2])
    expect([values(s), values(s, 1)]).toEqual([
      [5, 6],
      [1, 2, 3, 4],
    ])
  })

  it('ready-made arrays are used as a tensor in a format, unchanged', () => {
    const s = into(SELL, 2, 4)
    const [part] = s.parts
    const { axes, levels } = part!.storage
    const tensor: StoredTensor = {
      kind: 'stored',
      shape: axes.map((a) => levels.get(a.name)!.extent),
      arrays: {
        k: { indptr: Int32Array.from(arrays(s, 'k')[0]!) },
        jo: { indices: Int32Array.from(arrays(s, 'jo')[1]!) },
      },
      values: Float64Array.from(values(s)),
      dtype: 'f64',
    }
    const again = partsFromArrays(s.instance, [{ tensor, tables: part!.tables }], given)
    expect(again.parts[0]!.values).toBe(tensor.values)
    const back = partsToCoords(again)
    expect(lines(back.coords, back.values!, true)).toEqual(lines(t.coords, t.values!, true))
  })
})

describe('claims are checked', () => {
  const claimed = (kind: string): string =>
    CSR.replace('axis jo = sparse_variable(io, j)', `axis jo = ${kind}`)

  it('full and compact', () => {
    expect(refusal(() => into(claimed('sparse_variable(io, j) full')))).toMatchObject({
      code: 'format/claim',
      message: 'axis jo at (io) = (0) is claimed full, but does not store the coordinate 0',
    })
    expect(refusal(() => into(claimed('sparse_fixed(io, j, 3) compact'))).message).toBe(
      'axis jo at (io) = (0) is claimed compact, but has padding',
    )
    expect(refusal(() => into(claimed('dense_variable(io, j) full'))).message).toBe(
      'axis jo at (io) = (1) is claimed full, but does not store the coordinate 0',
    )
    // Of every segment, not the first alone.
    const later = matrix(
      [2, 2],
      [
        [0, 0, 1],
        [0, 1, 1],
        [1, 1, 1],
      ],
    )
    expect(
      refusal(() => convertTensor(later, written(claimed('sparse_variable(io, j) full')), givenFor([2, 2])))
        .message,
    ).toBe('axis jo at (io) = (1) is claimed full, but does not store the coordinate 0')
    const full = matrix(
      [1, 2],
      [
        [0, 0, 1],
        [0, 1, 1],
      ],
    )
    const instance = written(claimed('sparse_fixed(io, j, 2) full compact'))
    expect(occupiedPositions(convertTensor(full, instance, givenFor([1, 2])).parts[0]!)).toHaveLength(2)
  })

  it('at row granularity, with their coordinates', () => {
    const stored = written(`format doubly over (i, j) {
      axis io = sparse_variable(i)
      axis jo = sparse_variable(io, j) full
      map (i, j) -> (i, j)
      inverse (io, jo) -> (io, jo)
    }`)
    const below = written(`format blocks over (i, j) {
      axis io = sparse_variable(i)
      axis jo = sparse_variable(io, ceildiv(j, 2))
      axis ji = sparse_variable(jo, 2) full
      map (i, j) -> (i, j / 2, j % 2)
      inverse (io, jo, ji) -> (io, 2 * jo + ji)
    }`)
    const rows = matrix(
      [4, 4],
      [
        [1, 0, 1],
        [1, 1, 1],
        [1, 2, 1],
        [1, 3, 1],
        [3, 2, 1],
        [3, 3, 1],
        [3, 1, 1],
      ],
    )
    const said = (format: typeof stored) =>
      refusal(() => convertTensor(rows, format, givenFor([4, 4]))).message
    expect(said(stored)).toBe('axis jo at (io) = (3) is claimed full, but does not store the coordinate 0')
    expect(said(below)).toBe(
      'axis ji at (io, jo) = (3, 0) is claimed full, but does not store the coordinate 0',
    )
  })
})

describe('figures', () => {
  it('of parts: slots, padding, bytes', () => {
    const s = into(ROWS_ELL, 2)
    const r = reportTensor(s)
    expect([r.format, r.slots, r.stored, r.padding, r.paddingShare]).toEqual(['rows_ell(2)', 8, 6, 2, 0.25])
    // Two bounds and four rows, eight columns; eight values of eight bytes.
    expect(r.bytes).toBe((2 + 4 + 8) * 4 + 8 * 8)
    expect(r.parts[0]!.storage.levels.map((l) => l.padding)).toEqual([0, 2])
    const sell = reportTensor(into(SELL, 2, 4))
    expect(sell.parts[0]!.tableBytes).toBe(16)
    expect(JSON.parse(JSON.stringify(sell))).toEqual(sell)
    const hyb = reportTensor(into(HYB, 1, 1))
    expect(hyb.parts.map((p) => [p.label, p.format, p.slots])).toEqual([
      ['w1', 'rows_ell(1)', 2],
      ['w2', 'rows_ell(2)', 4],
    ])
  })

  it('of row lengths', () => {
    expect(lengthReport(t.coords[0]!, 4)).toEqual({
      segments: 4,
      empty: 1,
      min: 0,
      mean: 1.5,
      median: 1.5,
      max: 3,
      histogram: [
        { upTo: 0, segments: 1 },
        { upTo: 1, segments: 1 },
        { upTo: 2, segments: 1 },
        { upTo: 4, segments: 1 },
      ],
    })
    expect(lengthReport(new Int32Array(0), 0)).toEqual({
      segments: 0,
      empty: 0,
      min: 0,
      mean: 0,
      median: 0,
      max: 0,
      histogram: [{ upTo: 0, segments: 0 }],
    })
  })
})
