/** The choices of the shipped kernels: every branch is for something, and gives the right result. */

import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Decision, decide, dispatchCall } from '../../src/api/dispatch/dispatch-conditions.ts'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { elaborate } from '../../src/elaborate/index.ts'
import { factText } from '../../src/ir/print/fact-text.ts'
import type { Fact } from '../../src/ir/statements/loops.ts'
import { coords, type Device, devices, type Kernel, load } from '../../src/node.ts'
import { brokenFact } from '../../src/plan/interpret.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import { loadProgram } from '../../src/schedule/steps/language.ts'
import { isTurnOf, LONG, sample } from '../support/cases.ts'
import { integers } from '../support/kernels.ts'
import { compileTogether, noNvcc } from '../support/nvcc.ts'
import { wgslErrors } from '../support/wgsl-valid.ts'

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
const widths = [0, 1, 4, 20, 32, 33, 50, 64, 96, 132]
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
  { kernel: 'gemm<f16>', inputs: { params: { m: 64, n: 64, k: 32 }, seed: 1 } },
]
const NAMES = [...new Set(CASES.map((c) => c.kernel))]
const casesOf = (name: string) => CASES.filter((c) => c.kernel === name)
/** Of kernels that are not called like their files. */
const FILES: Readonly<Record<string, string>> = {
  block_sddmm_f16: 'sddmm-block',
  block_spmm_f16: 'block-sparse-f16',
  'gemm<f16>': 'gemm-f16',
}
const fileOf = (name: string): string => `kernels/${FILES[name] ?? name}.spt`
const kernelOf = async (name: string): Promise<Kernel> =>
  (await load(fileOf(name))).kernel(name).schedule('auto')

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  beforeAll(async () => {
    device = await devices[kind]()
  })
  afterAll(() => device.dispose())

  test.each(kind === 'cpu' ? NAMES : sample(NAMES, 3))(
    '%s agrees with the reference under every branch of the dispatch',
    async (name) => {
      const compiled = await (await kernelOf(name)).build(device)
      for (const c of casesOf(name)) {
        const prepared = await compiled.bind(...flatInputs(c.inputs))
        const v = await prepared.verify()
        expect(v.problems, prepared.selection?.text).toEqual([])
        prepared.free()
      }
      compiled.release()
    },
  )
})

/** Of the parameters that choices have. */
const ARGUMENTS: Readonly<Record<string, readonly number[]>> = { b: [4, 8, 16, 32, 64, 128] }
const SIZES = [
  0, 1, 2, 4, 8, 12, 14, 16, 20, 32, 33, 48, 50, 64, 66, 67, 96, 128, 130, 131, 132, 200, 256, 512, 1000,
  1024, 2048, 4096, 1_000_000,
]

/** A figure of some data: often, of rows with n columns, a share that dense ones have. */
function anything(name: string, random: Random, n = 0): number {
  if (name === 'capability') return 7 + random.below(4)
  if (name === 'processors') return [1, 20, 132][random.below(3)]!
  if (name === 'cost_model' || name.startsWith('has(')) return random.below(2)
  if (name.startsWith('mean(') && random.next() < 0.5) return 0.4 * random.next() * n
  return Math.floor(10 ** (8 * random.next()))
}

/** Milliseconds: dozens of schedules are compiled for CUDA. */
const MINUTES = 300_000

