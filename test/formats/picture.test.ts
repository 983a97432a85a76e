/** Pictures of tensors in formats: valid SVG that shows every part, element and block. */
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { parseFormatExpression } from '../../src/elaborate/index.ts'
import { instantiate } from '../../src/formats/instance/instantiate.ts'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import { variable } from '../../src/ir/expressions/expr.ts'
import type { AnyFormat } from '../../src/ir/formats/format.ts'
import { load } from '../../src/node.ts'
import { reportTensor } from '../../src/pictures/format-figures.ts'
import { blocksOf, cutsOf, elementsOf } from '../../src/pictures/picture/blocks.ts'
import { windowOf } from '../../src/pictures/picture/detail.ts'
import { drawCoords, drawParts } from '../../src/pictures/picture/index.ts'
import { layoutOf } from '../../src/pictures/picture/layout.ts'
import { colorOf, fitText, NEUTRAL, partColors, shadeOf } from '../../src/pictures/picture/svg.ts'
import { renderMasks } from '../../src/prune/picture.ts'
import {
  convertTensor,
  occupiedEntries,
  occupiedPositions,
  type StoredParts,
} from '../../src/storage/entries/stored-parts.ts'
import type { FormatOperands } from '../../src/storage/format-operands.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { wellFormed } from '../support/xml.ts'
import { denseFixed, sparseVariable } from './arbitrary.ts'
import { matrices, matrix } from './user-formats.ts'

const TEXTS = [
  'csr',
  'csc',
  'coo',
  'dcsr',
  'ragged',
  'ell',
  'sell(2, 4)',
  'pieces_ell(2)',
  'bsr(3)',
  'sr_bcrs(2, 3)',
  'bitmap_blocks',
  'banded',
  'dia',
  'band(30, 30)',
  'hyb(2, 2)',
  'bsr(2) where (density(2) >= 0.5) + csr',
  'band(1, 1) + csr',
  'top_rest(2)',
] as const
const texts = fc.constantFrom(...TEXTS)

/** What XML cannot hold as it is, among other characters. */
const names = fc.string({
  unit: fc.constantFrom('<', '>', '&', '"', 'a', '\u0000', '\uffff', '\ud800', '\udc00', 'é', '😀'),
})

const formats = new Map<string, AnyFormat>()
beforeAll(async () => {
  for (const file of ['formats', 'formats-composed', 'formats-tensors'])
    for (const [name, f] of (await load(`kernels/${file}.spt`)).formats) formats.set(name, f)
})

const NAMES = ['a', 'b', 'c']

function into(text: string, tensor: CoordTensor, lists: FormatOperands['lists'] = new Map()): StoredParts {
  const { format, args } = parseFormatExpression(text, formats)
  const over = tensor.shape.map((_, k): StoredAxis => {
    const axis = k === 0 ? denseFixed(NAMES[k]!) : sparseVariable(NAMES[k]!, NAMES[k - 1]!)
    return { ...axis, extent: variable(`n${k}`) }
  })
  const instance = instantiate({ format, args }, over, (x, l) => (l === '' ? x : `${x}_${l}`))
  return convertTensor(tensor, instance, {
    sizes: new Map(tensor.shape.map((n, k) => [`n${k}`, n])),
    extents: new Map(tensor.shape.map((n, k) => [NAMES[k]!, n])),
    lists,
    sets: new Map(),
  })
}

const points = (coords: readonly Int32Array[]): string[] =>
  Array.from(coords[0]!, (_, e) => coords.map((c) => c[e]).join())
const different = (t: CoordTensor): string[] => [...new Set(points(t.coords))].toSorted()

/** Rows and columns of blocks. */
const SIDES = { 'bsr(3)': [3, 3], 'sr_bcrs(2, 3)': [2, 1], bitmap_blocks: [8, 8] } as const

const SMALL = matrix(
  [4, 6],
  [
    [0, 0, 1],
    [0, 1, 2],
    [0, 5, 3],
    [1, 0, 4],
    [3, 2, 5],
    [3, 3, 6],
  ],
)
const titles = (svg: string): string[] => [...svg.matchAll(/<title>([^<]*)<\/title>/g)].map((m) => m[1]!)

