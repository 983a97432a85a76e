import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { inflate } from '../../src/io/compression/inflate.ts'
import {
  blobSource,
  READABLE,
  readTensor,
  readTensorFrom,
  WRITABLE,
  writeTensor,
} from '../../src/io/index.ts'
import { fileDiagnostic } from '../../src/io/node-files.ts'
import type { Tensor } from '../../src/storage/tensor.ts'
import { bytesOf, collect, elements, pieces, problem, sameBytes, survives } from './support.ts'

const CORA = fileURLToPath(new URL('../../data/cora.mtx', import.meta.url))
let folder = ''
const at = (name: string) => join(folder, name)
const put = (name: string, content: string | Uint8Array) => {
  writeFileSync(at(name), content)
  return at(name)
}
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'spt-io-'))
})
afterAll(() => {
  rmSync(folder, { recursive: true })
})

const longestRow = (t: Tensor): number => {
  if (t.kind !== 'coords') throw new Error(t.kind)
  const counts = new Int32Array(t.shape[0]!)
  for (const r of t.coords[0]!) counts[r]!++
  return counts.reduce((a, b) => Math.max(a, b), 0)
}

test('the packaged graph', async () => {
  const cora = await readTensor(CORA)
  expect(cora).toMatchObject({ kind: 'coords', shape: [2708, 2708], values: null })
  if (cora.kind !== 'coords') return
  expect(cora.coords.map((c) => c.length)).toEqual([10556, 10556])
  expect(longestRow(cora)).toBe(168)
  // Symmetric, without an edge twice.
  const keys = new Set(Array.from(cora.coords[0]!, (r, e) => r * 2708 + cora.coords[1]![e]!))
  expect(keys.size).toBe(10556)
  expect([...keys].filter((k) => !keys.has((k % 2708) * 2708 + Math.floor(k / 2708)))).toEqual([])
})

describe('write, then read, by ending', () => {
  const sparse: Tensor = {
    kind: 'coords',
    shape: [3, 4],
    coords: [Int32Array.of(2, 0, 1), Int32Array.of(3, 0, 1)],
    values: Float64Array.of(1, -2.5, 1e-7),
    dtype: 'f64',
  }
  const dense: Tensor = {
    kind: 'dense',
    shape: [2, 3],
    values: Float64Array.of(1, 2, 3, 4, 5, 6),
    dtype: 'f64',
  }
  test.each(['a.mtx', 'a.mtx.gz', 'a.npz', 'A.MTX'])('sparse %s', async (name) => {
    await writeTensor(at(name), sparse)
    expect(await readTensor(at(name))).toEqual(sparse)
  })
  test.each(['a.mtx', 'a.mtx.gz', 'a.npz', 'a.npy', 'a.safetensors'])('dense %s', async (name) => {
    await writeTensor(at(name), dense)
    expect(await readTensor(at(name))).toEqual(dense)
  })
  test('integers beyond i32 round-trip', async () => {
    const large: Tensor = {
      kind: 'dense',
      shape: [1, 2],
      values: Uint32Array.of(7, 4294967295),
      dtype: 'u32',
    }
    await writeTensor(at('u.mtx'), large)
    expect(await readTensor(at('u.mtx'))).toEqual(large)
  })
  test.each(['big.mtx', 'big.mtx.gz', 'big.npz'])('larger than any chunk: %s', async (name) => {
    const ids = Int32Array.from({ length: 120_000 }, (_, e) => (e * 7919) % 100_003)
    const values = Float64Array.from(ids, (v) => v / 7)
    await writeTensor(at(name), {
      kind: 'coords',
      shape: [100_003, 100_003],
      coords: [ids, ids],
      values,
      dtype: 'f64',
    })
    const t = await readTensor(at(name))
    if (t.kind !== 'coords') throw new Error(t.kind)
    expect([...t.coords, t.values!].map((a, k) => sameBytes(a, [ids, ids, values][k]!))).toEqual([
      true,
      true,
      true,
    ])
  })
  test('the shape is checked if the file has one', async () => {
    await writeTensor(at('shape.npy'), dense)
    expect(await readTensor(at('shape.npy'), { shape: [2, 3] })).toEqual(dense)
    expect(await problem(() => readTensor(at('shape.npy'), { shape: [3, 2] }))).toBe(
      `io/shape-mismatch: ${at('shape.npy')} has the shape 2 × 3`,
    )
  })
  test('unsupported tensors are rejected, and the existing file is unchanged', async () => {
    for (const [name, tensor] of [
      ['keep.npy', sparse],
      ['keep.mtx', { ...dense, shape: [1, 2, 3] }],
      ['keep.el', sparse],
    ] as const) {
      put(name, 'as it was')
      expect(await survives(() => writeTensor(at(name), tensor))).toBe(false)
      expect(readFileSync(at(name), 'utf8')).toBe('as it was')
    }
  })
})

