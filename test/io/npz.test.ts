import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bytesSource } from '../../src/io/byte-source.ts'
import { readTensorFrom, tensorChunks } from '../../src/io/dispatch.ts'
import { convertValues, encoder, valueArray } from '../../src/io/element-arrays.ts'
import { openNpz } from '../../src/io/numpy/npz.ts'
import { type NamedArray, npzArrays, npzChunks } from '../../src/io/numpy/npz-write.ts'
import { readMatrix } from '../../src/io/numpy/scipy.ts'
import { toCoords } from '../../src/io/sparse-matrix.ts'
import type { ReadOptions } from '../../src/io/tensor-file-options.ts'
import type { CoordTensor, StoredTensor } from '../../src/storage/tensor.ts'
import { sample } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { collect, coordsArb, elements, problem, sameBytes, survives, valuesArb } from './support.ts'

const bytes = (name: string) => new Uint8Array(readFileSync(new URL(`fixtures/${name}`, import.meta.url)))
const fixture = (name: string, options: ReadOptions = {}) =>
  readTensorFrom(bytesSource(name, bytes(name)), options)
const matrixOf = async (name: string) => readMatrix(await openNpz(bytesSource(name, bytes(name))), '', {})
const archive = async (arrays: Record<string, NamedArray>, compress = true) =>
  bytesSource('a.npz', await collect(npzChunks(arrays, compress)))
const i32 = (...v: number[]): NamedArray => ({ values: Int32Array.from(v), shape: [v.length], dtype: 'i32' })
const f32 = (...v: number[]): NamedArray => ({
  values: Float32Array.from(v),
  shape: [v.length],
  dtype: 'f32',
})
const csr = {
  indptr: i32(0, 1, 3),
  indices: i32(2, 0, 1),
  data: f32(1, 2, 3),
  shape: i32(2, 3),
}

describe('write ∘ read = id', () => {
  const withOnes = (t: CoordTensor): CoordTensor => ({
    ...t,
    values: t.values ?? valueArray(t.dtype, t.coords[0]!.length, '').fill(encoder(t.dtype, String)(1, 0)),
  })
  property([
    fc
      .integer({ min: 1, max: 4 })
      .chain((rank) => coordsArb(rank, ['f64', 'f32', 'f16', 'i32', 'u32', 'i8', 'u8', 'bool'])),
    fc.boolean(),
  ])('coordinates; a pattern is read as ones', async (tensor, compress) => {
    const source = await archive(npzArrays(tensor), compress)
    expect(await readTensorFrom(source)).toEqual(withOnes(tensor))
  })
  property([valuesArb('f32', 6)])('dense', async (values) => {
    const tensor = { kind: 'dense' as const, shape: [2, 3], values, dtype: 'f32' as const }
    expect(await readTensorFrom(bytesSource('a.npz', await collect(tensorChunks('a.npz', tensor))))).toEqual(
      tensor,
    )
  })
  test('one compressed axis is scipy csr; other storage keeps its arrays by name', async () => {
    const stored: StoredTensor = {
      kind: 'stored',
      shape: [2, 3],
      arrays: { j: { indptr: Int32Array.of(0, 1, 3), indices: Int32Array.of(2, 0, 1) } },
      values: Float32Array.of(1, 2, 3),
      dtype: 'f32',
    }
    const matrix = await readMatrix(await openNpz(await archive(npzArrays(stored))), '', {})
    if (matrix.kind !== 'csr') throw new Error(matrix.kind)
    expect({ j: { indptr: matrix.indptr, indices: matrix.indices } }).toEqual(stored.arrays)
    expect([matrix.shape, matrix.values, matrix.dtype]).toEqual([stored.shape, stored.values, stored.dtype])
    // As convert gives them.
    expect(npzArrays({ ...stored, arrays: { i: {}, ...stored.arrays } })).toEqual(npzArrays(stored))
    const deep = npzArrays({
      ...stored,
      shape: [2, 3, 4],
      arrays: {
        ...stored.arrays,
        k: { indptr: Int32Array.of(0, 1, 1, 1), starts: Int32Array.of(2, 0, 0) },
        l: { indptr: Int32Array.of(0, 2), mask: Int32Array.of(5) },
      },
    })
    expect((await openNpz(await archive(deep))).names).toEqual([
      'j_indptr',
      'j_indices',
      'k_indptr',
      'k_starts',
      'l_indptr',
      'l_mask',
      'data',
      'shape',
    ])
  })
  test('large entries cross chunk borders', async () => {
    const values = Int32Array.from({ length: 300_000 }, (_, k) => (k * 7919) % 1000)
    const arrays = { a: { values, shape: [values.length], dtype: 'i32' as const } }
    for (const compress of [true, false])
      expect(sameBytes(await (await openNpz(await archive(arrays, compress))).integers('a'), values)).toBe(
        true,
      )
  })
})

