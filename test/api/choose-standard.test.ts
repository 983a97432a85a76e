/** The choices of the shipped kernels: every branch is for something, and gives the right result. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { choiceUse, type Decision, decide } from '../../src/api/decide.ts'
import { loadProgram } from '../../src/ast/resolve-imports.ts'
import { Random } from '../../src/bind/random.ts'
import { type Branch, elaborate } from '../../src/ir/elaborate/index.ts'
import { brokenFact, factText } from '../../src/ir/facts.ts'
import type { Fact } from '../../src/ir/loops.ts'
import { coords, type Device, devices, type Kernel, load, type RunInputs } from '../../src/node.ts'
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
  ...[8, 16, 5].map((b): Case => {
    const j = { ...rowsOf([2, 0, 3, 1], 5), values: null }
    const tensors = { j, X: integers(4 * b * 32, 3), Y: integers(5 * b * 32, 4) }
    return { kernel: 'block_sddmm_f16', inputs: { tensors, params: { b, d: 32 } } }
  }),
  {
    kernel: 'block_spmm_f16',
    inputs: { tensors: { A: short, B: integers(300 * 20, 3) }, params: { d: 20 } },
  },
]
const NAMES = [...new Set(CASES.map((c) => c.kernel))]
const casesOf = (name: string) => CASES.filter((c) => c.kernel === name)
/** Of kernels that are not called like their files. */
const FILES: Readonly<Record<string, string>> = {
  block_sddmm_f16: 'sddmm-block',
  block_spmm_f16: 'block-sparse-f16',
}
const fileOf = (name: string): string => `kernels/${FILES[name] ?? name}.spt`
const kernelOf = async (name: string): Promise<Kernel> =>
  (await load(fileOf(name))).kernel(name).schedule('auto')

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  beforeAll(async () => {
    device = await devices[kind]()
  }, 120_000)
  afterAll(() => device.dispose())

  test.each(NAMES)('%s agrees with the reference, whatever is chosen', async (name) => {
    const compiled = await (await kernelOf(name)).compile(device)
    for (const c of casesOf(name)) {
      const prepared = await compiled.prepare(c.inputs)
      const v = await prepared.verify()
      expect(v.problems, prepared.choice?.text).toEqual([])
      prepared.free()
    }
    compiled.release()
  })
})

/** Of the parameters that choices have. */
const ARGUMENTS: Readonly<Record<string, readonly number[]>> = { b: [4, 8, 16, 32, 64, 128] }
const SIZES = [0, 1, 4, 8, 16, 20, 32, 64, 96, 128, 132, 256, 512, 1000, 1024, 2048, 4096, 1_000_000]

/** A figure of some data: often, of rows with n columns, a share that dense ones have. */
function anything(name: string, random: Random, n = 0): number {
  if (name === 'capability') return 7 + random.below(4)
  if (name.startsWith('mean(') && random.next() < 0.5) return 0.4 * random.next() * n
  return Math.floor(10 ** (8 * random.next()))
}

test.each(NAMES)(
  'every branch of %s is for some data, only for what it can do, and CUDA takes it',
  async (name) => {
    const file = fileOf(name)
    const parsed = await loadProgram(file, async (path) => readFileSync(path, 'utf8'))
    const choice = elaborate(parsed).choices.get(name)!.get('auto')!
    const kernel = (await load(file)).kernel(name)
    const sizes = kernel.compilation.source.params.filter((p) => p.kind === 'size').map((p) => p.name)
    const random = new Random(7)
    const found = new Map<Branch, Decision>()
    const facts = new Map<string, readonly Fact[]>()
    for (let k = 0; k < 40_000; k++) {
      const on = (['cpu', 'webgpu', 'cuda'] as const)[k % 3]!
      const known = new Map(sizes.map((n) => [n, SIZES[random.below(SIZES.length)]!]))
      const given = choice.params.map(({ name: p }) => ARGUMENTS[p]![random.below(ARGUMENTS[p]!.length)]!)
      const decision = decide(choiceUse(choice, given), (v) => {
        if (v.dtype === 'bool') return v.name === on ? 1 : 0
        const value = known.get(v.name) ?? anything(v.name, random, known.get('n'))
        known.set(v.name, value)
        return value
      })
      if (!found.has(decision.branch)) found.set(decision.branch, decision)
      const { schedule, args } = decision.chosen
      const key = `${schedule}(${args})`
      if (!facts.has(key)) facts.set(key, kernel.schedule(schedule, ...args).compilation.loops.facts ?? [])
      const broken = brokenFact(facts.get(key), known)
      expect(broken && `${key} requires ${factText(broken)}`, JSON.stringify([...known])).toBeUndefined()
    }
    const unused = choice.branches
      .filter((b) => !found.has(b))
      .map((b) => b.conditions.map((c) => c.text).join(' and '))
    expect(unused).toEqual([])
    const texts = [...found.values()].flatMap(({ chosen }) =>
      kernel
        .schedule(chosen.schedule, ...chosen.args)
        .parallel()
        .emit('cuda'),
    )
    if (spawnSync('nvcc', ['--version']).status === 0) expect(nvcc(texts.map((t) => t.text))).toBe('')
  },
)
