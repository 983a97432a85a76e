/** What a format asks of the tensor, in refusals: by its text, and coordinates by those of the tensor alone. */
import { expect, test } from 'vitest'
import { convertTensor } from '../../src/storage/entries/stored-parts.ts'
import { refusal } from '../support/refusal.ts'
import { givenFor, matrix, written } from './user-formats.ts'

const A = matrix(
  [4, 5],
  [
    [0, 0, 1],
    [0, 3, 2],
    [1, 2, 3],
    [1, 4, 1],
  ],
)
const said = (text: string): string =>
  refusal(() => convertTensor(A, written(text), givenFor(A.shape))).message

const along = (map: string, extent: string, more = '') => `format o over (i, j) {${more}
  axis p = dense_fixed(${extent})
  axis io = sparse_variable(p, i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (${map}, i, j)
  inverse (p, io, jo) -> (io, jo)
}`

test.each([
  [
    'a rank',
    along('rank(j by i)', '1'),
    '(row, col) = (0, 3), where rank(col by row) is 1, the coordinate on p is 1',
  ],
  [
    'a rank of blocks',
    along('rank(j / 2 by i / 2)', '2'),
    '(row, col) = (1, 4), where rank(col / 2 by row / 2) is 2, the coordinate on p is 2',
  ],
  [
    'a count',
    along('count(j by i)', '2'),
    '(row, col) = (0, 0), where count(col by row) is 2, the coordinate on p is 2',
  ],
  [
    'two',
    along('count(j by i) - rank(j by i)', '2'),
    '(row, col) = (0, 0), where count(col by row) is 2 and rank(col by row) is 0, the coordinate on p is 2',
  ],
  [
    'one of another',
    along('count(i by rank(j by i))', '2'),
    '(row, col) = (0, 0), where count(row by rank(col by row)) is 2, the coordinate on p is 2',
  ],
  ['of all', along('count(j)', '2'), '(row, col) = (0, 0), where count(col) is 4, the coordinate on p is 4'],
  [
    'least',
    along('least(j + 3 by i)', '5'),
    '(row, col) = (1, 2), where least(col + 3 by row) is 5, the coordinate on p is 5',
  ],
  [
    'a place',
    along('place[i] + 3', '6', '\n  sort i by -i -> (place, at)'),
    '(row, col) = (0, 0), where place[row] is 3, the coordinate on p is 6',
  ],
])('%s', (_, text, message) => expect(said(text)).toBe(`at ${message}`))

test('a place in a list', () => {
  const text = `format o over (i, j) {
  axis io = dense_fixed(ceildiv(i, 2))
  axis go = dense_variable(io, j)
  list jo = sparse_fixed(go, j, 2)
  axis ii = dense_fixed(go, 2)
  axis q = dense_fixed(ii, jo)
  map (i, j) -> (i / 2, rank(j by i / 2) / 2, j, i % 2, position(jo) + 1)
  inverse (io, go, ii, q) -> (io * 2 + ii, jo[q])
}`
  expect(said(text)).toBe('at (row, col) = (1, 2), where position(jo) is 1, the coordinate on q is 2')
  expect(said(text.replace('position(jo) + 1', '1 - position(jo)'))).toMatch(
    /^the inverse of o does not undo the map: \(row, col\) = \(0, 0\) goes to \(io, go, ii, q\) = /,
  )
})

test('values beyond 32 bits', () => {
  expect(said(along('count(j by i) * 1500000000', '2'))).toBe(
    'count(col by row) * 1500000000 reaches 3000000000',
  )
})