describe('files written by SciPy', () => {
  const want = ['0,1=1.5', '0,5=-2', '2,0=4', '2,2=0.25', '3,4=8']
  test.each(['csr', 'csc', 'coo', 'csr-stored', 'csc-stored', 'coo-stored', 'csr-int64'])(
    '%s',
    async (name) => {
      const t = await fixture(`${name}.npz`)
      expect(t.shape).toEqual([4, 6])
      expect(t.dtype).toBe('f64')
      expect(elements(t)).toEqual(want)
    },
  )
  test('the format as Unicode text, half-precision values kept', async () => {
    const t = await fixture('csr-unicode.npz')
    expect(t.dtype).toBe('f16')
    expect(elements({ ...t, values: convertValues(t.values!, 'f16', 'f64', '') } as CoordTensor)).toEqual(
      want,
    )
  })
  test('bsr: blocks as they are stored; as coordinates, without their zeros', async () => {
    const matrix = await matrixOf('bsr.npz')
    if (matrix.kind !== 'bsr') throw new Error(matrix.kind)
    expect(matrix.block).toEqual([2, 3])
    expect(matrix.shape).toEqual([4, 6])
    const all = toCoords(matrix)
    expect(elements(all)).toEqual(want)
    expect(all.padding).toBe(24 - want.length)
    const blocks = (values: Float32Array | null) =>
      toCoords({ ...matrix, values: values as Float32Array, dtype: 'f32' })
    expect(blocks(null)).toMatchObject({ values: null, coords: [{ length: 24 }, { length: 24 }] })
    expect(blocks(null).padding).toBeUndefined()
    const full = Float32Array.from({ length: 24 }, (_, e) => (e === 5 ? -0 : e + 1))
    expect(blocks(full).values).toBe(full)
    expect(blocks(full).padding).toBeUndefined()
    const one = blocks(full.map((v, e) => (e === 7 ? 0 : v)))
    expect([one.padding, one.values!.length, Object.is(one.values![5], -0)]).toEqual([1, 23, true])
  })
  test('explicit zeros of other layouts are kept', async () => {
    const csr = await matrixOf('csr.npz')
    if (csr.kind !== 'csr') throw new Error(csr.kind)
    const zeros = toCoords({ ...csr, values: csr.values!.map(() => 0) as Float64Array })
    expect(zeros.values!.length).toBe(want.length)
    expect(zeros.padding).toBeUndefined()
  })
  test('csc is stored by columns', async () => {
    const matrix = await matrixOf('csc.npz')
    if (matrix.kind !== 'csc') throw new Error(matrix.kind)
    expect(matrix.shape).toEqual([4, 6])
    expect(matrix.indptr).toEqual(Int32Array.of(0, 1, 2, 3, 3, 4, 5))
  })
  test('three dimensions', async () => {
    expect(elements(await fixture('coo-3d.npz'))).toEqual(['0,2,3=1', '1,0,1=2', '1,2,0=3'])
  })
  test('rejected files', async () => {
    expect(await problem(() => fixture('dia.npz'))).toBe(
      "io/unsupported: dia.npz: the sparse format 'dia' is not supported",
    )
    expect(await problem(() => fixture('complex.npz'))).toContain(
      "io/unsupported: complex.npz#data: elements of type '<c16'",
    )
  })
  test('requested element types, with checked shapes', async () => {
    expect((await fixture('csr.npz', { dtype: 'f32' })).values).toBeInstanceOf(Float32Array)
    expect(await problem(() => fixture('csr.npz', { dtype: 'i32' }))).toContain(
      'io/value-range: csr.npz#data, element 0',
    )
    expect(await problem(() => fixture('csr.npz', { shape: [6, 4] }))).toBe(
      'io/shape-mismatch: csr.npz has the shape 4 × 6',
    )
  })
})

