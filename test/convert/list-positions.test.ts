/**
 * Positions at which formats read lists that come with the data, in maps, inverses, conditions and keys of sorts: one that the list
 * lacks is refused, on the host and on devices in the same words; otherwise arrays are those of a plain evaluation. And
 * arithmetic on what lists hold and queries answer stays in 32 bits or is refused alike.
 */
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { dense, stored } from '../../src/node.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { conversionPlan, uploadResident } from '../../src/storage/engines/device/index.ts'
import { HOST } from '../../src/storage/engines/host/engine.ts'
import { convertTensor, type StoredParts } from '../../src/storage/entries/stored-parts.ts'
import { partsFromArrays } from '../../src/storage/ready/ready-parts.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { ROW_SUMS } from '../formats/programs.ts'
import { givenFor, matrix, written } from '../formats/user-formats.ts'
import { runs, sample } from '../support/cases.ts'
import { arraysOf } from '../support/packaged-schedules.ts'
import { diagnosticOf } from '../support/refusal.ts'
import { DEVICES, opened } from './devices.ts'

interface At {
  readonly i: number
  readonly list: readonly number[]
  /** Stored in row i. */
  readonly count: number
}
interface Position {
  readonly text: string
  readonly of: (at: At) => number
  readonly asks: 'nothing' | 'find' | 'count'
}

class Beyond extends Error {}
const read = ({ list }: At, k: number): number => {
  if (k < 0 || k >= list.length) throw new Beyond()
  return list[k]!
}

const ROOTS: readonly Position[] = [
  { text: '0', of: () => 0, asks: 'nothing' },
  { text: 'segments(a)', of: ({ list }) => list.length - 1, asks: 'nothing' },
  { text: 'i', of: ({ i }) => i, asks: 'nothing' },
  { text: 'find(a, i)', of: ({ i, list }) => list.findLastIndex((b) => b <= i), asks: 'find' },
  { text: 'count(j by i)', of: ({ count }) => count, asks: 'count' },
]
const shifted = fc
  .tuple(fc.constantFrom(...ROOTS), fc.integer({ min: -2, max: 3 }))
  .map(([{ text, of, asks }, c]): Position => ({ text: `${text} + ${c}`, of: (at) => of(at) + c, asks }))
const positions: fc.Arbitrary<Position> = shifted.chain((p) =>
  fc.constantFrom<Position>(
    p,
    p,
    { ...p, text: `a[${p.text}] - i`, of: (at) => read(at, p.of(at)) - at.i },
    {
      text: `find(a, a[${p.text}])`,
      of: (at) => at.list.findLastIndex((b) => b <= read(at, p.of(at))),
      asks: 'find',
    },
    {
      ...p,
      text: `min(max(${p.text}, 0), segments(a))`,
      of: (at) => Math.min(Math.max(p.of(at), 0), at.list.length - 1),
    },
  ),
)

interface Drawn {
  readonly shape: readonly [number, number]
  readonly points: readonly (readonly [number, number])[]
  readonly cuts: readonly number[]
  readonly end: number
}
const drawn: fc.Arbitrary<Drawn> = fc
  .tuple(fc.integer({ min: 1, max: 7 }), fc.integer({ min: 1, max: 5 }))
  .chain(([m, n]) =>
    fc.record({
      shape: fc.constant([m, n] as const),
      points: fc
        .uniqueArray(fc.nat(m * n - 1), { maxLength: 12 })
        .map((ps) => ps.map((p) => [Math.floor(p / n), p % n] as const)),
      cuts: fc.array(fc.nat(9), { maxLength: 4 }),
      end: fc.nat(20),
    }),
  )

