import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { applyMap } from '../../src/formats/coordmap.ts'
import { toCoords } from '../../src/formats/coords.ts'
import { instantiateFormat } from '../../src/formats/instantiate.ts'
import { buildMeasured, reformatCoords } from '../../src/formats/reformat.ts'
import { scatterValues } from '../../src/formats/scatter.ts'
import type { StoredAxis } from '../../src/ir/axis.ts'
import { add, ceildiv, div, int, mod, mul, variable } from '../../src/ir/expr.ts'
import type { Format, FormatParam } from '../../src/ir/format.ts'
import { denseFixed, lines, sparseFixed, sparseVariable } from './arbitrary.ts'

const v = variable
const param = (name: string, more: Partial<FormatParam> = {}): FormatParam => ({
  name,
  kind: 'integer',
  default: null,
  measured: false,
  ...more,
})

const PLAIN = { kind: 'format', sorts: [], queries: [], where: null, claims: [] } as const

const bsr: Format = {
  ...PLAIN,
  name: 'bsr',
  params: [param('b')],
  over: ['i', 'j'],
  axes: [
    { ...denseFixed('io'), extent: ceildiv(v('i'), v('b')) },
    { ...sparseVariable('jo', 'io'), extent: ceildiv(v('j'), v('b')) },
    { ...denseFixed('ii'), extent: v('b') },
    { ...denseFixed('ji'), extent: v('b') },
  ],
  order: ['io', 'jo', 'ii', 'ji'],
  map: [div(v('i'), v('b')), div(v('j'), v('b')), mod(v('i'), v('b')), mod(v('j'), v('b'))],
  inverse: [add(mul(v('io'), v('b')), v('ii')), add(mul(v('jo'), v('b')), v('ji'))],
}

const ell: Format = {
  ...PLAIN,
  name: 'ell',
  params: [param('w', { measured: true })],
  over: ['i', 'j'],
  axes: [
    { ...denseFixed('io'), extent: v('i') },
    { ...(sparseFixed('jo', 'io') as StoredAxis & { kind: 'sparse_fixed' }), extent: v('j'), width: v('w') },
  ],
  order: ['io', 'jo'],
  map: [v('i'), v('j')],
  inverse: [v('io'), v('jo')],
}

/** The kernel's axes have other names than the format's dimensions. */
const over: StoredAxis[] = [
  { ...denseFixed('row'), extent: v('m') },
  { ...sparseVariable('col', 'row'), extent: v('n') },
]

describe('instantiateFormat', () => {
  it('substitutes arguments, dimensions and names', () => {
    const f = instantiateFormat(bsr, [int(4)], over, (n) => `A_${n}`)
    expect(f.text).toBe('bsr(4)')
    expect(f.order).toEqual(['A_io', 'A_jo', 'A_ii', 'A_ji'])
    expect(f.axes[1]).toMatchObject({ name: 'A_jo', parent: 'A_io', extent: ceildiv(v('n'), int(4)) })
    expect(f.map[2]).toEqual(mod(v('row'), int(4)))
    expect(f.inverse[0]).toEqual(add(mul(v('A_io'), int(4)), v('A_ii')))
    expect(f.measured).toEqual([])
  })

  it('measures what is neither given nor has a default', () => {
    const open = instantiateFormat(ell, [], over, (n) => `A_${n}`)
    expect(open.measured.map((p) => p.name)).toEqual(['A_w'])
    expect(open.axes[1]).toMatchObject({ width: v('A_w') })
    expect(instantiateFormat(ell, [int(3)], over).axes[1]).toMatchObject({ width: int(3) })
    const half = param('c', { default: div(v('b'), int(2)) })
    const two = { ...bsr, params: [param('b'), half], inverse: [v('c'), v('jo')] }
    expect(instantiateFormat(two, [int(8)], over).inverse[0]).toEqual(int(4))
  })

  it('refuses wrong arguments', () => {
    expect(() => instantiateFormat(bsr, [], over)).toThrow('format/arguments: format bsr is given 0')
    expect(() => instantiateFormat(bsr, [int(1), int(2)], over)).toThrow('format/arguments')
    expect(() => instantiateFormat(bsr, [int(2)], over.slice(1))).toThrow('format/over')
    expect(() => instantiateFormat(bsr, [int(0)], over)).toThrow(
      'format/division-by-zero: format bsr divides by 0',
    )
    expect(() => instantiateFormat(bsr, [int(-2)], over)).toThrow('format/division-by-zero')
  })
})

