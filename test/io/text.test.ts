import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toCoords } from '../../src/io/sparse-matrix.ts'
import { type EdgeOptions, readEdges } from '../../src/io/text/edges.ts'
import { readMatrixMarket } from '../../src/io/text/matrix-market.ts'
import { readSmtx } from '../../src/io/text/smtx.ts'
import { sample } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { bytesOf, coordsArb, elements, pieces, problem, sameBytes, survives } from './support.ts'

const edges = (text: string, options: EdgeOptions = {}) =>
  readEdges([bytesOf(text)], { name: 'a.el', ...options })
const smtx = (text: string, maxBytes?: number) => readSmtx([bytesOf(text)], { name: 'a.smtx', maxBytes })

describe('edge lists', () => {
  const separators = fc.constantFrom(' ', '\t', ',', ', ', ' \t ')
  const ends = fc.constantFrom('\n', '\r\n', '\n\n', '\n# a comment\n', ' \n% another\n')
  property([coordsArb(2, ['f64', 'i32']), separators, ends, fc.boolean(), fc.integer({ min: 1, max: 50 })])(
    'any separator, line end and cut',
    async (tensor, separator, end, header, size) => {
      const { coords, values, shape, dtype } = tensor
      const lines = Array.from(coords[0]!, (r, e) =>
        [r, coords[1]![e], ...(values ? [Object.is(values[e], -0) ? '-0' : values[e]] : [])].join(separator),
      )
      const table = header && lines.length > 0
      const text = `${table ? `source${separator}"the target"${end}` : ''}${lines.map((l) => l + end).join('')}`
      const read = await readEdges(pieces(bytesOf(text), size), { shape, dtype, table })
      // Without an edge nothing tells whether there would be weights.
      expect(read).toEqual(lines.length > 0 ? tensor : { ...tensor, values: null })
      const n = Math.max(-1, ...coords[0]!, ...coords[1]!) + 1
      expect((await edges(text, { dtype, table })).shape).toEqual([n, n])
    },
  )
  test('weights are f64 by default, patterns f32', async () => {
    expect(await edges('0 1 0.1\n')).toMatchObject({ dtype: 'f64', values: Float64Array.of(0.1) })
    expect(await edges('0 1\n')).toMatchObject({ dtype: 'f32', values: null })
    expect(await edges('0 1 3', { dtype: 'i8' })).toMatchObject({ dtype: 'i8', values: Int8Array.of(3) })
  })
  test('a header is the first line of a table; a byte order mark is not', async () => {
    const one = { shape: [2, 2], coords: [Int32Array.of(0), Int32Array.of(1)] }
    for (const text of ['a,b\n0,1', '# c\n\n"a b"\tb\n0\t1', 'é,_\n0,1', '\ufeff0,1', '\ufeffa,b\n0,1'])
      expect(await edges(text, { table: true }), text).toMatchObject(one)
    expect(await edges('\ufeff0 1')).toMatchObject(one)
    const refused = await edges('a b\n0 1').catch((e) => e.diagnostics[0].hint)
    expect(refused).toContain('headers are for .csv and .tsv')
    for (const text of ['"2" 3', "0 1\n'2' 3"])
      await expect(edges(text)).rejects.toMatchObject({
        diagnostics: [{ hint: 'write numbers without quotes' }],
      })
  })
  test('columns grow past their first block', async () => {
    const count = 200_000
    const text = Array.from({ length: count }, (_, e) => `${e} ${(e * 7) % count}`).join('\n')
    const t = await edges(text)
    expect(
      sameBytes(
        t.coords[0]!,
        Int32Array.from({ length: count }, (_, e) => e),
      ),
    ).toBe(true)
    expect(
      sameBytes(
        t.coords[1]!,
        Int32Array.from({ length: count }, (_, e) => (e * 7) % count),
      ),
    ).toBe(true)
  })
  test.each([
    ['0 1\n1\n', {}, 'io/missing-number: a.el:2: the line has no target node'],
    ['0 1\n\n1 x\n', {}, "io/not-a-number: a.el:3: 'x' is not a node's number"],
    ['a b\nc d\n', {}, "io/not-a-number: a.el:1: 'a' is not a node's number"],
    ['a b\n', {}, "io/not-a-number: a.el:1: 'a' is not a node's number"],
    ['source target\n0 1\n', {}, "io/not-a-number: a.el:1: 'source' is not a node's number"],
    ['O 1\n2 3\n', {}, "io/not-a-number: a.el:1: 'O' is not a node's number"],
    ['O,1\n2,3\n', { table: true }, "io/not-a-number: a.el:1: 'O' is not a node's number"],
    ['0,1,w\n2,3,4\n', { table: true }, "io/not-a-number: a.el:1: 'w' is not a number"],
    ['"0","1"\n2,3\n', { table: true }, `io/not-a-number: a.el:1: '"0"' is not a node's number`],
    ['a,b\n"0","1"\n', { table: true }, `io/not-a-number: a.el:2: '"0"' is not a node's number`],
    ['a,inf\n0,1\n', { table: true }, "io/not-a-number: a.el:1: 'a' is not a node's number"],
    [',a,b\n0,1,2\n', { table: true }, 'io/missing-number: a.el:1: the line has no source node'],
    ['a,b\nc,d\n', { table: true }, "io/not-a-number: a.el:2: 'c' is not a node's number"],
    [
      '# c\na,b\n# d\n',
      { table: true },
      'io/no-edges: a.el:2: this line has no numbers, and no edge follows',
    ],
    ['0.5 1\n', {}, "io/not-a-number: a.el:1: '0.5' is not a node's number"],
    ['0 1\n-1 0\n', {}, 'io/index-range: a.el:2: the source node -1 is out of range'],
    ['0 3\n', { shape: [3, 3] }, 'io/index-range: a.el:1: the target node 3 is out of range'],
    ['0 2147483647\n', {}, 'io/index-range: a.el:1: the target node 2147483647 is out of range'],
    ['0 1\n0 1 2\n', {}, 'io/columns: a.el:2: this line has more than the 2 columns before it'],
    ['0 1 2\n0 1\n', {}, 'io/columns: a.el:2: this line has fewer than the 3 columns before it'],
    ['0 1 2 3\n', {}, "io/columns: a.el:1: unexpected '3'"],
    ['0 1 x\n', {}, "io/not-a-number: a.el:1: 'x' is not a number"],
    ['0 1 1d999\n', {}, 'io/value-range: a.el:1: the value 1d999 does not fit f64'],
    ['0,1,\n', {}, 'io/missing-number: a.el:1: the line ends after a comma'],
    [
      '0 1 9007199254740993\n',
      { dtype: 'i32' },
      'io/value-range: a.el:1: the value 9007199254740993 does not fit i32',
    ],
    ['0 1 1.5\n', { dtype: 'i32' }, 'io/value-range: a.el:1: the value 1.5 does not fit i32'],
    ['0 1\n', { shape: [3] }, 'io/shape: a.el: an edge list cannot have the shape 3'],
  ] satisfies [string, EdgeOptions, string][])('%j is rejected', async (text, options, message) => {
    expect(await problem(() => edges(text, options))).toBe(message)
  })
})