/** Ends with the extent of what is looked up in it. */
const listOf = ({ cuts, end, shape }: Drawn, { asks }: Position): number[] => {
  const last = asks === 'find' ? shape[0] : end
  return [0, ...cuts.filter((c) => c <= last).sort((a, b) => a - b), last]
}
const tensorOf = ({ shape, points }: Drawn): CoordTensor => ({
  ...matrix(
    shape,
    points.map(([i, j]) => [i, j]),
  ),
  values: Int32Array.from(points, (_, k) => k + 1),
  dtype: 'i32',
})

/** The values of each part, in the order in which they are stored. */
type Values = readonly (readonly number[])[]
interface Place {
  readonly text: (e: string) => string
  readonly may: (p: Position) => boolean
  readonly values: (d: Drawn, at: (i: number) => At, p: Position) => Values
}

const axes = 'axis io = dense_fixed(i)\n  axis jo = sparse_variable(io, j)'
const rows = (name: string): string => `format ${name} over (i, j) {
  ${axes}
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`

const sortedBy = (key: string): string => `format f(a: list) over (i, j) {
  sort i by ${key} -> (place, row)
  ${axes}
  map (i, j) -> (place[i], j)
  inverse (io, jo) -> (row[io], jo)
}`
/** By keys, then by coordinate. */
const ordered = ({ points }: Drawn, key: (i: number) => number): number[] =>
  points
    .map(([i, j], k) => [key(i), i, j, k + 1] as const)
    .sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2])
    .map((x) => x[3])
const value = (at: (i: number) => At, p: Position, i: number): number => read(at(i), p.of(at(i)))

const PLACES: Readonly<Record<string, Place>> = {
  'a map': {
    text: (e) => `format f(a: list) over (i, j) {
  axis p = sparse_variable(64)
  axis io = sparse_variable(p, i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (a[${e}], i, j)
  inverse (p, io, jo) -> (io, jo)
}`,
    may: () => true,
    values: (d, at, p) => [ordered(d, (i) => value(at, p, i))],
  },
  'an inverse': {
    text: (e) => `format f(a: list) over (i, j) {
  ${axes}
  map (i, j) -> (i, j)
  inverse (io, jo) -> (min(io, io + a[${e.replace(/\bi\b/g, 'io')}]), jo)
}`,
    may: ({ asks }) => asks === 'nothing',
    values: (d, at, p) => {
      for (const [i] of d.points) value(at, p, i)
      return [ordered(d, () => 0)]
    },
  },
  'a condition': {
    text: (e) => `${rows('r')}format f(a: list) over (i, j) {
  part few = r where (a[${e}] <= 3)
  part r
}`,
    may: () => true,
    values: (d, at, p) => {
      const few = new Set(d.points.filter(([i]) => value(at, p, i) <= 3).map((x) => d.points.indexOf(x) + 1))
      const all = ordered(d, () => 0)
      return [all.filter((x) => few.has(x)), all.filter((x) => !few.has(x))]
    },
  },
  'a key': {
    text: (e) => sortedBy(`-a[${e}]`),
    may: () => true,
    values: (d, at, p) => {
      const keys = Array.from({ length: d.shape[0] }, (_, i) => value(at, p, i))
      return [ordered(d, (i) => -keys[i]!)]
    },
  },
  'what a map asks': {
    text: (e) => `format f(a: list) over (i, j) {
  axis p = sparse_variable(j + 1)
  axis io = sparse_variable(p, i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (count(j by a[${e}]), i, j)
  inverse (p, io, jo) -> (io, jo)
}`,
    may: () => true,
    values: (d, at, p) => [ordered(d, (i) => together(d, (x) => value(at, p, x), i))],
  },
  'what a key asks': {
    text: (e) => sortedBy(`-count(j by a[${e}])`),
    may: () => true,
    values: (d, at, p) => {
      const boundaries = Array.from({ length: d.shape[0] }, (_, i) => value(at, p, i))
      return [ordered(d, (i) => -together(d, (x) => boundaries[x]!, i))]
    },
  },
}

