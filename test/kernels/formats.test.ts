/** Every standard format of matrices under kernels that read it, that write it, and that go by rows. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Built, type Device, devices, type Kernel, load } from '../../src/node.ts'
import { sample } from '../support/cases.ts'
import { integers, matrix, normals, type Pattern, patterns } from '../support/kernels.ts'

const formats = new Map([
  ...(await load('kernels/formats.spt')).formats,
  ...(await load('kernels/formats-composed.spt')).formats,
])
const spmm = (await load('kernels/spmm.spt')).kernel('spmm')
const sddmm = (await load('kernels/sddmm.spt')).kernel('sddmm')
const softmax = (await load('kernels/softmax.spt')).kernel()

/** Sizes that divide nothing, and some that are larger than some matrices. */
const ARGUMENTS: Readonly<Record<string, readonly (readonly number[])[]>> = {
  bsr: [[3], [8]],
  bsr_by_length: [[3], [8]],
  bsr_groups_by_length: [[3, 2]],
  dbsr: [[3], [8]],
  sell: [[3, 8]],
  rows_ell: [[2]],
  pieces_ell: [[3]],
  gcoo: [[2]],
  sr_bcrs: [[3, 4]],
  strips: [[3, 2]],
  strip_pieces: [[3, 2, 2]],
  strips_rest: [[2, 3, 2, 2]],
  hyb: [[3, 2]],
  hyb_pieces: [[2, 1]],
  dense_blocks: [[3, 0.5]],
  band_rest: [[2, 1]],
  top_rest: [[2]],
  strided_rest: [[3]],
  rows_by_length: [[3]],
  column_ranges: [[3]],
  column_ranges_by_length: [[2]],
  ell_at: [[0]],
  panels: [[2, 3]],
  sorted_panels: [[2, 3]],
  panels_masked: [[2, 3]],
  bsr_masked: [[3], [8]],
}
/** They hold some matrices only, or need more than a matrix: see test/formats/standard.test.ts. */
const PARTIAL = ['band', 'strided', 'nm', 'nm_packed', 'vnm', 'vnm_packed', 'tvw', 'vbr', 'masked_rest']

const cases = [...formats.keys()]
  .filter((name) => !PARTIAL.includes(name))
  .flatMap((name) => (ARGUMENTS[name] ?? [[]]).map((args) => [name, args] as const))

describe('formats of the package', () => {
  const present: Device[] = []
  beforeAll(async () => {
    present.push(await devices.cpu(), await devices.webgpu())
  })
  afterAll(async () => {
    for (const d of present) await d.dispose()
  })

  /** Without sketches, of which a device compiles another for some data: what is tried here is formats. */
  const agrees = async (kernel: Kernel, exact: boolean, tensors: (k: number) => object): Promise<void> => {
    for (const device of present)
      await agreesOn(device, await kernel.build(device, { auto: false }), exact, tensors)
  }

  const agreesOn = async (
    device: Device,
    compiled: Built,
    exact: boolean,
    tensors: (k: number) => object,
    of: readonly Pattern[] = patterns(),
  ): Promise<void> => {
    for (const [k, p] of patterns().entries()) {
      if (!of.some(({ name }) => name === p.name)) continue
      const prepared = await compiled.bind({
        A: matrix(p, (exact ? integers : normals)(p.rows.length, 2)),
        ...tensors(k),
      })
      const v = await prepared.verify()
      prepared.free()
      expect(v.problems, `${p.name} on ${device.kind}`).toEqual([])
      if (exact) expect(v.maxAbsoluteError, `${p.name} on ${device.kind}`).toBe(0)
    }
    compiled.release()
  }

  const rows = (k: number, columns: number) => ({
    B: {
      kind: 'dense',
      shape: [patterns()[k]!.n, columns],
      values: integers(patterns()[k]!.n * columns, 3),
      dtype: 'f32',
    },
  })

  test.for(sample(cases, 1))('%s %o as an input, default schedule', async ([name, args]) => {
    const kernel = spmm.as('A', formats.get(name)!, ...args)
    for (const device of present)
      await agreesOn(device, await kernel.build(device), true, (k) => rows(k, 5), sample(patterns(), 3))
  })

  test.for(sample(cases, 8))('%s %o as an input', ([name, args]) =>
    agrees(spmm.as('A', formats.get(name)!, ...args), true, (k) => rows(k, 5)),
  )

  test.for(sample(cases, 8))('%s %o as an output', ([name, args]) =>
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
  test.for(sample(cases, 8))('%s %o split by rows, or rejected', async ([name, args]) => {
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
