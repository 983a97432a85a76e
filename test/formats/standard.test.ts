import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Given } from '../../src/formats/given.ts'
import { instantiate } from '../../src/formats/instance/instantiate.ts'
import { convertTensor, partsToCoords } from '../../src/formats/parts/convert.ts'
import { provenance } from '../../src/formats/proof/provenance.ts'
import type { CoordTensor } from '../../src/formats/tensor.ts'
import type { StoredAxis } from '../../src/ir/axis.ts'
import { variable } from '../../src/ir/expr.ts'
import type { AnyFormat, Instance } from '../../src/ir/format.ts'
import { load } from '../../src/node.ts'
import { denseFixed, lines, sparseVariable } from './arbitrary.ts'
import { matrices, matrix, refusal } from './written.ts'

const FILES = ['formats', 'formats-composed', 'formats-tensors']
const formats = new Map<string, AnyFormat>()

beforeAll(async () => {
  for (const file of FILES)
    for (const [name, f] of (await load(`kernels/${file}.spt`)).formats) formats.set(name, f)
})

const NAMES = ['a', 'b', 'c', 'd', 'e']

function instanceOf(name: string, args: readonly (number | string)[]): Instance {
  const format = formats.get(name)
  if (!format) throw new Error(`no format ${name}`)
  const over = format.over.map((_, k): StoredAxis => {
    const axis = k === 0 ? denseFixed(NAMES[k]!) : sparseVariable(NAMES[k]!, NAMES[k - 1]!)
    return { ...axis, extent: variable(`n${k}`) }
  })
  return instantiate({ format, args }, over, (x, label) => (label === '' ? x : `${x}_${label}`))
}

const givenFor = (shape: readonly number[], more: Partial<Given> = {}): Given => ({
  sizes: new Map(shape.map((n, k) => [`n${k}`, n])),
  extents: new Map(shape.map((n, k) => [NAMES[k]!, n])),
  lists: new Map(),
  sets: new Map(),
  ...more,
})

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

/** Boundaries of segments of 1, 2, 3, 1, 2, 3 … up to n. */
const cuts = (n: number, first = 1): Int32Array => {
  const out = [0]
  for (let at = 0, k = first; at < n; k = (k % 3) + 1) out.push((at = Math.min(n, at + k)))
  return Int32Array.from(out)
}

interface Standard {
  readonly name: string
  readonly args: readonly (number | string)[]
  readonly given?: (shape: readonly number[]) => Partial<Given>
  readonly restrict?: (t: CoordTensor) => CoordTensor
  /** What is proved: inverse and range of the parts, and that the parts are a disjoint cover. */
  readonly checked?: readonly ('inverse' | 'range' | 'cover')[]
}

const MATRICES: readonly Standard[] = [
  { name: 'csr', args: [] },
  { name: 'csc', args: [] },
  { name: 'coo', args: [] },
  { name: 'dcsr', args: [] },
  { name: 'dcsc', args: [] },
  { name: 'ragged', args: [] },
  { name: 'ell', args: [] },
  { name: 'ell', args: [40] },
  { name: 'sell', args: [4, 8] },
  { name: 'sell', args: [3, 1] },
  { name: 'rows_ell', args: [1] },
  { name: 'rows_ell', args: [4] },
  { name: 'pieces_ell', args: [3] },
  { name: 'gcoo', args: [2] },
  { name: 'nm', args: [2, 4], restrict: few(2, 4) },
  { name: 'bsr', args: [1] },
  { name: 'bsr', args: [4] },
  { name: 'dbsr', args: [3] },
  {
    name: 'vbr',
    args: ['rows', 'cols'],
    given: ([m, n]) => ({
      lists: new Map([
        ['rows', cuts(m!)],
        ['cols', cuts(n!, 2)],
      ]),
    }),
  },
  { name: 'sr_bcrs', args: [4, 2] },
  { name: 'sr_bcrs', args: [8, 16] },
  { name: 'bitmap_blocks', args: [] },
  { name: 'dia', args: [] },
  {
    name: 'band',
    args: [1, 2],
    restrict: (t) => keep(t, (i, j) => i - j <= 1 && j - i <= 2),
    checked: ['cover'],
  },
  {
    name: 'strided',
    args: [3],
    restrict: (t) => keep(t, (i, j) => (i - j) % 3 === 0),
    checked: ['inverse', 'cover'],
  },
  { name: 'hyb', args: [1, 0] },
  { name: 'hyb', args: [2, 2] },
  { name: 'hyb', args: [3, 1] },
  { name: 'hyb_pieces', args: [2, 2] },
  { name: 'dense_blocks', args: [2, 0.75] },
  { name: 'band_rest', args: [1, 1] },
  { name: 'diagonal_rest', args: [] },
  { name: 'top_rest', args: [2] },
  { name: 'strided_rest', args: [2], checked: ['inverse'] },
  {
    name: 'masked_rest',
    args: ['mask'],
    given: () => ({ sets: new Map([['mask', [Int32Array.of(0, 1, 2, 3), Int32Array.of(0, 1, 0, 2)]]]) }),
  },
]

const title = (s: Standard): string => `${s.name}(${s.args.join(', ')})`

describe('standard formats of matrices', () => {
  it.each(MATRICES.map((s) => [title(s), s] as const))('%s: there and back', (_, s) => {
    const instance = instanceOf(s.name, s.args)
    fc.assert(
      fc.property(matrices, (raw) => {
        const t = s.restrict ? s.restrict(raw) : raw
        const given = givenFor(t.shape, s.given?.(t.shape))
        const back = partsToCoords(convertTensor(t, instance, given))
        expect(lines(back.coords, back.values!, false)).toEqual(lines(t.coords, t.values!, false))
      }),
      { numRuns: 40 },
    )
  })

  it.each(MATRICES.map((s) => [title(s), s] as const))('%s: what is proved', (_, s) => {
    const { parts, nodes } = provenance(instanceOf(s.name, s.args))
    const open = new Set<string>()
    for (const p of parts) {
      if (p.inverse === 'checked') open.add('inverse')
      if (p.range === 'checked') open.add('range')
    }
    for (const n of nodes) if (n.cover === 'checked' || n.disjoint === 'checked') open.add('cover')
    expect([...open]).toEqual(s.checked ?? [])
  })

  it('refuses what a format without room for it cannot hold', () => {
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
  it.each([
    ['csf3', [], 3],
    ['csf4', [], 4],
    ['csf5', [], 5],
    ['relation_rows', [2], 3],
    ['relation_buckets', [0], 3],
    ['relation_buckets', [2], 3],
  ] as const)('%s(%s): there and back, all proved', (name, args, order) => {
    const instance = instanceOf(name, args)
    const { parts, nodes } = provenance(instance)
    expect(parts.filter((p) => p.inverse !== 'proved' || p.range !== 'proved')).toEqual([])
    expect(nodes.filter((n) => n.disjoint === 'checked' || n.cover === 'checked')).toEqual([])
    fc.assert(
      fc.property(tensors(order), (t) => {
        const back = partsToCoords(convertTensor(t, instance, givenFor(t.shape)))
        expect(lines(back.coords, back.values!, false)).toEqual(lines(t.coords, t.values!, false))
      }),
      { numRuns: 40 },
    )
  })
})

describe('all of them', () => {
  it('are tried here', () => {
    const tried = new Set([
      ...MATRICES.map((s) => s.name),
      'csf3',
      'csf4',
      'csf5',
      'relation_rows',
      'relation_buckets',
    ])
    expect([...formats.keys()].filter((name) => !tried.has(name))).toEqual([])
  })
})