/** Different columns in the rows whose boundary is that of row i. */
const together = (d: Drawn, boundary: (i: number) => number, i: number): number =>
  new Set(d.points.filter((p) => boundary(p[0]) === boundary(i)).map((p) => p[1])).size

const atOf =
  (d: Drawn, list: readonly number[]) =>
  (i: number): At => ({ i, list, count: d.points.filter((p) => p[0] === i).length })

/** What a plain evaluation has; `null`: it reads beyond the list. */
function plain(place: Place, d: Drawn, p: Position, list: readonly number[]): Values | null {
  try {
    return place.values(d, atOf(d, list), p)
  } catch (e) {
    if (e instanceof Beyond) return null
    throw e
  }
}

const given = (d: Drawn, list: readonly number[]) =>
  givenFor(d.shape, { lists: new Map([['z', Int32Array.from(list)]]) })
const valuesOf = (t: StoredParts): Values => t.parts.map((p) => [...p.values].map(Number))

/** What the host makes or says. */
function onHost(d: Drawn, text: string, list: readonly number[]) {
  let made: StoredParts | null = null
  const refused = diagnosticOf(() => {
    made = convertTensor(tensorOf(d), written(text, 'z'), given(d, list))
  })
  return { made: made as StoredParts | null, refused }
}

/** That a device makes or says the same. */
async function same(
  device: Parameters<typeof conversionPlan>[0],
  d: Drawn,
  text: string,
  list: readonly number[],
  { made, refused }: ReturnType<typeof onHost>,
): Promise<void> {
  const plan = conversionPlan(device, written(text, 'z'))
  const from = await uploadResident(device, tensorOf(d))
  try {
    const there = await plan.run(from, given(d, list))
    expect(arraysOf(await there.download())).toEqual(made && arraysOf(made))
    there.free()
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    expect(e.diagnostics[0]).toEqual(refused)
  } finally {
    from.free()
  }
}

/** The rows of a matrix as arrays. */
const arraysOfRows = (d: Drawn) => {
  const [part] = convertTensor(tensorOf(d), written(rows('r')), givenFor(d.shape)).parts
  const { indptr, indices } = part!.storage.levels.get('jo')!
  const jo = { indptr: indptr!, indices: indices! }
  return { shape: d.shape, values: part!.values as Int32Array, arrays: { jo } }
}
/** What ready-made rows are refused with. */
const ofArrays = (d: Drawn, text: string, list: readonly number[]) => {
  const tensor = { kind: 'stored', ...arraysOfRows(d), dtype: 'i32' } as const
  return diagnosticOf(() =>
    partsFromArrays(written(text, 'z'), [{ tensor, tables: new Map() }], given(d, list)),
  )
}

/** No list has this, and nobody asks. */
const NOTHING = {
  d: { shape: [2, 2], points: [], cuts: [], end: 2 } as Drawn,
  p: { text: '0 - 1', of: () => -1, asks: 'nothing' } as Position,
}
const ON_WEBGPU = sample(Object.keys(PLACES), 2)
describe.each(Object.keys(PLACES))('the position of a list in %s', (name) => {
  const place = PLACES[name]!
  const asked = fc.record({ d: drawn, p: positions.filter(place.may) })

  test('is within the list, or rejected on the host', () => {
    fc.assert(
      fc.property(asked, ({ d, p }) => {
        const list = listOf(d, p)
        const { made, refused } = onHost(d, place.text(p.text), list)
        const expected = plain(place, d, p, list)
        if (expected === null) {
          expect(refused).toMatchObject({ code: 'format/map-range' })
          expect(refused?.message).toMatch(/position -?\d+ of the list z is read$/)
        } else {
          expect(refused).toBeUndefined()
          expect(valuesOf(made!)).toEqual(expected)
        }
      }),
      { numRuns: runs(25) },
    )
  })

  describe.each(DEVICES.filter((d) => d.kind === 'cpu' || ON_WEBGPU.includes(name)))(
    'on $name',
    ({ kind, open }) => {
      const on = opened(open)
      test('is treated as on the host', async () => {
        await fc.assert(
          fc.asyncProperty(asked, async ({ d, p }) => {
            const list = listOf(d, p)
            const text = place.text(p.text)
            await same(on.device, d, text, list, onHost(d, text, list))
          }),
          { numRuns: runs(kind === 'webgpu' ? 2 : 3), examples: [[NOTHING]] },
        )
      })
    },
  )
})

