/** Every format of kernels/formats.spt under kernels that read it, that write it, and that go by rows. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Device, devices, type Kernel, load } from '../../src/node.ts'
import { integers, matrix, normals, patterns } from '../support/kernels.ts'

const { formats } = await load('kernels/formats.spt')
const spmm = (await load('kernels/spmm.spt')).kernel('spmm')
const sddmm = (await load('kernels/sddmm.spt')).kernel('sddmm')
const softmax = (await load('kernels/softmax.spt')).kernel()

/** Block sizes that divide nothing, and one that is larger than some matrices. */
const argumentsOf = (name: string): number[][] => (name.endsWith('bsr') ? [[3], [8]] : [[]])

const cases = [...formats.keys()].flatMap((name) => argumentsOf(name).map((args) => [name, args] as const))

describe('formats', () => {
  const present: Device[] = []
  beforeAll(async () => {
    present.push(await devices.cpu(), await devices.webgpu())
  })
  afterAll(async () => {
    for (const d of present) await d.dispose()
  })

  test('are those that kernels count on', () => {
    expect([...formats.keys()].sort()).toEqual(['bsr', 'coo', 'csc', 'csr', 'dbsr', 'dcsc', 'dcsr', 'ell'])
  })

  const agrees = async (kernel: Kernel, exact: boolean, tensors: (k: number) => object): Promise<void> => {
    for (const device of present) {
      const compiled = await kernel.compile(device)
      for (const [k, p] of patterns().entries()) {
        const prepared = await compiled.prepare({
          tensors: { A: matrix(p, (exact ? integers : normals)(p.rows.length, 2)), ...tensors(k) },
        })
        const v = await prepared.verify()
        prepared.free()
        expect(v.problems, `${p.name} on ${device.kind}`).toEqual([])
        if (exact) expect(v.maxAbsoluteError, `${p.name} on ${device.kind}`).toBe(0)
      }
      compiled.release()
    }
  }

  test.for(cases)('%s %o: read', ([name, args]) =>
    agrees(spmm.as('A', formats.get(name)!, ...args), true, (k) => ({
      B: {
        kind: 'dense',
        shape: [patterns()[k]!.n, 5],
        values: integers(patterns()[k]!.n * 5, 3),
        dtype: 'f32',
      },
    })),
  )

  test.for(cases)('%s %o: written', ([name, args]) =>
    agrees(sddmm.as('A', formats.get(name)!, ...args), true, (k) => ({
      X: {
        kind: 'dense',
        shape: [patterns()[k]!.m, 5],
        values: integers(patterns()[k]!.m * 5, 3),
        dtype: 'f32',
      },
      Y: {
        kind: 'dense',
        shape: [patterns()[k]!.n, 5],
        values: integers(patterns()[k]!.n * 5, 4),
        dtype: 'f32',
      },
    })),
  )

  /** Rows have to stay together, and a padded element would count. */
  test.for(cases)('%s %o: by rows, or refused', async ([name, args]) => {
    let kernel: Kernel
    try {
      kernel = softmax.as('A', formats.get(name)!, ...args)
    } catch (error) {
      expect((error as Error).message).toMatch(/schedule\/format-/)
      expect(['csr', 'dcsr', 'ell']).not.toContain(name)
      return
    }
    await agrees(kernel, false, () => ({}))
  })
})
