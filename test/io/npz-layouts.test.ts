/** Sparse tensors in `.npz`: layouts of pydata/sparse, fill values, arrays that belong to no layout. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { upload } from '../../src/device.ts'
import { bytesSource } from '../../src/io/byte-source.ts'
import { readTensorFrom, tensorChunks } from '../../src/io/dispatch.ts'
import { writeTensor } from '../../src/io/index.ts'
import { type NamedArray, npzArrays, npzChunks } from '../../src/io/numpy/npz-write.ts'
import type { ReadOptions } from '../../src/io/tensor-file-options.ts'
import { coords, devices, load, stored } from '../../src/node.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { property } from '../support/property.ts'
import { collect, elements, problem } from './support.ts'

type Arrays = Record<string, NamedArray>
const archive = async (arrays: Arrays) => bytesSource('a.npz', await collect(npzChunks(arrays)))
const read = async (arrays: Arrays, options: ReadOptions = {}) =>
  readTensorFrom(await archive(arrays), options)
const i32 = (values: readonly number[], shape = [values.length]): NamedArray => ({
  values: Int32Array.from(values),
  shape,
  dtype: 'i32',
})
const f64 = (values: readonly number[], shape = [values.length]): NamedArray => ({
  values: Float64Array.from(values),
  shape,
  dtype: 'f64',
})
const numbered = (n: number) => f64(Array.from({ length: n }, (_, e) => e + 1))
const fill = (x: number): Arrays => ({ fill_value: f64([x], []) })

/** A tensor of few elements, and some of its axes, in any order. */
const compressedArb = fc
  .array(fc.integer({ min: 1, max: 4 }), { minLength: 2, maxLength: 4 })
  .chain((shape) =>
    fc.record({
      shape: fc.constant(shape),
      held: fc.array(fc.boolean(), {
        minLength: shape.reduce((a, b) => a * b, 1),
        maxLength: shape.reduce((a, b) => a * b, 1),
      }),
      compressed: fc.shuffledSubarray(
        shape.map((_, k) => k),
        { minLength: 1, maxLength: shape.length - 1 },
      ),
    }),
  )

const digits = (linear: number, sizes: readonly number[]): number[] => {
  const out: number[] = []
  let rest = linear
  for (const n of [...sizes].reverse()) {
    out.unshift(rest % n)
    rest = Math.floor(rest / n)
  }
  return out
}

property([compressedArb])('GCXS: any axes compressed, of any rank', async ({ shape, held, compressed }) => {
  const axes = [...compressed, ...shape.map((_, k) => k).filter((k) => !compressed.includes(k))]
  const sizes = axes.map((k) => shape[k]!)
  const columns = sizes.slice(compressed.length).reduce((a, b) => a * b, 1)
  const rows = sizes.slice(0, compressed.length).reduce((a, b) => a * b, 1)
  const want: string[] = []
  const [indptr, indices]: [number[], number[]] = [[0], []]
  // Elements in storage order, by definition: the tensor transposed and seen as a matrix.
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      if (!held[r * columns + c]) continue
      indices.push(c)
      const at = digits(r * columns + c, sizes)
      want.push(`${shape.map((_, k) => at[axes.indexOf(k)]).join(',')}=${indices.length}`)
    }
    indptr.push(indices.length)
  }
  const tensor = await read({
    data: numbered(indices.length),
    shape: i32(shape),
    ...fill(0),
    indices: i32(indices),
    indptr: i32(indptr),
    compressed_axes: i32(compressed),
  })
  expect(tensor.shape).toEqual(shape)
  expect(elements(tensor)).toEqual(want.sort())
  expect(tensor).not.toHaveProperty('fill')
})

const gcxs = {
  data: numbered(2),
  shape: i32([3, 70_000, 70_000]),
  indices: f64([0]),
  indptr: i32([0, 1, 1, 2]),
  compressed_axes: i32([0]),
}

test('invalid GCXS arrays', async () => {
  const wide = { values: Int32Array.of(9, 2147483647), shape: [2], dtype: 'i32' } as const
  expect(elements(await read({ ...gcxs, indices: wide }))).toEqual(['0,0,9=1', '2,30678,23647=2'])
  for (const [change, message] of [
    [{ compressed_axes: i32([0, 0]) }, 'io/shape: a.npz: compressed_axes is 0, 0, of 3 dimensions'],
    [{ compressed_axes: i32([3]) }, 'io/shape: a.npz: compressed_axes is 3, of 3 dimensions'],
    [{ compressed_axes: i32([0, 1, 2]) }, 'io/shape: a.npz: compressed_axes is 0, 1, 2, of 3 dimensions'],
    [{ compressed_axes: i32([]) }, 'io/shape: a.npz: compressed_axes is empty, of 3 dimensions'],
    [{ indptr: i32([0, 2]) }, 'io/indptr: a.npz: indptr has 2 elements, 3 segments need 4'],
    [{ indices: i32([0, -1]) }, 'io/index-range: a.npz: the index -1 (element 1 of indices) is out of range'],
    [{ indices: gcxs.indices }, "io/not-integers: a.npz#indices holds '<f8'"],
    [{ data: numbered(3) }, 'io/data-length: a.npz, dimension 0: 3 values for 2 elements'],
  ] as const)
    expect(await problem(() => read({ ...gcxs, indices: wide, ...change }))).toBe(message)
})

