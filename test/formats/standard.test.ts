import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { provenance } from '../../src/formats/proof/provenance.ts'
import type { AnyFormat, Instance } from '../../src/ir/formats/format.ts'
import { convertTensor, partsToCoords } from '../../src/storage/entries/stored-parts.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { runs } from '../support/cases.ts'
import {
  givenFor,
  instanceOf as instanceIn,
  packageFormats,
  STANDARD,
  type Standard,
  title,
} from '../support/packaged-schedules.ts'
import { refusal } from '../support/refusal.ts'
import { lines } from './arbitrary.ts'
import { matrices, matrix } from './user-formats.ts'

let formats: ReadonlyMap<string, AnyFormat>

beforeAll(async () => {
  formats = await packageFormats()
})

function instanceOf(name: string, args: readonly (number | string)[], order = 2): Instance {
  const format = formats.get(name)
  if (!format) throw new Error(`no format ${name}`)
  return instanceIn(format, args, order)
}

/** Only entries that a format without room for others can hold. */
const keep = (t: CoordTensor, holds: (i: number, j: number) => boolean): CoordTensor => {
  const [rows, cols] = t.coords
  const entries = Array.from(t.values!, (x, e) => [rows![e]!, cols![e]!, x]).filter(([i, j]) => holds(i!, j!))
  return matrix(t.shape, entries)
}

/** At most n entries in m neighbours of a row. */
const few =
  (n: number, m: number) =>
  (t: CoordTensor): CoordTensor => {
    const seen = new Map<string, Set<number>>()
    return keep(t, (i, j) => {
      const block = `${i} ${Math.floor(j / m)}`
      const have = seen.get(block) ?? new Set()
      seen.set(block, have)
      return have.has(j) || (have.size < n && Boolean(have.add(j)))
    })
  }

const MATRICES = STANDARD.filter((s) => s.order === undefined)

const restricted = (s: Standard, t: CoordTensor): CoordTensor =>
  s.few ? few(...s.few)(t) : s.holds ? keep(t, s.holds) : t

/** What is not proved of inverse and range of the parts, and of the parts being a disjoint cover. */
const CHECKED: Readonly<Record<string, readonly ('inverse' | 'range' | 'cover')[]>> = {
  'band(1, 2)': ['cover'],
  'strided(3)': ['inverse', 'cover'],
  'strided_rest(2)': ['inverse'],
  'strip_pieces(2, 3, 2)': ['range'],
  'strips_rest(2, 3, 2, 2)': ['range'],
}

describe('standard formats of matrices', () => {
  it.each(MATRICES.map((s) => [title(s), s] as const))('%s: round trip', (_, s) => {
    const instance = instanceOf(s.name, s.args)
    fc.assert(
      fc.property(matrices, (raw) => {
        const t = restricted(s, raw)
        const given = givenFor(t.shape, s.given?.(t.shape))
        const back = partsToCoords(convertTensor(t, instance, given))
        expect(lines(back.coords, back.values!, false)).toEqual(lines(t.coords, t.values!, false))
      }),
      { numRuns: runs(20) },
    )
  })

  it.each(MATRICES.map((s) => [title(s), s] as const))('%s: proved properties', (_, s) => {
    const { parts, nodes } = provenance(instanceOf(s.name, s.args))
    const open = new Set<string>()
    for (const p of parts) {
      if (p.inverse === 'checked') open.add('inverse')
      if (p.range === 'checked') open.add('range')
    }
    for (const n of nodes) if (n.cover === 'checked' || n.disjoint === 'checked') open.add('cover')
    expect([...open]).toEqual(CHECKED[title(s)] ?? [])
  })

  it('rejects elements that the format cannot store', () => {
    const t = matrix(
      [4, 4],
      [
        [0, 0, 1],
        [0, 1, 2],
        [0, 2, 3],
        [3, 0, 4],
      ],
    )
    const code = (name: string, args: readonly number[]): string =>
      refusal(() => convertTensor(t, instanceOf(name, args), givenFor(t.shape))).code
    expect(code('band', [1, 1])).toBe('format/leak')
    expect(code('strided', [2])).toBe('format/leak')
    expect(code('nm', [2, 4])).toMatch(/^(bind|format)\//)
    expect(code('ell', [2])).toMatch(/^(bind|format)\//)
  })
})

/** Up to 30 entries of a tensor of `order` dimensions, some equal. */
const tensors = (order: number): fc.Arbitrary<CoordTensor> =>
  fc
    .tuple(
      fc.array(fc.integer({ min: 1, max: 5 }), { minLength: order, maxLength: order }),
      fc.array(
        fc.tuple(
          fc.array(fc.nat(99), { minLength: order, maxLength: order }),
          fc.integer({ min: 1, max: 9 }),
        ),
        { maxLength: 30 },
      ),
    )
    .map(([shape, raw]) =>
      matrix(
        shape,
        raw.map(([at, x]) => [...at.map((c, k) => c % shape[k]!), x]),
      ),
    )

describe('standard formats of tensors', () => {
  it.each<readonly [string, readonly number[], number]>([
    ...[1, 2, 3, 4, 5].flatMap(
      (order) =>
        [
          ['csf', [], order],
          ['coo_n', [], order],
          ['blocks_n', [2], order],
        ] as const,
    ),
    ['relation_rows', [2], 3],
    ['group_tiles', [2], 3],
    ['row_groups', [2], 3],
    ['row_tiles', [4], 3],
    ['relation_buckets', [0], 3],
    ['relation_buckets', [2], 3],
  ])('%s(%s) of order %i: round trip, all properties proved', (name, args, order) => {
    const instance = instanceOf(name, args, order)
    const { parts, nodes } = provenance(instance)
    expect(parts.filter((p) => p.inverse !== 'proved' || p.range !== 'proved')).toEqual([])
    expect(nodes.filter((n) => n.disjoint === 'checked' || n.cover === 'checked')).toEqual([])
    fc.assert(
      fc.property(tensors(order), (t) => {
        const back = partsToCoords(convertTensor(t, instance, givenFor(t.shape)))
        expect(lines(back.coords, back.values!, false)).toEqual(lines(t.coords, t.values!, false))
      }),
      { numRuns: runs(20) },
    )
  })
})

describe('all packaged formats', () => {
  it('are tested here', () => {
    const tried = new Set([
      ...MATRICES.map((s) => s.name),
      'relation_rows',
      'group_tiles',
      'row_groups',
      'row_tiles',
      'relation_buckets',
    ])
    expect([...formats.keys()].filter((name) => !tried.has(name))).toEqual([])
  })
})