describe('smtx', () => {
  const csrArb = fc.tuple(fc.array(fc.array(fc.nat(6), { maxLength: 5 }), { maxLength: 6 }), fc.nat(3))
  property([csrArb, fc.integer({ min: 1, max: 40 })])(
    'reads written files, in any split',
    async ([rows, more], size) => {
      const indptr = [0]
      for (const r of rows) indptr.push(indptr.at(-1)! + r.length)
      const indices = rows.flat()
      const text = `${rows.length}, ${7 + more}, ${indices.length}\n${indptr.join(' ')} \n${indices.join(' ')} \n`
      const bytes = bytesOf(text)
      const matrix = await readSmtx(pieces(bytes, size), { maxBytes: bytes.length })
      expect(matrix).toEqual({
        kind: 'csr',
        shape: [rows.length, 7 + more],
        indptr: Int32Array.from(indptr),
        indices: Int32Array.from(indices),
        values: null,
        dtype: 'f32',
      })
      expect(elements(toCoords(matrix))).toEqual(rows.flatMap((r, i) => r.map((j) => `${i},${j}=1`)).sort())
    },
  )
  test.each([
    ['2, 3\n', 'io/size-line: a.smtx:2: the file ends within its sizes'],
    ['2, x, 1\n', "io/not-a-number: a.smtx:1: 'x' is not a whole number"],
    ['2, -3, 1\n', 'io/index-range: a.smtx:1: -3 is out of range'],
    ['2, 3000000000, 1\n', 'io/index-range: a.smtx:1: 3000000000 is out of range'],
    ['2, 3, 1\n0 1 1\n', 'io/too-few-entries: a.smtx:3: the file ends after 3 of 4 offsets and indices'],
    ['2, 3, 1\n0 1 1\n2 1\n', 'io/too-many-entries: a.smtx:3: more numbers than 3 offsets and 1 indices'],
    ['2, 3, 1\n0 1 1\n3\n', 'io/index-range: a.smtx: the index 3 (element 0 of indices) is out of range'],
    ['2, 3, 1\n0 1 0\n2\n', 'io/indptr: a.smtx: indptr falls from 1 to 0 at 2'],
    ['2, 3, 2\n0 1 1\n2 1\n', 'io/indptr: a.smtx: indptr ends with 1, but there are 2 indices'],
  ])('%j is rejected', async (text, message) => {
    expect(await problem(() => smtx(text))).toBe(message)
  })
  test('impossible sizes are rejected before allocation', async () => {
    expect(await problem(() => smtx('2147483647, 3, 2147483647\n0 1', 30))).toContain(
      'the file is too short to hold them',
    )
  })
})

