/** What cannot be converted is refused on a device as on the host, and leaves nothing behind. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { convert } from '../../src/api/resident/resident.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { releaseConversions, uploadResident } from '../../src/storage/engines/device/index.ts'
import { queueOf } from '../../src/storage/engines/device/resident-tensors.ts'
import { convertTensor } from '../../src/storage/entries/stored-parts.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { givenFor, matrix, written } from '../formats/user-formats.ts'

const CSR = `format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`
const CASES: readonly [why: string, code: string, text: string][] = [
  [
    'a coordinate in no part',
    'format/leak',
    `${CSR}format c over (i, j) { part csr where (count(j by i) >= 2) }`,
  ],
  [
    'a coordinate in two parts',
    'format/overlap',
    `${CSR}format c over (i, j) {
      part a = csr where (count(j by i) >= 1)
      part b = csr where (count(j by i) >= 2)
    }`,
  ],
  [
    'an inverse that does not undo the map',
    'format/not-inverse',
    `format c over (i, j) {
      axis io = dense_fixed(i)
      axis p = dense_variable(io, j)
      map (i, j) -> (i, rank(j by i))
      inverse (io, p) -> (io, p)
    }`,
  ],
  [
    'a map that leaves the extents',
    'format/map-range',
    `format c over (i, j) {
      axis p = dense_fixed(1)
      axis io = sparse_variable(p, i)
      axis jo = sparse_variable(io, j)
      map (i, j) -> (rank(j by i), i, j)
      inverse (p, io, jo) -> (io, jo)
    }`,
  ],
  [
    'a row that a width does not hold',
    'bind/width',
    `format c over (i, j) {
      axis io = dense_fixed(i)
      axis jo = sparse_fixed(io, j, 1)
      map (i, j) -> (i, j)
      inverse (io, jo) -> (io, jo)
    }`,
  ],
  [
    'two coordinates at one position',
    'bind/width',
    `format c over (i, j) {
      axis io = dense_fixed(i)
      axis z = dense_fixed(io, 2)
      axis jo = sparse_fixed(z, j, 1)
      map (i, j) -> (i, 0, j)
      inverse (io, z, jo) -> (io, jo)
    }`,
  ],
]
const T: CoordTensor = matrix(
  [4, 4],
  [
    [0, 1, 1],
    [0, 3, 2],
    [2, 0, 3],
    [3, 2, 4],
  ],
)

const OF_COORDINATES = new Set(['format/leak', 'format/overlap', 'format/not-inverse', 'format/map-range'])

const messageOf = async (f: () => unknown): Promise<string> => {
  try {
    await f()
  } catch (e) {
    if (e instanceof SptError) return e.message
    throw e
  }
  return 'none'
}

const codeOf = async (f: () => unknown): Promise<string> => {
  try {
    await f()
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics[0]!.code
    throw e
  }
  return 'none'
}

describe('rejections', () => {
  let device: Device
  beforeAll(() => {
    device = createCpuDevice()
  })
  afterAll(async () => {
    await releaseConversions(device)
    await device.dispose()
  })

  test.each(CASES)('%s', async (_, code, text) => {
    const to = written(text)
    expect(await codeOf(() => convertTensor(T, to, givenFor(T.shape)))).toBe(code)
    const from = await uploadResident(device, T)
    const { bytes } = queueOf(device)
    expect(await codeOf(() => convert(device, from, to, givenFor(T.shape)))).toBe(code)
    expect(queueOf(device).bytes).toBe(bytes)
    // The host says which coordinate, and of what.
    if (OF_COORDINATES.has(code))
      expect(await messageOf(() => convert(device, from, to, givenFor(T.shape)))).toBe(
        await messageOf(() => convertTensor(T, to, givenFor(T.shape))),
      )
    from.free()
  })

  test('parts in which a coordinate lies are named with what they are', async () => {
    const [, , text] = CASES.find(([, code]) => code === 'format/overlap')!
    const message = (t: string) => messageOf(() => convertTensor(T, written(t), givenFor(T.shape)))
    expect(await message(text)).toMatch(/: a \(a = csr\) and b \(b = csr\)$/)
    expect(await message(text.replace('a = ', ''))).toMatch(/: csr and b \(b = csr\)$/)
  })

  test('a conversion and its result leave no memory behind', async () => {
    const { bytes } = queueOf(device)
    const from = await uploadResident(device, T)
    const made = await convert(device, from, written(CSR), givenFor(T.shape))
    made.free()
    from.free()
    expect(queueOf(device).bytes).toBe(bytes)
  })

  test('equal coordinates add up', async () => {
    const twice = matrix(
      [2, 2],
      [
        [1, 0, 3],
        [0, 1, 1],
        [1, 0, 4],
      ],
    )
    const from = await uploadResident(device, twice)
    for (const fill of [0, 5]) {
      const made = await convert(device, from, written(CSR), givenFor([2, 2]), fill)
      const [part] = (await made.download()).parts
      expect([...part!.values]).toEqual([1, 7])
      made.free()
    }
    from.free()
  })

  test('coordinates outside of the tensor, another device, another number of dimensions', async () => {
    const outside = { ...T, shape: [2, 2] }
    expect(await codeOf(() => uploadResident(device, outside))).toBe('bind/coordinate-range')
    const other = createCpuDevice()
    const from = await uploadResident(other, T)
    const to = written(CSR)
    expect(await codeOf(() => convert(device, from, to, givenFor(T.shape)))).toBe('device/foreign-buffer')
    const cube = await uploadResident(device, matrix([2, 2, 2], [[0, 0, 0, 1]]))
    expect(await codeOf(() => convert(device, cube, to, givenFor([2, 2])))).toBe('bind/shape')
    from.free()
    cube.free()
    await releaseConversions(other)
  })
})