const coo = { data: numbered(2), coords: i32([0, 1, 2, 0], [2, 2]), shape: i32([2, 3]) }

/** Sums of rows over all columns, absent elements too. */
const SUMS = (declared: string) => `
kernel sums(m: size, n: size) {
  axis i  = dense_fixed(m)
  axis j  = dense_fixed(n)
  axis jo = sparse_variable(i, n)
  buffer A: f64[i, jo] in ${declared}
  buffer y: f64[i]    out
  iterate sum [i, j] as SR { y[i] += A[i, j] }
}`

test('a fill value: read, bound to a buffer with that value, rejected for another', async () => {
  const A = await read({ ...coo, ...fill(7) })
  expect(A).toMatchObject({ kind: 'coords', fill: 7 })
  const sums = async (declared: string, given = A) => {
    const compiled = await (await load(SUMS(declared))).kernel().build(await devices.cpu())
    const prepared = await compiled.bind({ A: given })
    await prepared.run()
    return [...(await prepared.get('y')).values!]
  }
  expect(await sums('fill 7')).toEqual([15, 16])
  expect(await problem(() => sums(''))).toBe(
    'bind/fill: elements that A does not store are 7, and the buffer reads them as 0',
  )
  // A file that states 0 says no more than one that states nothing.
  expect(await sums('', await read({ ...coo, ...fill(0) }))).toEqual([1, 2])
  expect(await read({ ...coo, ...fill(Number.NaN) })).toMatchObject({ fill: Number.NaN })
  expect(await problem(() => read({ ...coo, fill_value: f64([1, 2]) }))).toContain(
    'io/rank: a.npz#fill_value',
  )
})

test('a fill value is kept', async () => {
  const A = (await read({ ...coo, ...fill(7) })) as CoordTensor
  const written = await collect(tensorChunks('b.npz', A))
  expect(await readTensorFrom(bytesSource('b.npz', written))).toEqual(A)
  // SciPy, which has no fill values, does not take it for a matrix of its own.
  expect(Object.keys(npzArrays(A))).not.toContain('format')
  expect(await problem(() => tensorChunks('b.mtx', A))).toBe(
    'io/kind: a sparse tensor with the fill value 7 cannot be written as .mtx',
  )
  const device = await devices.cpu()
  expect(await problem(() => upload(device, A))).toContain('bind/fill')
  const csr = (await load('sparsetile/kernels/formats.spt')).format('csr')
  expect(await problem(() => csr.convert(A))).toContain('bind/fill')
})

test('arrays used without a copy cannot be sorted or summed', async () => {
  const j = { indptr: Int32Array.of(0, 2), indices: Int32Array.of(1, 0) }
  const csr = (await load('sparsetile/kernels/formats.spt')).format('csr')
  const made = csr.convert(coords([1, 2], [[0], [1]], [1])).parts[0]!.tensor
  for (const repair of [{ sort: true }, { sum: true }]) {
    const A = stored([1, 2], { j }, Float32Array.of(1, 2), 'f32', repair)
    expect(await problem(async () => upload(await devices.cpu(), A))).toContain('tensor/repair')
    expect(
      await problem(() => csr.fromParts([1, 2], [{ tensor: { ...made, repair }, tables: {} }])),
    ).toContain('tensor/repair')
  }
})

test('sparse results have the fill value of their buffer, which files record', async () => {
  const A = (await read({ ...coo, ...fill(Number.POSITIVE_INFINITY) })) as CoordTensor
  const shift = (axes: string, declared: string) => `kernel shift(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis jd = dense_fixed(n)
    ${declared}
    buffer D: f64[i, jd] out fill inf
    iterate a [i, j] as SS { ${axes} }
    iterate b [i, jd] as SS { D[i, jd] = 1.0 }
  }`
  const results = async (text: string) => {
    const compiled = await (await load(text)).kernel().build(await devices.cpu())
    const prepared = await compiled.bind({ A })
    await prepared.run()
    const [run, outputs] = [await compiled({ A }), await prepared.outputs()]
    return { prepared, run, outputs }
  }
  for (const [name, text] of [
    [
      'C',
      shift('C[i, j] = A[i, j] + 1.0', 'buffer A: f64[i, j] in fill inf buffer C: f64[i, j] out fill inf'),
    ],
    ['A', shift('A[i, j] = A[i, j] + 1.0', 'buffer A: f64[i, j] inout fill inf')],
  ] as const) {
    const { prepared, run, outputs } = await results(text)
    for (const tensor of [await prepared.get(name), run[name]!, outputs[name]!]) {
      expect(tensor).toMatchObject({ kind: 'coords', fill: Number.POSITIVE_INFINITY })
      expect(
        await readTensorFrom(bytesSource('c.npz', await collect(tensorChunks('c.npz', tensor)))),
      ).toEqual(tensor)
      expect(await problem(() => tensorChunks('c.mtx', tensor))).toContain('io/kind')
    }
    expect(run.D).not.toHaveProperty('fill')
  }
})