test.each(sample(NAMES, 2))(
  'every branch of %s is selected for some data, is legal there, and its code compiles',
  async (name) => {
    const file = fileOf(name)
    const parsed = await loadProgram(file, async (path) => readFileSync(path, 'utf8'))
    const choice = elaborate(parsed).choices.get(name)!.get('auto')!
    const kernel = (await load(file)).kernel(name)
    const sizes = kernel.compilation.source.params.filter((p) => p.kind === 'size').map((p) => p.name)
    const random = new Random(7)
    const calls: Decision['call'][] = choice.branches.flatMap((b) => b.calls)
    const found = new Map<Decision['call'], Decision>()
    /** What is for WebGPU alone can have instructions that CUDA has not. */
    const devices = new Map<Decision['call'], Set<string>>()
    const facts = new Map<string, readonly Fact[]>()
    for (let k = 0; k < 100_000; k++) {
      const on = (['cpu', 'webgpu', 'cuda'] as const)[k % 3]!
      const known = new Map(sizes.map((n) => [n, SIZES[random.below(SIZES.length)]!]))
      const given = choice.params.map(({ name: p }) => ARGUMENTS[p]![random.below(ARGUMENTS[p]!.length)]!)
      // Seldom does it take all of them until every branch was chosen.
      if (!LONG && k > 10_000 && found.size === calls.length) break
      const decisions = decide(dispatchCall(choice, given), (v) => {
        const asked = choice.device.get(v.name)
        if (asked?.kind === 'is') return asked.device === on ? 1 : 0
        // What only some devices tell is asked of those alone.
        if ((asked?.kind === 'processors' && on !== 'cuda') || (asked?.kind === 'has' && on === 'cpu'))
          throw new Error(`${v.name} is asked of ${on}`)
        const value = known.get(v.name) ?? anything(v.name, random, known.get('n'))
        known.set(v.name, value)
        return value
      })
      for (const decision of decisions) {
        if (!found.has(decision.call)) found.set(decision.call, decision)
        devices.set(decision.call, (devices.get(decision.call) ?? new Set()).add(on))
        // What a schedule requires is known when it is compiled: of some calls for each seed.
        if (!isTurnOf(calls.indexOf(decision.call), 3)) continue
        const { schedule, args } = decision.selection
        const key = `${schedule}(${args})`
        if (!facts.has(key)) facts.set(key, kernel.schedule(schedule, ...args).compilation.loops.facts ?? [])
        const broken = brokenFact(facts.get(key), known)
        // Of several those are taken that the data fit.
        if (broken && decisions.length === 1)
          throw new Error(`${key} requires ${factText(broken)}: ${JSON.stringify([...known])}`)
      }
    }
    const unused = choice.branches
      .filter((b) => b.calls.some((c) => !found.has(c)))
      .map((b) => b.conditions.map((c) => c.text).join(' and '))
    expect(unused).toEqual([])
    const texts = (target: 'cuda' | 'wgsl') =>
      sample(
        [...found.values()].filter(
          ({ call }) => ([...devices.get(call)!].join() === 'webgpu') === (target === 'wgsl'),
        ),
        3,
      ).flatMap(({ selection }) =>
        kernel
          .schedule(selection.schedule, ...selection.args)
          .parallel()
          .emit(target),
      )
    for (const { text } of texts('wgsl')) expect(await wgslErrors(text)).toEqual([])
    const cuda = texts('cuda')
    if (!noNvcc) expect(compileTogether(sample(cuda, 1).map((t) => t.text))).toBe('')
  },
  MINUTES,
)

test('the longest block rows share an SM with the shortest if all are resident', async () => {
  const device = { kind: 'cuda', features: new Set(['sm_90']), limits: { processors: 132 } } as const
  const open = (await load(fileOf('block_spmm_f16'))).kernel('block_spmm_f16')
  const chosen = async (b: number, m: number, d: number) => {
    const given = { params: { m, n: 4096, d }, statistics: { 'mean(j)': 400 } }
    return (await open.schedule('auto', b).choose(device, ...flatInputs(given))).selection.text
  }
  expect(await chosen(64, 4096, 512)).toBe('serpentine(64, wave = 33)')
  expect(await chosen(128, 4096, 512)).toBe('serpentine(128, wave = 17)')
  expect(await chosen(64, 4224, 512)).toBe('serpentine(64, wave = 33)')
  expect(await chosen(64, 4288, 512)).toBe('columns_first(64, stages = 4)')
  expect(await chosen(64, 4096, 640)).toBe('columns_first(64, stages = 4)')
  expect(await chosen(128, 16_896, 128)).toBe('serpentine(128, wave = 66)')
})

test('matrix units are used if the device has the product', async () => {
  const open = (await load(fileOf('gemm<f16>'))).kernel('gemm<f16>')
  const product = 'subgroup_matrix(16, 16, 16, f16, f32)'
  const chosen = async (k: number, ...features: string[]) =>
    (await open.choose('webgpu', { m: 128, n: 64, k }, { features })).selection.text
  expect(await chosen(32, 'f16', 'subgroup_size(32)', product)).toBe('subgroup')
  expect(await chosen(48, 'f16', 'subgroup_size(32)', product)).toBe('gpu')
  expect(await chosen(32, 'subgroup_size(32)', product)).toBe('gpu')
  expect(await chosen(32, 'f16', 'subgroup_size(16)', product)).toBe('gpu')
  expect(await chosen(32, 'f16', 'subgroup_size(32)', 'subgroup_matrix(8, 8, 8, f16, f32)')).toBe('gpu')
})
