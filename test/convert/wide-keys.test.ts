/** Keys whose least and greatest are further apart than 31 bits tell: order and groups are those of the numbers, everywhere. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { conversionPlan, uploadResident } from '../../src/storage/engines/device/index.ts'
import { convertTensor } from '../../src/storage/entries/stored-parts.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { givenFor, matrix, written } from '../formats/user-formats.ts'
import { runs } from '../support/cases.ts'
import { arraysOf } from '../support/packaged-schedules.ts'
import { remapParts } from '../support/remap-parts.ts'
import { DEVICES, opened } from './devices.ts'

interface Key {
  readonly text: string
  readonly of: (x: number) => number
}

const HIGHEST = 2 ** 31 - 1
const keys = fc.constantFrom<Key>(
  { text: 'shift_left(x, 30)', of: (x) => x << 30 },
  { text: 'shift_left(x, 31)', of: (x) => x << 31 },
  { text: 'bit_xor(shift_left(x, 30), 1)', of: (x) => (x << 30) ^ 1 },
  { text: 'shift_left(x * 5 + 1, 29)', of: (x) => (x * 5 + 1) << 29 },
  { text: 'bit_or(shift_left(x, 31), x % 3)', of: (x) => (x << 31) | (x % 3) },
  {
    text: 'select(x % 2 == 0, 2000000000, -2000000000) + x',
    of: (x) => (x % 2 === 0 ? 2e9 : -2e9) + x,
  },
  {
    text: 'select(x % 3 == 0, -2147483647 - 1, 2147483647)',
    of: (x) => (x % 3 === 0 ? -(2 ** 31) : HIGHEST),
  },
  { text: '-2147483647 - x % 2', of: (x) => -HIGHEST - (x % 2) },
)

const tensors: fc.Arbitrary<CoordTensor> = fc
  .tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 5 }))
  .chain(([m, n]) =>
    fc.uniqueArray(fc.nat(m * n - 1), { maxLength: 12 }).map((ps) =>
      matrix(
        [m, n],
        ps.map((p, k) => [Math.floor(p / n), p % n, k + 1]),
      ),
    ),
  )
  .map((t) => ({ ...t, values: Float32Array.from(t.values!), dtype: 'f32' }))

const sorted = (key: string): string => `format f() over (i, j) {
  sort i by ${key} -> (place, row)
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (place[i], j)
  inverse (io, jo) -> (row[io], jo)
}`

const asked = (query: string): string => `format f() over (i, j) {
  axis g = dense_fixed(j + 9)
  axis io = sparse_variable(g, i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (${query}, i, j)
  inverse (g, io, jo) -> (io, jo)
}`

const of = ({ text }: Key, x: string): string => text.replace(/\bx\b/g, x)

/** How many different numbers of a group are below that of each entry (`below`), or there are. */
function different(
  of: readonly number[],
  by: readonly number[],
  among: (x: number, own: number) => boolean,
): number[] {
  return of.map((own, e) => new Set(of.filter((x, k) => by[k] === by[e] && among(x, own))).size)
}

describe('on the host', () => {
  test('coordinates are sorted by their keys', () => {
    fc.assert(
      fc.property(tensors, keys, (tensor, key) => {
        const [m] = tensor.shape
        const expected = Array.from({ length: m! }, (_, i) => i).sort(
          (a, b) => key.of(a) - key.of(b) || a - b,
        )
        const [part] = remapParts(written(sorted(of(key, 'i'))), tensor.coords, null, givenFor(tensor.shape))
        expect([...part!.tables.get('row')!]).toEqual(expected)
      }),
      { numRuns: runs(10) },
    )
  })

  test('keys are distinguished, and ranked in order', () => {
    fc.assert(
      fc.property(tensors, keys, (tensor, key) => {
        const numbers = Array.from(tensor.coords[0]!, key.of)
        const columns = Array.from(tensor.coords[1]!)
        const found = (query: string): number[] =>
          Array.from(
            remapParts(written(asked(query)), tensor.coords, null, givenFor(tensor.shape))[0]!.columns[0]!,
          )
        const x = of(key, 'i')
        expect(found(`rank(${x} by j)`)).toEqual(different(numbers, columns, (a, b) => a < b))
        expect(found(`rank(j by ${x})`)).toEqual(different(columns, numbers, (a, b) => a < b))
        expect(found(`count(j by ${x}) - 1`)).toEqual(different(columns, numbers, (a, b) => a !== b))
        const least = columns.map((_, e) => Math.min(...columns.filter((_, k) => numbers[k] === numbers[e])))
        expect(found(`least(j by ${x})`)).toEqual(least)
      }),
      { numRuns: runs(10) },
    )
  })
})

describe.each(DEVICES)('on $name', ({ kind, open }) => {
  const on = opened(open)
  test('arrays equal those of the host', async () => {
    const formats = fc
      .tuple(keys, fc.nat(5))
      .map(([key, n]) =>
        n < 2
          ? sorted(`${of(key, 'i')}${n === 0 ? '' : ' within 3'}`)
          : asked(
              [`rank(X by j)`, `rank(j by X)`, `count(j by X) - 1`, `least(j by X)`][n - 2]!.replace(
                'X',
                of(key, 'i'),
              ),
            ),
      )
    await fc.assert(
      fc.asyncProperty(tensors, formats, async (tensor, text) => {
        const given = givenFor(tensor.shape)
        const from = await uploadResident(on.device, tensor)
        const there = await conversionPlan(on.device, written(text)).run(from, given)
        expect(arraysOf(await there.download())).toEqual(
          arraysOf(convertTensor(tensor, written(text), given)),
        )
        there.free()
        from.free()
      }),
      { numRuns: runs(kind === 'webgpu' ? 2 : 10) },
    )
  })
})