/** What is counted or found, at most for what is there. */
const ASKED: readonly (readonly [string, (at: At) => number])[] = [
  ['a[find(a, i)]', ({ i, list }) => list.findLast((b) => b <= i)!],
  ['find(a, i)', ({ i, list }) => list.findLastIndex((b) => b <= i)],
  ['count(j by i)', ({ count }) => count],
  ['segments(a)', ({ list }) => list.length - 1],
]
/** What inverses name, of the row where they stand; an order holds all rows, whichever are stored. */
const ORDER = 'row[io]'
const OF_PLACES: typeof ASKED = [
  ['a[min(io, segments(a))]', ({ i, list }) => list[Math.min(i, list.length - 1)]!],
  ['segments(a)', ({ list }) => list.length - 1],
  [ORDER, ({ i }) => i],
]
type Wide = readonly [(e: string) => string, (d: Drawn, asked: string) => readonly number[], typeof ASKED]
const WIDE: Readonly<Record<string, Wide>> = {
  'a condition': [
    (e) => `${rows('r')}format f(a: list) over (i, j) {
  part few = r where (${e} > 2000)
  part r
}`,
    ({ points }) => points.map((p) => p[0]),
    ASKED,
  ],
  'a key': [PLACES['a key']!.text, ({ shape }) => Array.from({ length: shape[0] }, (_, i) => i), ASKED],
  'a map': [
    (e) => PLACES['a map']!.text('E').replace('a[E]', e),
    ({ points }) => points.map((p) => p[0]),
    ASKED,
  ],
  'an inverse': [
    (e) => {
      const sorts = e.includes(ORDER)
      const [place, back] = sorts ? ['place[i]', ORDER] : ['i', 'io']
      return `format f(a: list) over (i, j) {
  ${sorts ? 'sort i by -i -> (place, row)' : ''}
  ${axes}
  map (i, j) -> (${place}, j)
  inverse (io, jo) -> (${back}, jo + ${e})
}`
    },
    ({ points, shape }, asked) => points.map((p) => (asked === ORDER ? shape[0] - 1 : p[0])),
    OF_PLACES,
  ],
}

describe.each(Object.keys(WIDE))('arithmetic on lists and queries in %s', (name) => {
  const [text, entries, questions] = WIDE[name]!
  const on = opened(DEVICES[0]!.open)
  test('fits 32 bits, or is rejected on host and device', async () => {
    const factor = fc.constantFrom(1, 1000, 2 ** 28, 2 ** 30, 2 ** 31 - 1)
    await fc.assert(
      fc.asyncProperty(drawn, fc.constantFrom(...questions), factor, async (d, [asked, of], by) => {
        const list = listOf(d, { text: asked, of, asks: 'find' })
        const product = `(${asked} + 1) * ${by}`
        const e = text(name === 'a condition' ? product : `min(${product}, 0)`)
        const host = onHost(d, e, list)
        const at = atOf(d, list)
        const beyond = entries(d, asked).some((i) => (of(at(i)) + 1) * by >= 2 ** 31)
        expect(host.refused?.code).toBe(beyond ? 'format/map-overflow' : undefined)
        if (name === 'a condition' && !beyond)
          expect(valuesOf(host.made!)).toEqual(
            [true, false].map((few) =>
              ordered({ ...d }, () => 0).filter((x) => {
                const [i] = d.points[x - 1]!
                return (of(at(i)) + 1) * by > 2000 === few
              }),
            ),
          )
        if (name === 'an inverse' && asked !== ORDER)
          expect(ofArrays(d, e, list)?.code).toBe(host.refused?.code)
        await same(on.device, d, e, list, host)
      }),
      { numRuns: runs(9), examples: [[{ ...NOTHING.d, cuts: [0] }, questions[1]!, 2 ** 31 - 1]] },
    )
  })
})

