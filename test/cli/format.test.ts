/** `spt format`: what it prints, writes, draws and refuses. */
import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { npyChunks, npzArrays, npzChunks } from '../../src/io/numpy/npz-write.ts'
import { wellFormed } from '../support/xml.ts'
import { Folder, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

/** 4 × 6; rows of 3, 1, 0 and 2. */
const matrix = folder.file(
  'a.mtx',
  `%%MatrixMarket matrix coordinate real general
4 6 6
1 1 1
1 2 2
1 6 3
2 1 4
4 3 5
4 4 6
`,
)
const bytes = (chunks: Iterable<Uint8Array>): Uint8Array => Buffer.concat([...chunks])
const list = (name: string, ...xs: number[]): string =>
  folder.file(name, bytes(npyChunks(Int32Array.from(xs), [xs.length], 'i32')))
const rows = list('rows.npy', 0, 2, 4)
const cols = list('cols.npy', 0, 2, 4, 6)

/** The report without the time it took. */
const format = async (...argv: string[]): Promise<string> => {
  const { code, out, err } = await spt(['format', ...argv])
  expect([code, err.replace(/wrote .*\n/g, '')]).toEqual([0, ''])
  return out.replace(/^(build +)[\d.]+ ms$/m, '$1N ms')
}
const refused = async (...argv: string[]): Promise<string> => {
  const { code, out, err } = await spt(['format', ...argv])
  expect([code, out]).toEqual([1, ''])
  return folder.plain(err)
}

const LENGTHS = `nonzeros in  number  empty  min  mean  median  max
rows              4      1    0  1.50     1.5    3
columns           6      1    0  1.00       1    2

nonzeros  rows
       0     1  ########################################
       1     1  ########################################
       2     1  ########################################
   3 … 4     1  ########################################
`

test('a tensor with a fill value is shown, and the note says where the value belongs', async () => {
  const values = {
    kind: 'coords',
    shape: [2, 3],
    coords: [Int32Array.of(0, 1), Int32Array.of(2, 0)],
    fill: 7,
  } as const
  const path = folder.file(
    'filled.npz',
    bytes(npzChunks(npzArrays({ ...values, values: Float64Array.of(1, 2), dtype: 'f64' }))),
  )
  for (const as of [[], ['--as', 'csr']]) {
    const { code, out, err } = await spt(['format', path, ...as])
    expect([code, err]).toEqual([
      0,
      'note: elements that filled.npz does not store are 7: bind the tensor to a buffer declared with fill 7\n',
    ])
    expect(out).toMatch(/2 × 3/)
  }
})

test('a mistake in another format of a file is shown at its place', async () => {
  const own = `format mine over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format round over (i, j) {
  part round where (i < j)
  part mine
}
`
  const file = folder.file('round.spt', own)
  expect(await refused(matrix, '--from', file, '--as', 'mine')).toContain(
    `error[check/format-cycle]: format round is made of itself\n --> ${folder.plain(file)}:8:8\n`,
  )
})

describe('prints', () => {
  test('a tensor by itself', async () => {
    expect(await format(matrix)).toBe(`tensor           a.mtx: 4 × 6, f64
nonzeros         6 (25.0 % of all elements)
compressed rows  92 bytes

${LENGTHS}`)
  })

  test('a tensor in parts', async () => {
    expect(await format(`A=${matrix}`, '--as', 'hyb(1, 1)')).toBe(`tensor    A: 4 × 6, f64
nonzeros  6 (25.0 % of all elements)
format    hyb(1, 1)

part   format       rows  nonzeros  slots  padding       index arrays    values       both
w1     rows_ell(1)     2         2      2        0  0 %      24 bytes  16 bytes   40 bytes
w2     rows_ell(2)     2         4      4        0  0 %      32 bytes  32 bytes   64 bytes
total                            6      6        0  0 %      56 bytes  48 bytes  104 bytes

compressed rows  92 bytes; this format takes 1.13 times as much
build            N ms

${LENGTHS}
split                               parts are disjoint  parts cover the tensor
bucket i by length into 1, 2 split  by construction     by construction

format       map and inverse agree  coordinates are in range
rows_ell(1)  proved                 proved
rows_ell(2)  proved                 proved
`)
  })

  test('one part, its measured width and its padding', async () => {
    const out = await format(matrix, '--as', 'ell')
    expect(out).toContain(`
part  format       rows  nonzeros  slots  padding          index arrays    values       both
-     ell (w = 3)     3         6     12        6  50.0 %      48 bytes  96 bytes  144 bytes
`)
    expect(out).not.toContain('total')
  })

  test('lists by name; formats of a file, which hide those of the package', async () => {
    expect(await format(matrix, `rows=${rows}`, `cols=${cols}`, '--as', 'vbr(rows, cols)')).toContain(
      'vbr(rows, cols)',
    )
    const mine = folder.file(
      'mine.spt',
      `format ell over (i, j) {
  axis io = dense_fixed(i)
  axis jo = dense_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`,
    )
    const out = await format(matrix, '--as', 'ell', '--from', mine)
    expect(out).toMatch(/^- +ell +3 +6 +11 +5 /m)
  })

  test('coordinates of an archive', async () => {
    const i32 = (...xs: number[]) => ({
      values: Int32Array.from(xs),
      shape: [xs.length],
      dtype: 'i32' as const,
    })
    const path = folder.file('t.npz', bytes(npzChunks({ r: i32(0, 1, 1), s: i32(0, 0, 2), t: i32(3, 1, 0) })))
    const out = await format(`T=${path}#r,s,t`, '--as', 'relation_buckets(1)')
    expect(out).toContain('tensor    T: 2 × 3 × 4, f32\nnonzeros  3 ')
    expect(out).toContain('dimension r       2 ')
  })

  test('a condition that only the data can check', async () => {
    const out = await format(matrix, '--as', 'csr where (value > 3.5) + csr where (value * 2 < 7)')
    expect(out).toMatch(/^csr \+ csr .* checked$/m)
  })
})

describe('writes', () => {
  test('the same as data', async () => {
    const path = folder.at('out.json')
    await format(`A=${matrix}`, '--as', 'hyb(2, 1)', '--json', path)
    const data = JSON.parse(readFileSync(path, 'utf8'))
    expect(data).toMatchObject({ tensor: 'A', over: ['i', 'j'], report: { stored: 6, compressedBytes: 92 } })
    const { parts } = data.report as { parts: { label: string; stored: number; rows: number }[] }
    expect(parts.map((p) => [p.label, p.stored])).toEqual([
      ['p0_w1', 2],
      ['p0_w2', 2],
      ['p1_w1', 2],
      ['p1_w2', 0],
    ])
    expect(data.provenance.parts).toHaveLength(4)
    expect(data.build).toBeGreaterThanOrEqual(0)
  })

  test('a picture', async () => {
    const path = folder.at('out.svg')
    const { err } = await spt([
      'format',
      `A=${matrix}`,
      '--as',
      'bsr(2) where (density(2) > 0.5) + csr',
      '--svg',
      path,
    ])
    expect(folder.plain(err)).toBe('wrote FOLDER/out.svg\n')
    const svg = readFileSync(path, 'utf8')
    expect(wellFormed(svg)[0]).toBe('svg')
    expect(svg).toContain('A as bsr(2) where (density(2) &gt; 0.5) + csr')
    expect(svg).toContain('bsr: bsr(2), 3 nonzeros')
    expect(svg).toContain('csr, 3 nonzeros')
    await format(matrix, '--svg', path)
    expect(readFileSync(path, 'utf8')).toContain('<title>a.mtx</title>')
  })
})

describe('rejects', () => {
  test('missing files', async () => {
    expect(await refused(folder.at('b.mtx'))).toContain(
      "error[io/not-found]: there is no file 'FOLDER/b.mtx'",
    )
    expect(await refused(matrix, '--as', 'csr', '--from', folder.at('b.spt'))).toContain(
      'error[io/not-found]',
    )
    expect(await refused(matrix, '--as', 'csr', '--svg', folder.at('no/a.svg'))).toContain(
      'error[io/not-found]',
    )
    expect(await refused(matrix, '--json', folder.path)).toContain('error[io/is-folder]')
  })

  test('unknown formats, with similar names', async () => {
    expect(await refused(matrix, '--as', 'hyd')).toMatch(/api\/unknown-format[\s\S]*did you mean: `hyb`/)
    expect(await refused(matrix, '--as', 'bst(2) + csr')).toMatch(
      /check\/unknown-format[\s\S]*did you mean: `bsr`/,
    )
  })

  test('formats of files, which a command line has no import for', async () => {
    const tiles = 'kernels/tile-wise.spt'
    for (const from of [[], ['--from', 'kernels/formats.spt']])
      for (const as of ['tile_wise', 'tile_wise(2, 2)'])
        expect(await refused(matrix, '--as', as, ...from)).toMatch(
          /hint: formats of a file: --from FILE\.spt, also of the package \(--from sparsetile\/kernels\/NAME\.spt\)$/m,
        )
    expect(await format(matrix, '--as', 'tile_wise(2, 2)', '--from', tiles)).toContain('tile_wise')
  })

  test('wrong arguments and sources, with their location', async () => {
    expect(await refused(matrix, '--as', 'bsr()')).toContain('1 | bsr()')
    expect(await refused(matrix, '--as', 'hyb(2, 1')).toContain('error[parse/')
    expect(await refused(matrix, '--as', 'bsr(0)')).toContain('error[')
    expect(await refused(matrix, '--as', 'relation_rows(2)')).toContain('error[bind/shape]')
  })

  test('formats that miss or repeat elements, with a coordinate', async () => {
    expect(await refused(matrix, '--as', 'band(0, 0)')).toMatch(/error\[format\/leak\].*\(i, j\) = \(0, 1\)/)
    expect(
      await refused(matrix, '--as', 'csr where (count(j by i) > 0) + csr where (count(j by i) > 2)'),
    ).toMatch(/error\[format\/overlap\].*\(i, j\) = \(0, 0\)/)
  })

  test('lists that are missing, unknown or wrong', async () => {
    expect(await refused(matrix, '--as', 'vbr(rows, cols)')).toContain('error[bind/missing-list]')
    expect(await refused(matrix, `row=${rows}`, '--as', 'vbr(rows, cols)')).toMatch(
      /error\[format\/unknown-data\][\s\S]*did you mean: `rows`/,
    )
    expect(await refused(matrix, `rows=${cols}`, `cols=${cols}`, '--as', 'vbr(rows, cols)')).toContain(
      'error[bind/list]',
    )
    expect(await refused(matrix, '--as', 'csr', '--from', folder.file('bad.spt', 'format x {'))).toContain(
      'bad.spt:1',
    )
  })

  test('wrong usage', async () => {
    const misused = async (...argv: string[]): Promise<string> => {
      const { code, out, err } = await spt(['format', ...argv])
      expect([code, out]).toEqual([2, ''])
      return folder.plain(err)
    }
    expect(await misused()).toContain('a file is missing')
    expect(await misused(matrix, rows, '--as', 'csr')).toContain('no place for FOLDER/rows.npy')
    expect(await misused(matrix, `rows=${rows}`)).toContain('choose a format with --as')
    expect(await misused(matrix, `rows=${rows}`, `rows=${rows}`, '--as', 'csr')).toContain(
      'rows is given twice',
    )
  })
})

test('help', async () => {
  const { code, out } = await spt(['help', 'format'])
  expect(code).toBe(0)
  expect(out).toContain('Usage: spt format [NAME=]FILE [LIST=FILE…] [options]')
  expect((await spt(['--help'])).out).toMatch(/^ {2}format /m)
})
