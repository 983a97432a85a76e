/** Where an element of a list or an object is wrong, it is the element that is called so; and what is no list is no empty one. */
import { describe, expect, test } from 'vitest'
import { coords, load, packIndices, stored, unpackIndices } from '../../src/node.ts'
import { refusal } from '../support/refusal.ts'

const program = await load(`import "sparsetile/kernels/formats.spt"
format halves over (i, j) {
  part near = csr where (j <= i)
  part far = csr
}`)
const A = coords(
  [4, 6],
  [
    [0, 3],
    [2, 5],
  ],
  Float32Array.of(1, 2),
)
// biome-ignore lint/suspicious/noExplicitAny: calls that TypeScript would refuse are what is tested
type Loose = any
const said = (f: () => unknown): string => {
  const { code, message, expected } = refusal(f)
  return `${code}: ${message} {${expected}}`
}

describe('ready-made parts', () => {
  const panels = program.format('sorted_panels(2, 2)')
  const [part] = panels.convert(A).parts as readonly Loose[]
  const halves = program.format('halves')
  const parts = halves.convert(A).parts as readonly Loose[]
  test.each<[string, () => unknown, string]>([
    [
      'no list',
      () => panels.fromParts([4, 6], part),
      'the parts cannot be an object {1 part: sorted_panels(2, 2)}',
    ],
    [
      'a part',
      () => panels.fromParts([4, 6], [null as Loose]),
      'part 0 cannot be null {its tensor, and its tables by name: { tensor, tables }}',
    ],
    [
      'a part with a name',
      () => halves.fromParts([4, 6], [parts[0], 3 as Loose]),
      'part far cannot be 3 {its tensor, and its tables by name: { tensor, tables }}',
    ],
    [
      'too many',
      () => panels.fromParts([4, 6], [part, part]),
      'the number of parts cannot be 2 {1 part: sorted_panels(2, 2)}',
    ],
    [
      'too few',
      () => halves.fromParts([4, 6], [parts[0]]),
      'the number of parts cannot be 1 {2 parts: near, far}',
    ],
    [
      'tables',
      () => panels.fromParts([4, 6], [{ ...part, tables: [] }]),
      'the tables of part 0 cannot be an empty list {an Int32Array by name}',
    ],
    [
      'a table',
      () => panels.fromParts([4, 6], [{ ...part, tables: { ...part.tables, row: [...part.tables.row] } }]),
      'row of part 0 cannot be a list {an Int32Array}',
    ],
    [
      'a list',
      () => panels.fromParts([4, 6], [{ ...part, tables: { ...part.tables, jo: null } }]),
      'jo of part 0 cannot be null {an Int32Array}',
    ],
    [
      'arrays of an axis',
      () =>
        program.format('csr').fromParts(
          [4, 6],
          [
            {
              tensor: {
                kind: 'stored',
                shape: [4, 6],
                dtype: 'f32',
                values: null,
                arrays: { jo: 3 },
              } as Loose,
              tables: {},
            },
          ],
        ),
      'the arrays of axis jo of part 0 cannot be 3 {{ indptr, indices }, or those that the axis has}',
    ],
  ])('%s', (_, f, message) => expect(said(f)).toBe(`api/argument: ${message}`))

  test.each(['csr', 'bsr(2)', 'panels(2, 2)', 'halves'])('%s of a tensor of other dimensions', (name) => {
    const format = program.format(name)
    const own = format.convert(A).parts
    for (const [shape, count] of [
      [[4, 6, 9], '3 dimensions'],
      [[4], '1 dimension'],
      [[], '0 dimensions'],
    ] as const)
      expect(said(() => format.fromParts(shape, own))).toBe(
        `bind/shape: a tensor of ${count} cannot be converted to ${format.text}, which is over 2 {a tensor over i, j}`,
      )
  })
})

test('arrays by axis, coordinates by dimension', () => {
  expect(said(() => stored([4, 6], { j: null } as Loose))).toBe(
    'api/argument: the arrays of axis j cannot be null {{ indptr, indices }, or those that the axis has}',
  )
  const format = program.format('csr')
  expect(said(() => format.convert({ ...A, coords: [A.coords[0], [2, 5]] } as Loose))).toBe(
    'api/argument: the coordinates of the format in dimension 1 cannot be a list {an Int32Array}',
  )
})

test.each<[string, () => unknown, string]>([
  ...[null, undefined, 5, 'ab', {}, new Set([1])].map((x): [string, () => unknown, string] => [
    String(x),
    () => packIndices(x as Loose, 2),
    'the indices cannot be',
  ]),
  ...[null, undefined, 5, 'ab', {}, [1], new Set([1])].map((x): [string, () => unknown, string] => [
    String(x),
    () => unpackIndices(x as Loose, 2, 1),
    'the words cannot be',
  ]),
  ['a fraction', () => packIndices([0.5], 2), 'the index at position 0 cannot be 0.5'],
  ['a count', () => unpackIndices(Int32Array.of(1), 2, 17), 'the number of indices cannot be 17'],
])('packed indices: %s', (_, f, message) => {
  expect(refusal(f)).toMatchObject({ code: 'api/argument' })
  expect(refusal(f).message.startsWith(message)).toBe(true)
})

test('indices of typed arrays and lists are packed alike', () => {
  const packed = packIndices([3, 0, 2], 2)
  for (const list of [Int32Array.of(3, 0, 2), Uint8Array.of(3, 0, 2), Float64Array.of(3, 0, 2)])
    expect(packIndices(list, 2)).toEqual(packed)
  expect([...unpackIndices(packed, 2, 3)]).toEqual([3, 0, 2])
})
