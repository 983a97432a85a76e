/** The choices of the shipped kernels: every branch is for something, and gives the right result. */
import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { coords, type Device, devices, type Kernel, load, type RunInputs } from '../../src/node.ts'
import type { DeviceKind } from '../../src/runtime/device.ts'
import { integers, nvcc } from '../support/kernels.ts'

/** Rows of these lengths, with columns spread over n. */
function rowsOf(lengths: readonly number[], n: number) {
  const [rows, columns]: [number[], number[]] = [[], []]
  lengths.forEach((length, i) => {
    for (let e = 0; e < length; e++) {
      rows.push(i)
      columns.push((e * Math.max(1, Math.floor(n / length)) + i) % n)
    }
  })
  return coords([lengths.length, n], [rows, columns], integers(rows.length, 2))
}
const short = rowsOf([3, 0, 5, 1, 2, 4, 0], 300)
const uneven = rowsOf([257, 0, 5, 1, 256, 4], 300)
const long = rowsOf([1100, 3, 0, 1, ...Array<number>(60).fill(2)], 1200)
const middling = rowsOf(Array<number>(9).fill(12), 300)
const even = rowsOf(Array<number>(9).fill(30), 300)

interface Case {
  readonly kernel: string
  readonly inputs: RunInputs
  /** Too large to be computed here. */
  readonly large?: boolean
}
const matrices = [short, uneven, long, middling, even]
const widths = [0, 1, 4, 20, 32, 64, 96, 132]
const CASES: readonly Case[] = [
  ...[short, uneven].flatMap((A) =>
    widths.map((d): Case => {
      const B = integers(300 * d, 3)
      return { kernel: 'spmm', inputs: { tensors: { A, B }, params: { d, n: 300 } } }
    }),
  ),
  ...widths.map((d): Case => {
    const [m, n] = uneven.shape as [number, number]
    const tensors = { A: uneven, X: integers(m * d, 3), Y: integers(n * d, 4) }
    return { kernel: 'sddmm', inputs: { tensors, params: { d } } }
  }),
  ...matrices.map((A): Case => ({ kernel: 'spmv', inputs: { tensors: { A, x: integers(A.shape[1]!, 3) } } })),
  ...matrices.map((A): Case => ({ kernel: 'softmax', inputs: { tensors: { A } } })),
  { kernel: 'gemm', inputs: { params: { m: 33, n: 17, k: 9, alpha: 2 }, seed: 1 } },
  { kernel: 'gemm', inputs: { params: { m: 2048, n: 1024, k: 64, alpha: 2 } }, large: true },
  { kernel: 'gemm', inputs: { params: { m: 2049, n: 1024, k: 64, alpha: 2 } }, large: true },
  { kernel: 'gemm', inputs: { params: { m: 1000, n: 600, k: 64, alpha: 2 } }, large: true },
]
const NAMES = [...new Set(CASES.map((c) => c.kernel))]
const casesOf = (name: string) => CASES.filter((c) => c.kernel === name)
const kernelOf = async (name: string): Promise<Kernel> =>
  (await load(`kernels/${name}.spt`)).kernel(name).schedule('auto')

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  beforeAll(async () => {
    device = await devices[kind]()
  }, 120_000)
  afterAll(() => device.dispose())

  test.each(NAMES)('%s agrees with the reference, whatever is chosen', async (name) => {
    const compiled = await (await kernelOf(name)).compile(device)
    for (const c of casesOf(name).filter((x) => !x.large)) {
      const prepared = await compiled.prepare(c.inputs)
      const v = await prepared.verify()
      expect(v.problems, prepared.choice?.text).toEqual([])
      prepared.free()
    }
    compiled.release()
  })
})

test.each(NAMES)('every branch of %s is chosen for some of these data', async (name) => {
  const kernel = await kernelOf(name)
  const program = await load(`kernels/${name}.spt`)
  const source = program.sources.get(`kernels/${name}.spt`)!.text
  const branches = /schedule \w+\.auto choose \{([^}]*)\}/.exec(source)![1]!.match(/^ {2}(when|otherwise)/gm)!
  const seen = new Set<number>()
  const texts = new Map<string, string>()
  for (const on of ['cpu', 'webgpu', 'cuda'] as readonly DeviceKind[])
    for (const c of casesOf(name)) {
      const variant = await kernel.choose(on, c.inputs)
      seen.add(variant.chosen.span.start)
      if (on === 'cuda')
        for (const t of variant.kernel.emit('cuda')) texts.set(`${variant.chosen.text} ${t.name}`, t.text)
    }
  expect(seen.size).toBe(branches.length)
  if (spawnSync('nvcc', ['--version']).status === 0) expect(nvcc([...texts.values()])).toBe('')
})
