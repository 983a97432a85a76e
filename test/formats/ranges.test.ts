/** Parts of a partition store their own range of a dimension, and nothing of the others. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { provenance } from '../../src/formats/proof/provenance.ts'
import type { Instance } from '../../src/ir/formats/format.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { conversionPlan, uploadResident } from '../../src/storage/engines/device/index.ts'
import { convertTensor, partsToCoords, type StoredParts } from '../../src/storage/entries/stored-parts.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { runs } from '../support/cases.ts'
import { standard } from '../support/packaged-formats.ts'
import { arraysOf } from '../support/packaged-schedules.ts'
import { givenFor, matrices, matrix, written } from './user-formats.ts'

const LEAVES = `${standard('csr', 'csc', 'dcsr', 'coo', 'ell', 'bsr', 'sell', 'rows_ell')}
format plain over (i, j) {
  axis io = dense_fixed(i)
  axis jo = dense_fixed(j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format skew over (i, j) {
  axis io = dense_fixed(i)
  axis d = sparse_variable(io, i + j)
  map (i, j) -> (i, j - i + size(i))
  inverse (io, d) -> (io, io + d - size(i))
}
format fine over (i, j) {
  partition i into 2 { part csr }
}
`
const in_ = (dim: string, leaf: string, c: number): Instance =>
  written(`${LEAVES}format x(c) over (i, j) { partition ${dim} into c { part ${leaf} } }`, c)

const leaves = ['csr', 'csc', 'dcsr', 'coo', 'ell', 'bsr(2)', 'bsr(3)', 'sell(2, 4)', 'rows_ell(2)', 'plain']
const sorted = (t: Pick<CoordTensor, 'coords' | 'values'>): string[] =>
  [...t.coords[0]!]
    .flatMap((i, e) => (t.values![e] === 0 ? [] : [`${i},${t.coords[1]![e]}=${t.values![e]}`]))
    .sort()
const extents = (s: StoredParts, axis: string): number[] =>
  s.parts.map((p) => [...p.storage.levels.values()].find((l) => l.axis.name.startsWith(axis))!.extent)

describe('parts of a partition', () => {
  test('round-trip every tensor', async () => {
    const device = createCpuDevice()
    await fc.assert(
      fc.asyncProperty(
        matrices,
        fc.constantFrom('i', 'j'),
        fc.constantFrom(...leaves, 'skew', 'fine'),
        fc.integer({ min: 1, max: 7 }),
        async (t, dim, leaf, c) => {
          const given = givenFor(t.shape)
          const to = in_(dim, leaf, c)
          const once = convertTensor(t, written(LEAVES.concat('format y over (i, j) { part csr }')), given)
          const s = convertTensor(t, to, given)
          expect(sorted(partsToCoords(s))).toEqual(sorted(partsToCoords(once)))
          const from = await uploadResident(device, t)
          const made = await conversionPlan(device, to).run(from, given)
          expect(arraysOf(await made.download())).toEqual(arraysOf(s))
          for (const r of [from, made]) r.free()
        },
      ),
      { numRuns: runs(20) },
    )
    await device.dispose()
  })

  test.each([
    [6, 3, [2, 2, 2]],
    [5, 3, [2, 2, 1]],
    [7, 4, [2, 2, 2, 1]],
    [5, 4, [2, 2, 1, 0]],
    [2, 5, [1, 1, 0, 0, 0]],
    [0, 3, [0, 0, 0]],
    [4, 1, [4]],
  ])('%i rows in %i ranges are each stored once', (m, c, rows) => {
    const t = matrix([m, 3], m > 1 ? [[m - 1, 2, 5]] : [])
    const s = convertTensor(t, in_('i', 'csr', c), givenFor(t.shape))
    expect(extents(s, 'io')).toEqual(rows)
    expect(s.parts.map((p) => [...p.storage.levels.values()].find((l) => l.indptr)!.indptr!.length)).toEqual(
      rows.map((n) => n + 1),
    )
    expect(extents(convertTensor(t, in_('i', 'plain', c), givenFor(t.shape)), 'io')).toEqual(rows)
    const turned = convertTensor(
      { ...t, shape: [3, m], coords: [t.coords[1]!, t.coords[0]!] },
      in_('j', 'csc', c),
      givenFor([3, m]),
    )
    expect(extents(turned, 'jo')).toEqual(rows)
  })

  test('blocks across a border are in both ranges; of several partitions the finest counts', () => {
    const t = matrix([10, 3], [[9, 2, 5]])
    expect(extents(convertTensor(t, in_('i', 'bsr(2)', 3), givenFor(t.shape)), 'io')).toEqual([2, 2, 1])
    expect(extents(convertTensor(t, in_('i', 'bsr(4)', 2), givenFor(t.shape)), 'io')).toEqual([2, 2])
    expect(extents(convertTensor(t, in_('i', 'fine', 5), givenFor(t.shape)), 'io')).toEqual([
      2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    ])
  })

  test('maps stay in range, proved', () => {
    for (const leaf of ['csr', 'ell', 'plain'])
      for (const p of provenance(in_('i', leaf, 3)).parts)
        expect([p.label, p.inverse, p.range]).toEqual([p.label, 'proved', 'proved'])
  })
})
