/** Integers in files beyond 32 bits are bound to buffers that hold them, and refused by others with what to do. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { npyChunks } from '../../src/io/numpy/npz-write.ts'
import { property } from '../support/property.ts'
import { Folder, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

const program = (dtype: string): string =>
  folder.file(
    `${dtype}.spt`,
    `kernel sums(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: ${dtype}[i, j] in
  buffer y: ${dtype}[i]    out
  iterate sum [i, j] as SR { y[i] += A[i, j] }
}
`,
  )
const matrix = (name: string, values: readonly number[]): string =>
  folder.file(
    name,
    `%%MatrixMarket matrix coordinate integer general\n${values.length} 2 ${values.length}\n${values.map((v, k) => `${k + 1} 1 ${v}\n`).join('')}`,
  )
const sums = (dtype: string, file: string) =>
  spt(['run', program(dtype), '--bind', `A=${file}`, '--out', `y=${folder.at('y.mtx')}`, '--verify'])
const results = (): number[] =>
  readFileSync(folder.at('y.mtx'), 'utf8').trim().split('\n').slice(2).map(Number)

property([fc.array(fc.maxSafeInteger(), { minLength: 1, maxLength: 3 })])(
  'any integer of a double, to an f64 buffer',
  async (values) => {
    const { code, err } = await sums('f64', matrix('a.mtx', values))
    expect([code, err, results()]).toEqual([0, '', values.map((v) => v + 0)])
  },
)

test('unsigned integers, 64-bit arrays, figures of a file', async () => {
  const large = matrix('large.mtx', [2147483648, 3])
  expect((await sums('u32', large)).code).toBe(0)
  expect(results()).toEqual([2147483648, 3])
  const wide = Buffer.concat([...npyChunks(Int32Array.of(0, 0), [2, 1], 'i32')])
  // The same header, of 64-bit elements.
  const at = wide.indexOf('<i4')
  wide.write('<i8', at, 'latin1')
  const bytes = Buffer.alloc(16)
  bytes.writeBigInt64LE(1n << 40n, 0)
  bytes.writeBigInt64LE(-(1n << 40n), 8)
  const npy = folder.file('wide.npy', Buffer.concat([wide.subarray(0, wide.length - 8), bytes]))
  expect((await sums('f64', npy)).err).toBe('')
  expect(results()).toEqual([2 ** 40, -(2 ** 40)])
  expect(await spt(['format', large])).toMatchObject({ code: 0, out: expect.stringContaining('f64') })
})

test('a buffer type that cannot represent them is rejected with the type to declare', async () => {
  const { code, err } = await sums('i32', matrix('b.mtx', [2147483648]))
  expect([code, err]).toEqual([1, expect.stringContaining('the value 2147483648 does not fit i32')])
  expect(err).toContain('declare the buffer with a wider type, such as f64')
})