describe('addresses', () => {
  const arrays = {
    ...Object.fromEntries(Object.entries(csr).map(([k, v]) => [`feature_${k}`, v])),
    src: i32(0, 3, 1),
    rel: i32(1, 0, 1),
    dst: i32(2, 2, 0),
    w: f32(1, 2, 3),
    short: i32(1),
    negative: i32(0, -1, 0),
  }
  const at = async (address: string | undefined, options: ReadOptions = {}) =>
    readTensorFrom(await archive(arrays), { ...options, address })
  test('an array, a group, coordinates', async () => {
    expect(await at('w')).toMatchObject({ kind: 'dense', shape: [3], values: Float32Array.of(1, 2, 3) })
    expect(elements(await at('feature'))).toEqual(['0,2=1', '1,0=2', '1,1=3'])
    const triples = await at('rel,src,dst')
    expect(triples).toMatchObject({ shape: [2, 4, 3], values: null, dtype: 'f32' })
    expect(elements(triples)).toEqual(['0,3,2=1', '1,0,2=1', '1,1,0=1'])
    expect((await at('src, dst', { shape: [9, 9], dtype: 'i32' })).shape).toEqual([9, 9])
  })
  test('a group without data is a pattern; without shape it is none', async () => {
    const { data: _, ...pattern } = csr
    expect(await readTensorFrom(await archive(pattern))).toMatchObject({ values: null, dtype: 'f32' })
    const { shape: __, ...shapeless } = csr
    expect(await problem(async () => readTensorFrom(await archive(shapeless)))).toContain('io/ambiguous')
  })
  test.each([
    [undefined, 'io/ambiguous: a.npz holds several arrays and no scipy matrix'],
    ['feat', "io/unknown-array: a.npz has no array or matrix 'feat'"],
    ['src,nil', "io/unknown-array: a.npz has no array or matrix 'nil'"],
    ['src,w', "io/not-integers: a.npz#w holds '<f4'"],
    ['src,short', 'io/data-length: a.npz#short has 1 elements, a.npz#src has 3'],
    ['src,negative', 'io/index-range: a.npz#negative: the index -1 (element 1) is out of range'],
  ])('%s is rejected', async (address, message) => {
    expect(await problem(() => at(address))).toBe(message)
  })
  test('sizes that do not fit the coordinates are rejected', async () => {
    expect(await problem(() => at('src,dst', { shape: [3, 3] }))).toBe(
      'io/index-range: a.npz#src: the index 3 (element 1) is out of range',
    )
    expect(await problem(() => at('src,dst', { shape: [4] }))).toContain(
      'io/shape: a.npz#src,dst: 1 sizes for 2 dimensions',
    )
  })
})

describe('inconsistent arrays', () => {
  test.each([
    ['indptr too short', { indptr: i32(0, 3) }, 'io/indptr: a.npz: indptr has 2 elements, 2 rows need 3'],
    ['indptr from 1', { indptr: i32(1, 1, 3) }, 'io/indptr: a.npz: indptr starts with 1, not 0'],
    ['indptr falls', { indptr: i32(0, 4, 3) }, 'io/indptr: a.npz: indptr falls from 4 to 3 at 2'],
    [
      'indptr ends wrong',
      { indptr: i32(0, 1, 2) },
      'io/indptr: a.npz: indptr ends with 2, but there are 3 indices',
    ],
    [
      'index too large',
      { indices: i32(2, 3, 1) },
      'io/index-range: a.npz: the index 3 (element 1 of indices) is out of range',
    ],
    [
      'index negative',
      { indices: i32(2, -1, 1) },
      'io/index-range: a.npz: the index -1 (element 1 of indices) is out of range',
    ],
    ['values too few', { data: f32(1) }, 'io/data-length: a.npz: 1 values for 3 stored elements'],
    [
      'values not a vector',
      { data: { ...f32(1, 2, 3), shape: [3, 1] } },
      'io/rank: a.npz#data has 2 dimensions (3 × 1)',
    ],
    [
      'indices of two dimensions',
      { indices: { ...i32(2, 0, 1), shape: [3, 1] } },
      'io/rank: a.npz#indices has 2 dimensions (3 × 1)',
    ],
    ['float indices', { indices: f32(2, 0, 1) }, "io/not-integers: a.npz#indices holds '<f4'"],
    ['shape of three', { shape: i32(2, 3, 1) }, 'io/rank: a.npz has 3 dimensions (2 × 3 × 1)'],
    ['negative shape', { shape: i32(-2, 3) }, 'io/shape: a.npz#shape has a negative size: -2, 3'],
    [
      'unknown format',
      { format: { text: 'lil' } },
      "io/unsupported: a.npz: the sparse format 'lil' is not supported",
    ],
    ['format is a number', { format: i32(1) }, 'io/unsupported: a.npz#format holds numbers, not text'],
    [
      'blocks that do not tile',
      { format: { text: 'bsr' }, data: { ...f32(1, 2, 3, 4, 5, 6), shape: [3, 1, 2] } },
      'io/shape: a.npz: blocks of 1 × 2 do not tile 2 × 3',
    ],
    [
      'blocks of nothing',
      { format: { text: 'bsr' }, data: { ...f32(), shape: [3, 0, 1] } },
      'io/shape: a.npz: blocks of 0 × 1 do not tile 2 × 3',
    ],
    ['coordinates missing', { format: { text: 'coo' } }, "io/unknown-array: a.npz has no array 'row'"],
  ] as const)('%s', async (_, change, message) => {
    const source = await archive({ ...csr, ...(change as Record<string, NamedArray>) })
    expect(await problem(() => readTensorFrom(source))).toBe(message)
  })
})