test('every prefix and every changed byte: a tensor or a diagnostic', async () => {
  const readers = [
    ['0,1,1.5\n2,0,-1\n', (b: Uint8Array) => readEdges([b])],
    ['2, 3, 2\n0 1 2\n2 0\n', (b: Uint8Array) => readSmtx([b], { maxBytes: b.length })],
  ] as const
  for (const [text, read] of readers) {
    const bytes = bytesOf(text)
    for (let n = 0; n < bytes.length; n++) {
      await survives(() => read(bytes.subarray(0, n)))
      for (const value of [0, 9, 10, 32, 35, 44, 45, 46, 48, 57, 101, 255]) {
        const changed = bytes.slice()
        changed[n] = value
        await survives(() => read(changed))
      }
    }
  }
})

describe('text without data', () => {
  /** 64 KiB at a time, of one line again and again. */
  function* again(first: string, line: string, bytes: number, last: string): Generator<Uint8Array> {
    yield bytesOf(first)
    const block = bytesOf(line.repeat(65536 / line.length))
    for (let n = 0; n < bytes; n += block.length) yield block
    yield bytesOf(last)
  }
  const banner = '%%MatrixMarket matrix coordinate real general\n'
  const cases: readonly (readonly [string, (bytes: number) => Promise<unknown>])[] = [
    ['before sizes', (n) => readMatrixMarket(again(banner, '%\n', n, '1 1 1\n1 1 2\n'))],
    ['blank lines before sizes', (n) => readMatrixMarket(again(banner, ' \n', n, '1 1 1\n1 1 2\n'))],
    ['before entries', (n) => readMatrixMarket(again(`${banner}1 1 1\n`, '%a b\n%%\n', n, '1 1 2\n'))],
    ['behind entries', (n) => readMatrixMarket(again(`${banner}1 1 1\n1 1 2\n`, '\n', n, ''))],
    ['before edges', (n) => readEdges(again('', '#\n', n, '0 0 1\n'))],
    ['between edges', (n) => readEdges(again('0 0\n', ' \t%\n', n, '0 0\n'))],
    ['between numbers', (n) => readSmtx(again('1, 1, 0\n', ', \n ', n, '0 0\n'))],
  ]
  test.each(sample(cases, cases.length))('%s', async (_, read) => {
    expect(await problem(() => read(2 ** 24 + 2 ** 17))).toContain('io/comments-too-long')
    await read(2 ** 21)
  })
  test('a line in chunks of a few bytes', async () => {
    const line = bytesOf(`${banner.trim()}\n%${'x'.repeat(2 ** 20 - 2)}\n1 1 0\n`)
    await readMatrixMarket(pieces(line, 8))
    await expect(readMatrixMarket(pieces(bytesOf(`${banner}%${'x'.repeat(2 ** 20)}\n`), 8))).rejects.toThrow(
      'io/line-too-long',
    )
  })
})