describe('ready-made arrays', () => {
  const inverse = PLACES['an inverse']!

  test('are rejected if the coordinate of an element is outside of the list', () => {
    fc.assert(
      fc.property(drawn, positions.filter(inverse.may), (d, p) => {
        const list = listOf(d, p)
        const { code } = ofArrays(d, inverse.text(p.text), list) ?? {}
        expect(code).toBe(plain(inverse, d, p, list) ? undefined : 'format/map-range')
      }),
      { numRuns: runs(40) },
    )
  })

  const cpu = opened(createCpuDevice)
  test.each([
    ['inverse', inverse.text('i / 2')],
    ['map', PLACES['an inverse']!.text('0').replace('-> (i, j)', '-> (i + min(a[i / 2], 0), j)')],
  ])('of a kernel: the %s', async (_, text) => {
    const p: Position = { text: 'i / 2', of: ({ i }) => Math.floor(i / 2), asks: 'nothing' }
    const kernel = parseProgram(`${text}\n${ROW_SUMS.replaceAll('f32', 'i32')}`).kernel('sum')
    const compiled = await kernel.as('A', 'f(z)').build(cpu.device, { auto: false })
    await fc.assert(
      fc.asyncProperty(drawn, async (d) => {
        const list = listOf(d, p)
        const z = dense([list.length], Int32Array.from(list), 'i32')
        const { shape, values, arrays } = arraysOfRows(d)
        const codes: (string | undefined)[] = []
        for (const A of [tensorOf(d), stored(shape, arrays, values, 'i32')])
          try {
            const prepared = await compiled.bind({ A, z })
            await prepared.run()
            expect(await prepared.verify()).toMatchObject({ ok: true })
            prepared.free()
            codes.push(undefined)
          } catch (e) {
            if (!(e instanceof SptError)) throw e
            codes.push(e.diagnostics[0]!.code)
          }
        const expected = plain(inverse, d, p, list) ? undefined : 'format/map-range'
        expect(codes).toEqual([expected, expected])
      }),
      { numRuns: runs(10) },
    )
  })
})

test('positions that are proved to be in a list are not checked', () => {
  const first = vi.spyOn(HOST, 'findFirst')
  try {
    const looks = (place: string, e: string): number => {
      const d: Drawn = {
        shape: [4, 2],
        points: [
          [0, 1],
          [3, 0],
        ],
        cuts: [2],
        end: 4,
      }
      first.mockClear()
      convertTensor(tensorOf(d), written(PLACES[place]!.text(e), 'z'), given(d, [0, 2, 4]))
      return first.mock.calls.reduce((n, [, conditions]) => n + conditions.length, 0)
    }
    for (const [place, known, unknown] of [
      ['a map', ['find(a, i)', 'find(a, i) + 1', 'i / 2'], 'count(j by i) + 1'],
      ['an inverse', ['segments(a) - 1', 'io / 2', 'min(io, segments(a))'], 'io - io / 2'],
      ['a condition', ['find(a, i)', 'find(a, i) + 1', 'segments(a)'], 'count(j by i) + 1'],
      ['a key', ['find(a, i)', 'find(a, i) + 1', 'min(i, 2)'], 'count(j by i) + 1'],
    ] as const) {
      const least = looks(place, '0')
      for (const e of known) expect(looks(place, e)).toBe(least)
      expect(looks(place, unknown)).toBe(least + 1)
    }
  } finally {
    first.mockRestore()
  }
})