describe('properties', () => {
  test('parts store the tensor, each coordinate once, and their figures add up', () => {
    fc.assert(
      fc.property(texts, matrices, (text, t) => {
        const s = into(text, t)
        const held = s.parts.map((p) => occupiedEntries(p, s))
        expect(held.flatMap((h) => points(h.coords)).toSorted()).toEqual(different(t))
        for (const h of held) expect(new Set(h.positions).size).toBe(h.coords[0]!.length)
        const r = reportTensor(s)
        expect(r.stored).toBe(different(t).length)
        expect(r.parts.map((p) => p.stored)).toEqual(held.map((h) => h.coords[0]!.length))
        for (const l of r.lengths) {
          expect(l.mean * l.segments).toBeCloseTo(r.stored)
          expect(l.histogram.reduce((n, c) => n + c.segments, 0)).toBe(l.segments)
        }
        for (const x of [r, ...r.parts]) {
          expect(x.stored + x.padding).toBe(x.slots)
          expect(x.structureBytes + x.tableBytes + x.valueBytes).toBe(x.bytes)
        }
        for (const key of ['stored', 'slots', 'padding', 'bytes'] as const)
          expect(r.parts.reduce((n, p) => n + p[key], 0)).toBe(r[key])
        for (const p of r.parts) expect(p.rows).toBeLessThanOrEqual(Math.min(p.stored, t.shape[0]!))
      }),
    )
  })

  test('a layout draws each slot, beginning with the used ones', () => {
    const place = (l: ReturnType<typeof layoutOf>, width: number, height: number) => {
      const out = new Map<number, string>()
      l.elements({ width, height }, (address, x, y) => {
        expect(x >= 0 && x < Math.min(width, l.width) && y >= 0 && y < Math.min(height, l.height)).toBe(true)
        expect(out.has(address)).toBe(false)
        out.set(address, `${x},${y}`)
      })
      return out
    }
    fc.assert(
      fc.property(texts, matrices, (text, t) => {
        for (const p of into(text, t).parts) {
          const l = layoutOf(p)
          const whole = place(l, l.width, l.height)
          expect(whole.size).toBe(p.storage.size)
          expect(new Set(whole.values()).size).toBe(p.storage.size)
          const inside = [...whole].filter(([, at]) => at.split(',').every((x, d) => Number(x) < [3, 2][d]!))
          expect([...place(l, 3, 2)].toSorted()).toEqual(inside.toSorted())
        }
      }),
    )
  })

  test('blocks contain the elements of the part, and all its slots', () => {
    fc.assert(
      fc.property(fc.constantFrom(...(Object.keys(SIDES) as (keyof typeof SIDES)[])), matrices, (text, t) => {
        const s = into(text, t)
        const [p] = s.parts
        const boxes = blocksOf(p!, s, [0, 1], 1000)
        if (t.values!.length === 0) {
          expect(boxes).toBe(null)
          return
        }
        const covered = new Set<string>()
        for (let b = 0; b < boxes!.top.length; b++)
          for (let i = boxes!.top[b]!; i < boxes!.bottom[b]!; i++)
            for (let j = boxes!.left[b]!; j < boxes!.right[b]!; j++) covered.add(`${i},${j}`)
        for (const x of different(t)) expect(covered.has(x)).toBe(true)
        const [rows, columns] = SIDES[text]
        expect(covered.size).toBe(boxes!.top.length * rows * columns)
        // Blocks of the format, and no others.
        const wanted = new Set(
          Array.from(
            t.coords[0]!,
            (i, e) => `${Math.floor(i / rows)},${Math.floor(t.coords[1]![e]! / columns)}`,
          ),
        )
        expect(boxes!.top.length).toBe(wanted.size)
      }),
    )
  })

  test('pictures are XML and name every part with its counts', () => {
    fc.assert(
      fc.property(texts, matrices, names, (text, t, name) => {
        const s = into(text, t)
        const svg = drawParts(s, { name })
        expect(wellFormed(svg)[0]).toBe('svg')
        const said = titles(svg)
        const counts = s.parts.map((p) => {
          const { label, instance } = p.part
          const start = label === '' || label === instance.text ? instance.text : `${label}: ${instance.text}`
          const line = said.find((x) => x.startsWith(`${start}, `) && x.includes(' nonzeros'))
          return Number(/, ([\d,]+) nonzeros/.exec(line ?? '')?.[1]?.replaceAll(',', ''))
        })
        expect(counts).toEqual(s.parts.map((p) => occupiedPositions(p)!.length))
        expect(wellFormed(drawCoords(t, { name }))[0]).toBe('svg')
      }),
    )
  })
})

