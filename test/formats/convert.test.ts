import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { convertTensor, partsToCoords } from '../../src/formats/convert.ts'
import type { Given } from '../../src/formats/given.ts'
import type { CoordTensor } from '../../src/formats/tensor.ts'
import { lines } from './arbitrary.ts'
import { givenFor, matrices, written } from './written.ts'

const CSR = `format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`
const BSR = `format bsr(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(jo, b)
  axis ji = dense_fixed(ii, b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
`
const SELL = `format sell(c, s) over (i, j) {
  sort i by -count(j by i) within s -> (place, row)
  axis so = dense_fixed(ceildiv(i, c))
  axis k = dense_variable(so, j)
  axis ii = dense_fixed(k, c)
  axis jo = sparse_fixed(ii, j, 1)
  map (i, j) -> (place[i] / c, rank(j by i), place[i] % c, j)
  inverse (so, k, ii, jo) -> (row[so * c + ii], jo)
}
`
const ROWS_ELL = `format rows_ell(w) over (i, j) {
  axis io = sparse_variable(i) nonunique
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`
const PIECES_ELL = `format pieces_ell(w) over (i, j) {
  axis io = sparse_variable(i)
  axis p = dense_variable(io, j)
  axis jo = sparse_fixed(p, j, w)
  map (i, j) -> (i, rank(j by i) / w, j)
  inverse (io, p, jo) -> (io, jo)
}
`
const SR_BCRS = `format sr_bcrs(t, g) over (i, j) {
  axis so = dense_fixed(ceildiv(i, t))
  axis go = dense_variable(so, j)
  axis jo = sparse_fixed(go, j, g)
  axis ii = dense_fixed(jo, t)
  map (i, j) -> (i / t, rank(j by i / t) / g, j, i % t)
  inverse (so, go, jo, ii) -> (so * t + ii, jo)
}
`
const DIA = `format dia over (i, j) {
  axis do = sparse_variable(i + j - 1)
  axis ii = dense_fixed(i)
  map (i, j) -> (j - i + size(i) - 1, i)
  inverse (do, ii) -> (ii, do + ii - (size(i) - 1))
}
`
const BAND = `format band(l, u) over (i, j) {
  axis io = dense_fixed(i)
  axis bo = dense_fixed(l + u + 1)
  map (i, j) -> (i, j - i + l)
  inverse (io, bo) -> (io, io + bo - l)
  where (i - j <= l and j - i <= u)
}
`
const VBR = `format vbr(rows: list, cols: list) over (i, j) {
  axis io = dense_fixed(segments(rows))
  axis jo = sparse_variable(io, segments(cols))
  axis ii = dense_variable(jo, i)
  axis ji = dense_variable(ii, j)
  map (i, j) -> (find(rows, i), find(cols, j), i - rows[find(rows, i)], j - cols[find(cols, j)])
  inverse (io, jo, ii, ji) -> (rows[io] + ii, cols[jo] + ji)
}
`
const BITMAP = `format bitmap_blocks over (i, j) {
  axis io = dense_fixed(ceildiv(i, 8))
  axis jo = sparse_variable(io, ceildiv(j, 8))
  axis e = bitmap(jo, 64)
  map (i, j) -> (i / 8, j / 8, i % 8 * 8 + j % 8)
  inverse (io, jo, e) -> (io * 8 + e / 8, jo * 8 + e % 8)
}
`
const HYB = `${ROWS_ELL}
format hyb(c, k) over (i, j) {
  partition j into c {
    bucket i by length into 1, 2 .. 2^k as width split {
      part rows_ell(width)
    }
  }
}
`
const DENSE_BLOCKS = `${CSR}${BSR}
format dense_blocks(b, t: real) over (i, j) {
  part blocks = bsr(b) where (density(b) >= t)
  part csr
}
`
const BAND_REST = `${CSR}${BAND}
format band_rest(l, u) over (i, j) {
  part band(l, u)
  part csr
}
`
const TOP = `${CSR}${ROWS_ELL}
format top_rest(n) over (i, j) {
  part rows_ell(n) where (top(n by i))
  part csr
}
`
const NESTED = `${HYB}${BSR}
format nested(c, b) over (i, j) {
  partition i into c as p {
    part blocks = bsr(b) where (count(i, j by i / b, j / b) >= 2 + p)
    part hyb(2, 1)
  }
}
`

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
  ((t: CoordTensor) => Partial<Given>)?,
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

describe('into formats and back', () => {
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
        expect(stored.parts.reduce((n, p) => n + p.held!, 0)).toBe(lines(t.coords, t.values!, false).length)
      }),
      { numRuns: 200 },
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
      { numRuns: 300 },
    )
  })
})