test('every readable extension is read', async () => {
  const texts: Record<string, string> = {
    '.mtx': '%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n',
    '.smtx': '2, 2, 1\n0 1 1\n1\n',
    '.el': '0 1\n',
    '.tsv': 'a\tb\n0\t1\n',
    '.csv': 'a,b\n0,1\n',
    '.txt': '# a\n0 1\n',
    '.edges': '0 1\n',
  }
  const texty = READABLE.filter((e) => !/^(\.(np|safetensors)|report)/.test(e))
  expect(texty.length).toBe(14)
  for (const ending of texty) {
    const text = texts[ending.replace('.gz', '')]!
    const path = put(`every${ending}`, ending.endsWith('.gz') ? gzipSync(text) : text)
    expect(elements(await readTensor(path)), ending).toEqual(['0,1=1'])
  }
  expect(WRITABLE).toEqual(['.mtx', '.mtx.gz', '.npz', '.npy', '.safetensors'])
})

test('addresses are separated from names of container files', async () => {
  const one: Tensor = { kind: 'dense', shape: [1], values: Int32Array.of(7), dtype: 'i32' }
  await writeTensor(at('x#1.npz'), one)
  expect(await readTensor(`${at('x#1.npz')}#arr_0`)).toEqual(one)
  expect(await readTensor(at('x#1.npz'), { address: 'arr_0' })).toEqual(one)
})

describe('unreadable and unwritable files', () => {
  test('endings', async () => {
    try {
      await readTensor(CORA.replace('.mtx', '.xyz'))
      expect.unreachable()
    } catch (error) {
      const [d] = (error as SptError).diagnostics
      expect(d).toMatchObject({ code: 'io/unknown-extension', expected: READABLE.join(' ') })
    }
    expect(await problem(() => readTensor('a.npz.gz'))).toContain('io/unknown-extension')
    expect(
      await problem(() =>
        writeTensor(at('a.smtx'), { kind: 'dense', shape: [], values: new Int8Array(1), dtype: 'i8' }),
      ),
    ).toContain('io/unknown-extension')
  })
  test('missing files name their neighbours', async () => {
    try {
      await readTensor(CORA.replace('cora', 'coro'))
      expect.unreachable()
    } catch (error) {
      expect((error as SptError).diagnostics[0]).toMatchObject({
        code: 'io/not-found',
        lookup: { name: 'coro.mtx', candidates: ['cora.mtx'] },
      })
    }
    expect(await problem(() => readTensor(join(CORA, 'a.mtx')))).toContain('io/not-found')
    expect(await problem(() => readTensor(at('no/such/folder/a.mtx')))).toContain('io/not-found')
    expect(await problem(() => readTensor('a\0.mtx'))).toContain('io/read')
  })
  test('folders, devices, empty files', async () => {
    mkdirSync(at('folder.mtx'))
    expect(await problem(() => readTensor(at('folder.mtx')))).toBe(
      `io/is-folder: '${at('folder.mtx')}' is a folder`,
    )
    expect(
      await problem(() =>
        writeTensor(at('folder.npy'), {
          kind: 'dense',
          shape: [],
          values: new Int8Array(1),
          dtype: 'i8',
        }).then(() => readTensor(at('folder.mtx'))),
      ),
    ).toContain('io/is-folder')
    symlinkSync('/dev/null', at('device.mtx'))
    expect(await problem(() => readTensor(at('device.mtx')))).toContain('io/not-a-file')
    for (const ending of ['.mtx', '.mtx.gz', '.npy', '.npz', '.safetensors', '.smtx', '.el'])
      expect(await problem(() => readTensor(put(`empty${ending}`, '')))).toBe(
        `io/empty: '${at(`empty${ending}`)}' is empty`,
      )
  })
  test('targets', async () => {
    const one: Tensor = { kind: 'dense', shape: [], values: new Int8Array(1), dtype: 'i8' }
    mkdirSync(at('target.npy'))
    expect(await problem(() => writeTensor(at('target.npy'), one))).toContain('io/is-folder')
    expect(await problem(() => writeTensor(at('no/folder.npy'), one))).toContain(
      'io/not-found: there is no folder',
    )
  })
  test('permission (root may read everything: then only the wording is checked)', async () => {
    const path = put('secret.mtx', 'x')
    chmodSync(path, 0)
    if (process.getuid?.() !== 0) expect(await problem(() => readTensor(path))).toContain('io/permission')
    const words = (code: string, action: 'read' | 'write') =>
      fileDiagnostic(Object.assign(new Error('why'), { code }), 'd/f', action)
    expect(words('EACCES', 'read')).toMatchObject({
      code: 'io/permission',
      message: "no permission to read 'd/f'",
    })
    expect(words('EROFS', 'write')).toMatchObject({
      code: 'io/permission',
      message: "no permission to write 'd/f'",
    })
    expect(words('ENOSPC', 'write')).toMatchObject({ code: 'io/no-space' })
    expect(words('EIO', 'read')).toMatchObject({ code: 'io/read', message: "cannot read 'd/f': why" })
  })
})