test('arrays without a layout are rejected by name; others are separate tensors', async () => {
  const csr = { indptr: i32([0, 1, 2]), indices: i32([2, 0]), data: numbered(2), shape: i32([2, 3]) }
  const scale = { scale: f64([2], []) }
  expect(await problem(() => read({ ...csr, ...scale }))).toBe(
    "io/unknown-array: a.npz has the array 'scale' next to the arrays of a csr matrix",
  )
  expect(await problem(() => read({ ...coo, ...fill(0), mask: i32([1, 0]) }))).toContain("the array 'mask'")
  expect(await problem(() => read({ ...csr, format: { text: 'csr' }, row: i32([0, 1]) }))).toContain("'row'")
  // The matrix alone, which may as well be by columns.
  expect(elements(await read({ ...csr, ...scale }, { address: 'csr' }))).toEqual(['0,2=1', '1,0=2'])
  const byColumns = { ...csr, shape: i32([3, 2]), ...scale }
  expect(elements(await read(byColumns, { address: 'csc' }))).toEqual(['0,1=2', '2,0=1'])
  const stated = { ...csr, format: { text: 'csr' }, ...scale }
  expect(await problem(() => read(stated, { address: 'csc' }))).toContain('io/unknown-array')
  // Groups with prefixes, also of each other.
  const both = Object.fromEntries(
    ['a', 'a_b'].flatMap((p) => Object.entries(csr).map(([k, v]) => [`${p}_${k}`, v])),
  )
  expect(elements(await read({ ...both, ...csr }))).toEqual(['0,2=1', '1,0=2'])
  expect(elements(await read(both, { address: 'a' }))).toEqual(['0,2=1', '1,0=2'])
  expect(await problem(() => read({ ...both, a_scale: f64([2]) }, { address: 'a' }))).toContain("'a_scale'")
  expect(await problem(() => read({ ...both, a_b_fill_value: f64([1, 2]) }, { address: 'a_b' }))).toContain(
    'io/rank',
  )
})

test('files of pydata/sparse: unsigned indices, one dimension', async () => {
  const u8 = (values: readonly number[], shape = [values.length]): NamedArray => ({
    values: Uint8Array.from(values),
    shape,
    dtype: 'u8',
  })
  const tensor = await read({ ...coo, coords: u8([0, 1, 2, 0], [2, 2]), ...fill(0) })
  expect(elements(tensor)).toEqual(['0,2=1', '1,0=2'])
  const line = { data: numbered(2), indices: u8([4, 2]), indptr: f64([]), shape: i32([5]), ...fill(0) }
  expect(elements(await read({ ...line, compressed_axes: i32([]) }))).toEqual(['2=2', '4=1'])
})

test('invalid indices and sizes are reported, and a row is read', async () => {
  const csr = { indptr: i32([0, 1, 2]), indices: i32([2, 0]), data: numbered(2), shape: i32([2, 3]) }
  const failure = async (change: Arrays, of: Arrays = csr) =>
    (await read({ ...of, ...change }).catch((e) => e)) as SptError
  const nan = f64([Number.NaN, 0])
  expect((await failure({ indices: nan })).message).toBe("io/not-integers: a.npz#indices holds '<f8'")
  expect((await failure({ coords: f64([0, 1, 2, 0], [2, 2]) }, coo)).message).toContain('io/not-integers')
  expect((await failure({ coords: i32([0, 1, 2, 0], [4, 1]) }, coo)).message).toBe(
    'io/shape: a.npz#coords has 4 rows for 2 dimensions',
  )
  const wide = { values: Uint32Array.of(2, 4294967295), shape: [2], dtype: 'u32' } as const
  const [problem] = (await failure({ indices: wide })).diagnostics
  expect(problem).toMatchObject({ code: 'io/value-range', hint: expect.stringContaining('32-bit integers') })
  const row = { indptr: i32([0, 2]), indices: i32([4, 2]), data: numbered(2), shape: i32([5]) }
  expect(elements(await read({ ...row, format: { text: 'csr' } }))).toEqual(['2=2', '4=1'])
  expect((await failure({ indices: i32([5, 2]) }, row)).message).toContain('io/index-range')
})

test('a warning if SciPy cannot read the file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'spt-npz-'))
  try {
    const said: string[] = []
    const onWarning = ({ code }: SptError['diagnostics'][number]) => said.push(code)
    for (const dtype of ['f16', 'f32', 'i8'] as const)
      await writeTensor(join(folder, 'a.npz'), coords([2, 2], [[0], [1]], [1], dtype), { onWarning })
    await writeTensor(
      join(folder, 'a.npz'),
      { ...coords([2, 2], [[0], [1]], [1], 'f16'), fill: 1 },
      { onWarning },
    )
    await writeTensor(join(folder, 'a.mtx'), coords([2, 2], [[0], [1]], [1], 'f16'), { onWarning })
    expect(said).toEqual(['io/scipy-f16'])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