const matrices = fc.tuple(fc.nat(9), fc.nat(9)).chain(([m, n]) =>
  fc.tuple(
    fc.constant([m, n] as const),
    fc.array(
      fc.tuple(fc.nat(Math.max(0, m - 1)), fc.nat(Math.max(0, n - 1)), fc.integer({ min: 1, max: 9 })),
      {
        maxLength: m * n === 0 ? 0 : 30,
      },
    ),
  ),
)

describe('into a format and back', () => {
  it.each([
    ['bsr', bsr, [1, 2, 3, 4, 16]],
    ['ell', ell, [null]],
  ] as const)('%s: the original comes back through the inverse', (_, format, args) => {
    fc.assert(
      fc.property(matrices, fc.constantFrom<number | null>(...args), ([[m, n], raw], arg) => {
        const f = instantiateFormat(format, arg === null ? [] : [int(arg)], over)
        const sizes = new Map([
          ['m', m],
          ['n', n],
        ])
        const measured = new Set(f.measured.map((p) => p.name))
        const coords = [0, 1].map((k) => Int32Array.from(raw, (e) => e[k]!))
        const values = Float64Array.from(raw, (e) => e[2])
        const from = [
          { name: 'row', extent: m },
          { name: 'col', extent: n },
        ]
        const to = f.order.map((name) => f.axes.find((a) => a.name === name)!)
        const mapped = reformatCoords({ from, to, map: f.map, inverse: f.inverse, sizes, measured }, coords)
        const { storage, measured: found } = buildMeasured(to, sizes, measured, mapped)
        const stored = scatterValues(storage, { coords: mapped, values, dtype: 'f64' }, 'f64', 0)
        const back = toCoords(storage, stored, 'f64', { drop: 0 })
        const old = applyMap({ map: f.inverse, inputs: f.order, sizes }, back.coords)
        expect(lines(old, back.values!, true)).toEqual(lines(coords, values, false))
        if (format === ell) {
          const rows = new Map<number, Set<number>>()
          for (const [r, c] of raw) rows.set(r, (rows.get(r) ?? new Set()).add(c))
          expect(found.get('w')).toBe(Math.max(0, ...[...rows.values()].map((s) => s.size)))
        }
      }),
      { numRuns: 300 },
    )
  })

  it('gives axes that share a measured width the larger one, and measures extents', () => {
    const axes: StoredAxis[] = [
      { ...denseFixed('i'), extent: v('k') },
      { ...(sparseFixed('j', 'i') as StoredAxis & { kind: 'sparse_fixed' }), extent: int(9), width: v('w') },
      { ...(sparseFixed('l', 'j') as StoredAxis & { kind: 'sparse_fixed' }), extent: int(9), width: v('w') },
    ]
    const coords = [Int32Array.of(3, 3, 0), Int32Array.of(1, 1, 8), Int32Array.of(0, 5, 2)]
    const { storage, measured } = buildMeasured(axes, new Map(), new Set(['k', 'w']), coords)
    expect([...measured]).toEqual([
      ['k', 4],
      ['w', 2],
    ])
    expect(storage.levels.get('j')!.width).toBe(2)
    expect(storage.size).toBe(16)
  })

  it('names a size that is missing', () => {
    const axes: StoredAxis[] = [{ ...denseFixed('i'), extent: add(v('m'), v('k')) }]
    expect(() => buildMeasured(axes, new Map([['m', 1]]), new Set(['k']), [new Int32Array(0)])).toThrow(
      'bind/missing-size: the extent of axis i needs k',
    )
  })

  it('refuses old coordinates beyond the tensor, even where a padded block would hold them', () => {
    const f = instantiateFormat(bsr, [int(4)], over)
    const from = [
      { name: 'row', extent: 5 },
      { name: 'col', extent: 5 },
    ]
    const sizes = new Map([
      ['m', 5],
      ['n', 5],
    ])
    const input = { from, to: f.axes, map: f.map, inverse: f.inverse, sizes }
    expect(() => reformatCoords(input, [Int32Array.of(4), Int32Array.of(5)])).toThrow(
      'bind/coordinate-range: entry 0 has the coordinate 5 on axis col, whose extent is 5',
    )
  })

  it('refuses a format whose inverse is wrong, before anything is built', () => {
    const wrong = { ...bsr, inverse: [bsr.inverse[1]!, bsr.inverse[0]!] }
    const f = instantiateFormat(wrong, [int(2)], over)
    const sizes = new Map([
      ['m', 4],
      ['n', 4],
    ])
    const from = [
      { name: 'row', extent: 4 },
      { name: 'col', extent: 4 },
    ]
    expect(() =>
      reformatCoords({ from, to: f.axes, map: f.map, inverse: f.inverse, sizes }, [
        Int32Array.of(0),
        Int32Array.of(0),
      ]),
    ).toThrow('format/not-inverse')
  })
})