describe('damaged archives', () => {
  test('every prefix is rejected', async () => {
    for (const name of ['csr.npz', 'csr-stored.npz', 'coo-3d.npz']) {
      const whole = bytes(name)
      for (let n = 1; n < whole.length; n++)
        expect(
          await survives(() => readTensorFrom(bytesSource(name, whole.subarray(0, n)))),
          `${name} ${n}`,
        ).toBe(false)
    }
  })
  test('a changed byte is rejected, unless readers ignore it', async () => {
    const whole = bytes('csr.npz')
    const want = elements(await readTensorFrom(bytesSource('a.npz', whole)))
    let refused = 0
    // Others in another run.
    const places = sample([...whole.keys()], whole.length)
    for (const n of places) {
      const changed = whole.slice()
      changed[n]! ^= 0x55
      const ok = await survives(async () => {
        // Names may change: then an array may be missing, and a file without a format or data is csr and a pattern.
        const t = await readTensorFrom(bytesSource('a.npz', changed))
        if (t.values !== null) expect(elements(t)).toEqual(want)
      })
      if (!ok) refused++
    }
    expect(refused).toBeGreaterThan(places.length / 3)
  })
  test('two arrays of one name', async () => {
    const whole = await archive({ a: f32(1), b: f32(2) }, false)
    const changed = await whole.read(0, whole.size)
    const renamed = Buffer.from(changed).toString('latin1').replaceAll('b.npy', 'a.npy')
    expect(await problem(() => openNpz(bytesSource('a.npz', Buffer.from(renamed, 'latin1'))))).toBe(
      "io/corrupt: a.npz has the array 'a' twice",
    )
  })
  test('an array next to a member with its name', async () => {
    const whole = await archive({ a: f32(1), 'a.npz': f32(2) }, false)
    const changed = await whole.read(0, whole.size)
    // Names of as many letters, so that the directory stays as it is.
    const renamed = Buffer.from(changed).toString('latin1').replaceAll('a.npz.npy', 'abcdefghi')
    const foreign = await openNpz(bytesSource('a.npz', Buffer.from(renamed, 'latin1')))
    expect(foreign.names).toEqual(['a'])
    const twice = Buffer.from(changed)
      .toString('latin1')
      .replaceAll('a.npz.npy', 'abcde.npy')
      .replaceAll('a.npy', 'abcde')
    expect(await problem(() => openNpz(bytesSource('a.npz', Buffer.from(twice, 'latin1'))))).toBe(
      "io/corrupt: a.npz has the array 'abcde' twice",
    )
  })
  test('zip64: sizes and the offset in an extra field, after another one', async () => {
    const source = await archive({ a: f32(1, 2) }, false)
    const whole = Buffer.from(await source.read(0, source.size))
    const end = whole.length - 22
    const at = whole.readUInt32LE(end + 16)
    const extra = Buffer.alloc(9 + 28)
    extra.writeUInt16LE(0x5455, 0)
    extra.writeUInt16LE(5, 2)
    extra.writeUInt16LE(1, 9)
    extra.writeUInt16LE(24, 11)
    for (const [k, field] of [24, 20, 42].entries()) {
      extra.writeBigUInt64LE(BigInt(whole.readUInt32LE(at + field)), 13 + 8 * k)
      whole.writeUInt32LE(0xffffffff, at + field)
    }
    for (const [field, size] of [
      [at + 30, 2],
      [end + 12, 4],
    ] as const)
      whole.writeUIntLE(whole.readUIntLE(field, size) + extra.length, field, size)
    const nameEnd = at + 46 + whole.readUInt16LE(at + 28)
    const wide = Buffer.concat([whole.subarray(0, nameEnd), extra, whole.subarray(nameEnd)])
    expect(await readTensorFrom(bytesSource('a.npz', wide))).toEqual(await readTensorFrom(source))
  })
  test('not a zip archive, an empty one, foreign entries', async () => {
    expect(await problem(() => openNpz(bytesSource('a.npz', new Uint8Array(100))))).toBe(
      'io/corrupt: a.npz: not a whole zip archive (it has no central directory)',
    )
    expect(await problem(async () => readTensorFrom(await archive({})))).toBe(
      'io/empty: a.npz holds no arrays',
    )
  })
})