describe('by hand', () => {
  test('single elements in the colour of their part', () => {
    const svg = drawParts(into('band(0, 1) + csr', SMALL))
    const squares = (k: number): number =>
      [...svg.matchAll(new RegExp(`fill="${colorOf(k)}" fill-opacity="1" d="([^"]*)"`, 'g'))]
        .map((m) => m[1]!.split('M').length - 1)
        .reduce((a, b) => a + b, 0)
    // Each in the matrix and as stored: three in the band, (0, 5), (1, 0) and (3, 2) outside.
    expect([squares(0), squares(1)]).toEqual([6, 6])
  })

  test('layouts: slices as wide as their longest row, columns as columns, diagonals next to each other', () => {
    const size = (text: string): number[] => {
      const l = layoutOf(into(text, SMALL).parts[0]!)
      return [l.width, l.height]
    }
    expect(size('csr')).toEqual([3, 3])
    expect(size('csc')).toEqual([5, 2])
    expect(size('ell(4)')).toEqual([4, 4])
    expect(size('rows_ell(2)')).toEqual([2, 4])
    expect(size('sell(2, 4)')).toEqual([4 - 1, 4])
    expect(size('bsr(2)')).toEqual([4, 4])
    expect(size('dia')).toEqual([4, 4])
    const boxes: number[][] = []
    layoutOf(into('sell(2, 4)', SMALL).parts[0]!).boxes({ width: 9, height: 9 }, 9, (...b) => boxes.push(b))
    expect(boxes).toEqual([[0, 0, 3, 2]])
  })

  test('blocks with given boundaries if they are full, and no rows that end early', () => {
    const lists = new Map([
      ['rows', Int32Array.of(0, 2, 4)],
      ['cols', Int32Array.of(0, 2, 6)],
    ])
    const full = (rows: number[], columns: number[]): number[][] =>
      rows.flatMap((i) => columns.map((j) => [i, j, 1]))
    const s = into(
      'vbr(rows, cols)',
      matrix([4, 6], [...full([0, 1], [0, 1]), ...full([2, 3], [2, 3, 4, 5])]),
      lists,
    )
    expect(blocksOf(s.parts[0]!, s, [0, 1], 9)).toEqual({
      top: Int32Array.of(0, 2),
      left: Int32Array.of(0, 2),
      bottom: Int32Array.of(2, 4),
      right: Int32Array.of(2, 6),
    })
    const uneven = into(
      'vbr(rows, cols)',
      matrix(
        [4, 6],
        [
          [0, 2, 1],
          [0, 3, 1],
          [1, 2, 1],
        ],
      ),
      lists,
    )
    expect(blocksOf(uneven.parts[0]!, uneven, [0, 1], 9)).toBe(null)
    for (const text of ['csr', 'dia', 'ell', 'band(9, 9)']) {
      const other = into(text, SMALL)
      expect(blocksOf(other.parts[0]!, other, [0, 1], 9)).toBe(null)
    }
    expect(blocksOf(s.parts[0]!, s, [0, 1], 1)).toBe(null)
  })

  test('slots that dense axes store around the elements', () => {
    const s = into(
      'band(1, 0)',
      matrix(
        [3, 3],
        [
          [0, 0, 1],
          [2, 1, 1],
        ],
      ),
    )
    expect(points(elementsOf(s.parts[0]!, s, 100)!).toSorted()).toEqual(['0,0', '1,0', '1,1', '2,1', '2,2'])
    expect(elementsOf(s.parts[0]!, s, 3)).toBe(null)
  })

  test('partitions are lines', () => {
    const s = into('hyb(4, 2)', SMALL)
    expect(cutsOf(s.instance, s.shape, s.given)).toEqual([{ dim: 1, boundaries: [2, 4] }])
    expect(drawParts(s)).toContain('stroke-dasharray')
    expect(drawParts(into('csr', SMALL))).not.toContain('stroke-dasharray')
  })

  test('blocks are framed', () => {
    const frames = (text: string): number =>
      [...drawParts(into(text, SMALL)).matchAll(/stroke-width="0\.8" d="([^"]*)"/g)]
        .map((m) => m[1]!.split('M').length - 1)
        .reduce((a, b) => a + b, 0)
    const blocks = into('bsr(3)', SMALL).parts[0]!.storage.size / 9
    expect(frames('csr')).toBe(0)
    expect(frames('bsr(3)')).toBeGreaterThanOrEqual(blocks)
  })

  test('a window has the most parts, then the most elements', () => {
    const at = (...xs: number[]): [Int32Array, Int32Array] => [Int32Array.from(xs), Int32Array.from(xs)]
    const parts = [
      { entries: at(0, 1, 2, 300), storedCells: null },
      { entries: at(301), storedCells: null },
    ]
    expect(windowOf([500, 500], parts)).toEqual({ top: 288, left: 288, bottom: 360, right: 360 })
    expect(windowOf([500, 500], parts.slice(0, 1))).toEqual({ top: 0, left: 0, bottom: 72, right: 72 })
    expect(windowOf([72, 9], parts)).toBe(null)
    expect(windowOf([500, 500], [])).toBe(null)
  })

  test('tensors of one and of three dimensions, and without elements', () => {
    const pair = {
      kind: 'coords',
      shape: [3],
      coords: [Int32Array.of(0, 2)],
      values: null,
      dtype: 'f32',
    } as const
    expect(titles(drawCoords(pair, { name: 'v' }))[0]).toBe('v')
    const three = matrix(
      [2, 3, 4],
      [
        [0, 1, 2, 5],
        [1, 2, 3, 6],
      ],
    )
    const svg = drawParts(into('csf', three))
    expect(wellFormed(svg)[0]).toBe('svg')
    expect(svg).toContain('drawn over the last two of 3 dimensions')
    expect(wellFormed(drawParts(into('hyb(2, 2)', matrix([0, 0], []))))[0]).toBe('svg')
  })

  test('a large matrix in many parts stays below a megabyte', () => {
    const n = 60_000
    const entries = Array.from({ length: n }, (_, e) => [(e * 7919) % 3000, (e * 104729) % 2999, 1])
    const s = into('hyb(8, 5)', matrix([3000, 3000], entries))
    const svg = drawParts(s)
    expect(svg.length).toBeLessThan(1_000_000)
    expect(wellFormed(svg)[0]).toBe('svg')
  })

  test('from TypeScript: figures and pictures of a format, of a stored tensor, and of its arrays', async () => {
    const program = await load('kernels/formats-composed.spt')
    const hyb = program.format('hyb', 2, 1)
    expect(hyb.describe(SMALL)).toMatchObject({
      stored: 6,
      slots: 6,
      compressedBytes: 5 * 4 + 6 * 12,
      parts: [{ rows: 2 }, { rows: 1 }, { rows: 2 }, { rows: 0 }],
    })
    const svg = await hyb.svg(SMALL, {}, { name: 'A <small>' })
    expect(titles(svg)[0]).toBe('A &lt;small&gt; as hyb(2, 1)')
    const converted = hyb.convert(SMALL)
    expect(await converted.svg({ name: 'A <small>' })).toBe(svg)
    // Arrays alone: their elements that differ from the fill.
    const again = hyb.fromParts([4, 6], converted.parts)
    expect(await again.svg({ name: 'A <small>' })).toBe(svg)
    expect(again.describe().parts.map((p) => p.rows)).toEqual([2, 1, 2, 0])
    await expect(hyb.svg(SMALL, {}, 'A' as never)).rejects.toThrow('api/argument')
  })

  test('shades and texts', () => {
    expect([0, 1, 9, 10].map((x) => shadeOf(x, 10))).toEqual([0, 2, 5, 5])
    expect(shadeOf(1, 1)).toBe(5)
    expect(fitText('abcdef', 30, 12)).toBe('abc…')
    expect(new Set(Array.from({ length: 60 }, (_, k) => colorOf(k))).size).toBe(60)
  })
})