describe('gzip', () => {
  const text = `%%MatrixMarket matrix coordinate pattern general\n50 50 50\n${Array.from({ length: 50 }, (_, k) => `${k + 1} ${((k * 7) % 50) + 1}`).join('\n')}\n`
  const packed = new Uint8Array(gzipSync(text))
  test('every prefix is rejected as truncated; members are concatenated', async () => {
    for (let n = 0; n < packed.length; n++)
      expect(await problem(() => collect(inflate([packed.subarray(0, n)], 'gzip', 'a'))), `${n}`).toBe(
        'io/truncated: a: the gzip data end too early',
      )
    expect(await collect(inflate(pieces(packed, 10), 'gzip', 'a'))).toEqual(bytesOf(text))
    expect(await collect(inflate([packed, packed], 'gzip', 'a'))).toEqual(bytesOf(text + text))
  })
  test('a changed byte is rejected, or has no effect', async () => {
    for (let n = 0; n < packed.length; n++) {
      const changed = packed.slice()
      changed[n]! ^= 0x10
      await survives(async () =>
        expect(await collect(inflate([changed], 'gzip', 'a'))).toEqual(bytesOf(text)),
      )
    }
    expect(await problem(() => readTensor(put('text.mtx.gz', text)))).toContain(
      `io/corrupt: ${at('text.mtx.gz')}: not whole and valid gzip data`,
    )
  })
  test('a reader that stops early closes the source; errors of the source come through', async () => {
    let closed = false
    async function* endless() {
      try {
        yield gzipSync('x'.repeat(1000)).subarray(0, 15)
        for (;;)
          yield new Uint8Array(gzipSync(Buffer.from(Array.from({ length: 70000 }, (_, k) => (k * k) % 251))))
      } finally {
        closed = true
      }
    }
    await survives(() => collect(inflate(endless(), 'gzip', 'a')))
    expect(closed).toBe(true)
    closed = false
    async function* members() {
      try {
        for (;;)
          yield new Uint8Array(gzipSync(Buffer.from(Array.from({ length: 70000 }, (_, k) => (k * k) % 251))))
      } finally {
        closed = true
      }
    }
    for await (const _ of inflate(members(), 'gzip', 'a')) break
    expect(closed).toBe(true)
    async function* failing() {
      yield packed.subarray(0, 20)
      throw new SptError({ code: 'io/read', message: 'the disk is gone', hint: 'take another' })
    }
    expect(await problem(() => collect(inflate(failing(), 'gzip', 'a')))).toBe('io/read: the disk is gone')
  })
})

test("a browser's Blob is read piecewise", async () => {
  const bytes = readFileSync(CORA)
  for (const [name, content] of [
    ['cora.mtx', bytes],
    ['cora.mtx.gz', gzipSync(bytes)],
  ] as const)
    expect(await readTensorFrom(blobSource(name, new Blob([content])))).toEqual(await readTensor(CORA))
})

const DATA = process.env.SPT_DATA
test.skipIf(!DATA)(
  `real files (${DATA ? `in ${DATA}` : 'skipped: SPT_DATA does not name their folder'})`,
  async () => {
    // shape, elements, longest row
    const files: Record<string, [shape: number[], nnz: number, longest?: number]> = {
      'cora.mtx': [[2708, 2708], 10556, 168],
      'cora.npz#csr': [[2708, 2708], 10556, 168],
      'cora.npz#feature': [[2708, 1433], 49216],
      'cora.npz#labels': [[2708], 2708],
      'cora.npz#split': [[2708], 2708],
      'citeseer.mtx.gz': [[3327, 3327], 9104, 99],
      'pubmed.mtx.gz': [[19717, 19717], 88651, 171],
      'ppi-pathways.npz': [[21557, 21557], 677272, 2130],
      'facebook-jhu.npz': [[5180, 5180], 373172, 886],
      'ca-condmat.mtx.gz': [[23133, 23133], 186936, 280],
      'bcsstk16.npz': [[4884, 4884], 290378, 81],
      'ldg-diffusion.npz': [[966, 966], 35338, 69],
      'radixnet-1024.npz': [[1024, 1024], 32768, 32],
      'fb15k-237.npz#rel,src,dst': [[237, 14505, 14505], 272115, 15989],
      'aifb.npz#rel,src,dst': [[90, 8285, 8285], 58086],
      'minkunet-layer.npz#imap,omap': [[68866, 68866], 308946],
      'minkunet-layer.npz#knnz': [[27], 27],
      'minkunet-layer.npz#kpos': [[28], 28],
    }
    for (const [name, [shape, nnz, longest]] of Object.entries(files)) {
      if (!existsSync(join(DATA!, name.split('#')[0]!))) continue
      const t = await readTensor(join(DATA!, name))
      expect(t.shape, name).toEqual(shape)
      expect(t.kind === 'coords' ? t.coords[0]!.length : t.values!.length, name).toBe(nnz)
      if (longest !== undefined) expect(longestRow(t), name).toBe(longest)
    }
  },
)
