import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readMatrixMarket, type TextOptions } from '../../src/io/text/matrix-market.ts'
import { matrixMarketChunks } from '../../src/io/text/matrix-market-write.ts'
import { property } from '../support/property.ts'
import { bytesOf, collect, coordsArb, elements, pieces, problem, survives, valuesArb } from './support.ts'

const read = (text: string, options: TextOptions = {}) =>
  readMatrixMarket([bytesOf(text)], { name: 'a.mtx', ...options })
const fixture = (name: string) =>
  readMatrixMarket([readFileSync(new URL(`fixtures/${name}`, import.meta.url))])
const head = (kind: string) => `%%MatrixMarket matrix ${kind}\n`

describe('write ∘ read = id', () => {
  property([coordsArb(2, ['f64', 'f32', 'i32', 'u32', 'i8', 'u8']), fc.integer({ min: 1, max: 40 })])(
    'coordinates, in any cut of the stream',
    async (tensor, size) => {
      const bytes = await collect(matrixMarketChunks(tensor))
      expect(
        await readMatrixMarket(pieces(bytes, size), { dtype: tensor.dtype, maxBytes: bytes.length }),
      ).toEqual(tensor)
    },
  )
  property([
    fc
      .tuple(
        fc.nat(5),
        fc.nat(5),
        fc.constantFrom('f64' as const, 'f16' as const, 'bf16' as const, 'i32' as const),
      )
      .chain(([m, n, dtype]) =>
        valuesArb(dtype, m * n).map((values) => ({ kind: 'dense' as const, shape: [m, n], values, dtype })),
      ),
  ])('dense', async (tensor) => {
    const bytes = await collect(matrixMarketChunks(tensor))
    expect(await readMatrixMarket([bytes], { dtype: tensor.dtype, maxBytes: bytes.length })).toEqual(tensor)
  })
  test('infinities and NaN', async () => {
    const values = Float64Array.of(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0)
    const tensor = { kind: 'dense' as const, shape: [2, 2], values, dtype: 'f64' as const }
    expect(await readMatrixMarket(matrixMarketChunks(tensor))).toEqual(tensor)
  })
  test('unsupported values are rejected before anything is written', async () => {
    const cube = {
      kind: 'dense' as const,
      shape: [1, 1, 1],
      values: new Float32Array(1),
      dtype: 'f32' as const,
    }
    expect(await problem(() => matrixMarketChunks(cube))).toContain('io/rank')
  })
})

describe('files written by SciPy', () => {
  const dense = ['0,1=1.5', '0,5=-2', '2,0=4', '2,2=0.25', '3,4=8']
  test('coordinates', async () => {
    expect(elements(await fixture('real.mtx'))).toEqual(dense)
    expect(elements(await fixture('integer.mtx'))).toEqual(['0,1=1', '0,5=-2', '2,0=4', '3,4=8'])
    expect((await fixture('integer.mtx')).dtype).toBe('i32')
  })
  test('symmetric and skew-symmetric are expanded', async () => {
    expect(elements(await fixture('symmetric.mtx'))).toEqual([
      '0,1=1.5',
      '0,2=4',
      '1,0=1.5',
      '2,0=4',
      '2,2=0.5',
    ])
    expect(elements(await fixture('skew.mtx'))).toEqual(['0,1=1.5', '0,2=4', '1,0=-1.5', '2,0=-4'])
  })
  test('column-major arrays become row-major', async () => {
    const t = await fixture('dense.mtx')
    expect([...t.values!]).toEqual([
      0, 1.5, 0, 0, 0, -2, 0, 0, 0, 0, 0, 0, 4, 0, 0.25, 0, 0, 0, 0, 0, 0, 0, 8, 0,
    ])
  })
})

describe('forms', () => {
  test('CRLF, blank lines, comments, tabs, spaces, no last newline, capitals', async () => {
    const text =
      '%%MATRIXMARKET Matrix Coordinate REAL General\r\n% a\r\n\r\n 2\t3 2 \r\n%b\r\n\r\n1 1\t1e0\r\n \t\r\n2  3 -2 % end'
    expect(elements(await read(text))).toEqual(['0,0=1', '1,2=-2'])
  })
  test('packed array forms', async () => {
    expect([...(await read(`${head('array real symmetric')}2 2\n1\n2\n3\n`)).values!]).toEqual([1, 2, 2, 3])
    expect([...(await read(`${head('array integer skew-symmetric')}3 3\n1\n2\n3\n`)).values!]).toEqual([
      0, -1, -2, 1, 0, -3, 2, 3, 0,
    ])
  })
  test('an element type of choice', async () => {
    const t = await read(`${head('coordinate real general')}1 1 1\n1 1 2.5\n`, { dtype: 'f16' })
    expect(t).toMatchObject({ dtype: 'f16', values: Uint16Array.of(0x4100) })
    expect(
      (await read(`${head('coordinate integer general')}1 1 1\n1 1 9007199254740993\n`, { dtype: 'f64' }))
        .values![0],
    ).toBe(9007199254740992)
  })
})