describe('parts of a picture', () => {
  const tensor = matrix(
    [4, 6],
    [
      [0, 0, 1],
      [0, 2, 2],
      [1, 1, 3],
      [3, 5, 4],
    ],
  )

  test('rows and columns are labelled, and index arrays of small tensors are drawn', () => {
    const svg = drawParts(into('csr', tensor))
    for (const label of ['columns 0 … 5', 'rows 0 … 3', 'jo indptr', 'jo indices'])
      expect(svg).toContain(label)
    expect(wellFormed(svg).length).toBeGreaterThan(0)
  })

  test('a hue for each column range, and lightness by bucket', () => {
    const hsl = partColors(['p0_w1', 'p0_w2', 'p1_w1', 'p1_w2']).map((c) => c.match(/\d+/g)!.map(Number))
    expect(hsl[0]![0]).toBe(hsl[1]![0])
    expect(hsl[2]![0]).toBe(hsl[3]![0])
    expect(hsl[0]![0]).not.toBe(hsl[2]![0])
    expect(hsl[0]![2]).toBeGreaterThan(hsl[1]![2]!)
    expect(hsl[0]![2]).toBe(hsl[2]![2])
  })

  test('text has a contrast of at least 4.5 on white and on black', () => {
    const channel = Number.parseInt(NEUTRAL.slice(1, 3), 16) / 255
    const luminance = ((channel + 0.055) / 1.055) ** 2.4
    expect(1.05 / (luminance + 0.05)).toBeGreaterThanOrEqual(4.5)
    expect((luminance + 0.05) / 0.05).toBeGreaterThanOrEqual(4.5)
  })

  test('masks have a legend of the share of kept weights', () => {
    const svg = renderMasks({
      shapes: [{ name: 'layer', rows: 2, cols: 2, valueBytes: 4 }],
      masks: [Uint8Array.of(1, 0, 0, 1)],
    })
    expect(svg).toMatch(/>weights kept: 0 %<.*>100 %</)
    expect(svg).toContain('>1 layer<')
  })
})