describe('diagnostics name the line', () => {
  const coo = head('coordinate real general')
  const cases: Record<string, [text: string, message: string]> = {
    'no banner': [
      '1 1 1\n1 1 1\n',
      "io/banner: a.mtx:1: a Matrix Market file starts with a %%MatrixMarket line, this one with '1 1 1'",
    ],
    'wrong object': [
      '%%MatrixMarket vector coordinate real general\n',
      "io/banner: a.mtx:1: the object 'vector' is not supported, only 'matrix'",
    ],
    'wrong layout': [head('sparse real general'), "io/banner: a.mtx:1: unknown layout 'sparse'"],
    'wrong field': [head('coordinate float general'), "io/banner: a.mtx:1: unknown field 'float'"],
    'wrong symmetry': [head('coordinate real upper'), "io/banner: a.mtx:1: unknown symmetry 'upper'"],
    'no symmetry': [head('coordinate real'), "io/banner: a.mtx:1: unknown symmetry ''"],
    'extra word': [head('coordinate real general x'), "io/banner: a.mtx:1: 'x' after the symmetry"],
    complex: [
      head('coordinate complex general'),
      'io/unsupported: a.mtx:1: complex (and so hermitian) matrices are not supported: no element type is complex',
    ],
    hermitian: [
      head('coordinate real hermitian'),
      'io/unsupported: a.mtx:1: complex (and so hermitian) matrices are not supported: no element type is complex',
    ],
    'pattern array': [
      head('array pattern general'),
      'io/banner: a.mtx:1: an array has values: it cannot be a pattern',
    ],
    'skew pattern': [
      head('coordinate pattern skew-symmetric'),
      'io/banner: a.mtx:1: a pattern has no sign: it cannot be skew-symmetric',
    ],
    'no size line': [`${coo}% only\n`, 'io/size-line: a.mtx:2: the file ends before the size line'],
    'short size line': [
      `${coo}\n2 2\n`,
      'io/size-line: a.mtx:3: the size line of this coordinate file has 2 fields, not 3',
    ],
    'size not a number': [
      `${coo}2 x 1\n`,
      "io/size-line: a.mtx:2: the number of columns, 'x', is not a whole number",
    ],
    'negative size': [`${coo}-2 2 1\n`, 'io/size-line: a.mtx:2: the number of rows is negative: -2'],
    'size overflow': [
      `${coo}2 3000000000 1\n`,
      'io/size-line: a.mtx:2: the number of columns, 3000000000, does not fit 32-bit indices',
    ],
    'not square': [
      `${head('coordinate real symmetric')}2 3 1\n`,
      'io/size-line: a.mtx:2: a symmetric matrix is square, not 2 × 3',
    ],
    'too few': [`${coo}2 2 2\n1 1 1\n`, 'io/too-few-entries: a.mtx:3: the file ends after 1 of 2 entries'],
    'too many': [
      `${coo}2 2 1\n1 1 1\n2 2 2\n`,
      'io/too-many-entries: a.mtx:4: more entries than the 1 that the size line promises',
    ],
    'zero index': [`${coo}2 2 1\n0 1 1\n`, 'io/index-range: a.mtx:3: the row index 0 is out of range'],
    'row out of range': [`${coo}2 2 1\n3 1 1\n`, 'io/index-range: a.mtx:3: the row index 3 is out of range'],
    'column out of range': [
      `${coo}2 2 1\n\n1 99999999999999999999 1\n`,
      'io/index-range: a.mtx:4: the column index 99999999999999999999 is out of range',
    ],
    'fractional index': [`${coo}2 2 1\n1.5 1 1\n`, "io/not-a-number: a.mtx:3: '1.5' is not a row index"],
    'no value': [`${coo}2 2 1\n1 1\n`, 'io/missing-number: a.mtx:3: the line ends where a number should be'],
    'not a number': [`${coo}2 2 1\n1 1 one\n`, "io/not-a-number: a.mtx:3: 'one' is not a number"],
    'beyond f64': [`${coo}2 2 1\n1 1 -1e400\n`, 'io/value-range: a.mtx:3: the value -1e400 does not fit f64'],
    'beyond f64 in an array': [
      `${head('array integer general')}1 1\n1${'0'.repeat(400)}\n`,
      `io/value-range: a.mtx:3: the value 1${'0'.repeat(39)}… does not fit f64`,
    ],
    'not an integer': [
      `${head('coordinate integer general')}2 2 1\n1 1 1.5\n`,
      "io/not-a-number: a.mtx:3: '1.5' is not a whole number",
    ],
    'integer overflow': [
      `${head('coordinate integer general')}2 2 1\n1 1 2147483648\n`,
      'io/value-range: a.mtx:3: the value 2147483648 does not fit i32',
    ],
    'integer beyond 2^53': [
      `${head('coordinate integer general')}2 2 1\n1 1 -9007199254740993\n`,
      'io/value-range: a.mtx:3: the value -9007199254740993 does not fit i32',
    ],
    'text behind': [`${coo}2 2 1\n1 1 1 7\n`, "io/extra-text: a.mtx:3: unexpected '7' after the entry"],
    'value in a pattern': [
      `${head('coordinate pattern general')}2 2 1\n1 1 1\n`,
      "io/extra-text: a.mtx:3: unexpected '1' after the entry",
    ],
    'skew diagonal': [
      `${head('coordinate real skew-symmetric')}2 2 1\n1 1 1\n`,
      'io/symmetry: a.mtx:3: the diagonal of a skew-symmetric matrix is zero and not stored, but (1, 1) is',
    ],
    'both triangles': [
      `${head('coordinate real symmetric')}2 2 2\n2 1 1\n1 2 1\n`,
      'io/symmetry: a.mtx:4: (1, 2) is in the other triangle than the entries before it',
    ],
    'array too many': [
      `${head('array real general')}1 1\n1\n2\n`,
      'io/too-many-entries: a.mtx:4: more entries than the 1 that the size line promises',
    ],
    'array too few': [
      `${head('array real general')}1 2\n1\n`,
      'io/too-few-entries: a.mtx:3: the file ends after 1 of 2 entries',
    ],
    empty: ['', 'io/empty: a.mtx:0: the file is empty'],
  }
  test.each(Object.entries(cases))('%s', async (_, [text, message]) => {
    expect(await problem(() => read(text))).toBe(message)
  })
  test('for any split of the stream', async () => {
    const text = `${coo}% a\n\n3 3 4\n1 1 1\n%\n2 2 2\n\n3 x 3\n`
    for (let size = 1; size <= text.length; size++)
      expect(await problem(() => readMatrixMarket(pieces(bytesOf(text), size)))).toBe(
        "io/not-a-number: matrix:9: 'x' is not a column index",
      )
  })
  test('an impossible size line is rejected before allocation', async () => {
    const text = `${coo}2147483647 2147483647 2147483647\n1 1 1\n`
    expect(await problem(() => read(text, { maxBytes: text.length }))).toContain(
      'io/too-few-entries: a.mtx:2',
    )
  })
  test('binary files are not collected whole', async () => {
    const noise = new Uint8Array(3 << 20).fill(7)
    expect(await problem(() => readMatrixMarket(pieces(noise, 65536)))).toContain('io/line-too-long')
  })
})

test('every prefix and every changed byte: a tensor or a diagnostic', async () => {
  for (const kind of ['coordinate real symmetric', 'array integer general', 'coordinate pattern general']) {
    const entries = kind.startsWith('array')
      ? '3 3\n1\n2\n-3\n4\n5\n6\n7\n8\n9\n'
      : '3 3 2\n2 1 1.5e1\n3 3 -2\n'
    const bytes = bytesOf(head(kind) + (kind.includes('pattern') ? '3 3 2\n2 1\n3 3\n' : entries))
    for (let n = 0; n < bytes.length; n++) {
      const whole = await survives(() => readMatrixMarket([bytes.subarray(0, n)]))
      // Only the last newline may be missing, or the tail of the last number.
      if (whole) expect(n).toBeGreaterThan(bytes.length - 4)
      for (const value of [0, 10, 32, 45, 57, 255]) {
        const changed = bytes.slice()
        changed[n] = value
        await survives(() => readMatrixMarket([changed], { maxBytes: changed.length }))
      }
    }
  }
})
