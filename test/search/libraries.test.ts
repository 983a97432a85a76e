/** Routines of libraries: recognised by structure, compared with the reference, tuned with schedules, told as what they are. */

import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { matchKernel } from '../../src/analysis/kernel-pattern.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { tuneText } from '../../src/cli/tune/tune-report.ts'
import { coords, devices, load } from '../../src/node.ts'
import { tuneReport } from '../../src/notebook/report/index.ts'
import { libraryRoutines } from '../../src/search/evaluate/library-routines.ts'
import { openRecords } from '../../src/search/records/index.ts'
import { tune } from '../../src/search/tune/index.ts'
import { Folder } from '../cli/support.ts'
import { codeOf, failure } from '../support/device-suite.ts'
import { property } from '../support/property.ts'
import { simulated } from '../support/simulated-device.ts'
import { FakeLibrary } from './fake-library.ts'

const folder = new Folder()
afterAll(() => folder.remove())
const TEXT = readFileSync('data/libraries/cuda.spt', 'utf8')
const patterns = await load(TEXT)
const names = patterns.kernels
const spmm = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm')
const DENSE = parseProgram(`format dense over (i0, i1) {
  axis j0 = dense_fixed(i0)
  axis j1 = dense_fixed(i1)
  map (i0, i1) -> (i0, i1)
  inverse (j0, j1) -> (j0, j1)
}`).formats.get('dense')!
/** Those that compute what a kernel does. */
const found = (kernel: Parameters<typeof matchKernel>[1]): string[] =>
  names.filter((name) => matchKernel(patterns.kernel(name).source, kernel))

test('a densely stored matrix is recognised', async () => {
  const kernel = spmm.as('A', DENSE)
  expect(found(kernel.compilation.kernel)).toEqual(['dense_times_dense'])
})

test('packaged kernels are recognised under any name', async () => {
  const of = async (file: string, kernel: string): Promise<string[]> =>
    found((await load(`sparsetile/kernels/${file}.spt`)).kernel(kernel).source)
  expect(await of('spmm', 'spmm')).toEqual(['sparse_times_dense'])
  expect(await of('spmv', 'spmv')).toEqual(['sparse_times_vector'])
  expect(await of('sddmm', 'sddmm_pattern')).toEqual(['products_at_entries'])
  expect(await of('gemm', 'gemm')).toEqual(['dense_times_dense_scaled'])
  expect(await of('gemm-f16', 'gemm<f16>')).toEqual(['dense_times_dense_f16'])
  expect(await of('gemm-f16', 'gemm<bf16>')).toEqual(['dense_times_dense_bf16'])
  for (const [file, kernel] of [
    ['spmm-reducers', 'spmm_max'],
    ['spmm-reducers', 'spmm_mean'],
    ['sddmm', 'sddmm'],
    ['softmax', 'softmax'],
    ['narrow-types', 'spmm_half'],
    ['spmm-transposed', 'spmm_transposed'],
  ] as const)
    expect([kernel, await of(file, kernel)]).toEqual([kernel, []])
})

/** Names of the pattern, and others for them. */
const NAMES = ['m', 'n', 'd', 'k', 'i', 'j', 'jd', 'f', 'p', 'A', 'B', 'C', 'X', 'Y', 'x', 'y', 'AB', 'alpha']
const renaming = fc
  .shuffledSubarray(
    [...'abcdefghijklmnopqrst'].map((c) => `${c}${c}`),
    { minLength: NAMES.length },
  )
  .map((others) => new Map(NAMES.map((n, k) => [n, others[k]!])))

property([fc.constantFrom(...names), renaming, fc.boolean(), fc.nat(5)])(
  'other names and another order of loops and factors give the same kernel',
  async (name, renamed, swap, rotate) => {
    const whole = new RegExp(`kernel ${name}\\([^]*?\\n}\\n`).exec(TEXT)![0]
    const factors = swap ? whole.replace(/= (\w+\[[^\]]*\]|alpha) \* (\w+\[[^\]]*\])/, '= $2 * $1') : whole
    const turned = factors.replace(
      /iterate (\w+) \[([^\]]*)\] as (\w+)/g,
      (_, n: string, iters: string, kinds: string) => {
        const list = iters.split(', ').map((x, k) => [x, kinds[k]!] as const)
        // A sparse axis comes after its parent.
        const order = [...list.slice(rotate % list.length), ...list.slice(0, rotate % list.length)]
        const at = (x: string): number => order.findIndex(([y]) => y === x)
        const legal = !whole.includes('sparse_variable') || at('j') > at('i')
        const used = legal ? order : list
        return `iterate ${n} [${used.map(([x]) => x).join(', ')}] as ${used.map(([, k]) => k).join('')}`
      },
    )
    const text = turned.replace(/\b[A-Za-z_]+\b/g, (word) =>
      /^(SRS|SR|SSR|SS)$/.test(word) ? word : (renamed.get(word) ?? word),
    )
    const kernel = (await load(text)).kernel(name).source
    expect(found(kernel)).toEqual([name])
    const match = matchKernel(patterns.kernel(name).source, kernel)!
    for (const [from, to] of [...match.buffers, ...match.axes]) expect(to).toBe(renamed.get(from))
  },
)

property([
  fc.constantFrom(
    ['C[i, f] += A[i, j] * B[j, f]', 'C[i, f] += A[i, j] + B[j, f]'],
    ['C[i, f] += A[i, j] * B[j, f]', 'C[i, f] max= A[i, j] * B[j, f]'],
    ['C[i, f] += A[i, j] * B[j, f]', 'C[i, f] += A[i, j] * A[i, j] * B[j, f]'],
    ['C[i, f] += A[i, j] * B[j, f]', 'C[i, f] += A[i, j] * B[j, f] * B[j, f]'],
    ['axis jd = dense_fixed(n)', 'axis jd = dense_fixed(max(m, n))'],
    ['buffer A: f32', 'buffer A: f16'],
    ['buffer C: f32[i, f]  out', 'buffer C: f32[i, f]  inout'],
  ),
])('other computations are not recognised', async ([from, to]) => {
  const whole = /kernel sparse_times_dense\([\s\S]*?\n}\n/.exec(TEXT)![0]
  expect(whole).toContain(from)
  expect(found((await load(whole.replace(from!, to!))).kernel().source)).toEqual([])
})

const matrix = fc
  .record({ rows: fc.integer({ min: 1, max: 9 }), columns: fc.integer({ min: 1, max: 9 }), seed: fc.nat(99) })
  .map(({ rows, columns, seed }) => {
    const all = Array.from({ length: rows * columns }, (_, e) => e).filter((e) => (e * 7 + seed) % 3 === 0)
    return coords(
      [rows, columns],
      [all.map((e) => Math.floor(e / columns)), all.map((e) => e % columns)],
      Float32Array.from(all, (e) => (e % 5) - 2),
    )
  })

property([
  fc.constantFrom('spmm spmm A', 'spmv spmv A', 'sddmm sddmm_pattern j'),
  matrix,
  fc.integer({ min: 1, max: 5 }),
])(
  'a routine uses the arrays of the kernel, and its results are compared with the reference',
  async (which, A, d) => {
    const [file, name, bound] = which.split(' ') as [string, string, string]
    const kernel = (await load(`sparsetile/kernels/${file}.spt`)).kernel(name)
    const library = new FakeLibrary()
    const { routines, absent } = libraryRoutines(kernel, library.device)
    expect(absent).toEqual([])
    expect(routines.length).toBeGreaterThan(0)
    const inputs = { tensors: { [bound]: A }, params: name === 'spmv' ? {} : { d }, seed: 3 }
    for (const routine of routines) {
      expect(routine.name).toMatch(/^cuSPARSE 12\.5\.7: S/)
      const prepared = await (await routine.compile()).bind(...flatInputs(inputs))
      expect((await prepared.verify()).problems).toEqual([])
      // As it is measured: recorded once, and replayed.
      const graph = await prepared.graph()
      graph.launch()
      await graph.finish()
      graph.free()
      expect((await prepared.time(2)).length).toBe(2)
      library.error = 1
      expect((await prepared.verify()).ok).toBe(A.coords[0]!.length === 0 && name === 'sddmm_pattern')
      library.error = 0
      prepared.free()
      prepared.free()
    }
    expect([library.live.size, library.driver.held]).toEqual([0, 0])
  },
)

const A = coords(
  [4, 4],
  [
    [0, 1, 2, 2],
    [1, 0, 2, 3],
  ],
  Float32Array.of(1, 2, 3, 4),
)
const inputs = { tensors: { A }, params: { d: 4 }, seed: 1 }

test('missing libraries and unsupported inputs are reported, without leaks', async () => {
  expect(libraryRoutines(spmm, await devices.cpu())).toEqual({ routines: [], absent: [] })
  const none = libraryRoutines(spmm, new FakeLibrary(false).device)
  expect(none.routines).toEqual([])
  expect(none.absent.map((a) => [a.library, a.reason])).toEqual([
    ['cuSPARSE', 'cuSPARSE is not installed, or cannot be loaded'],
  ])
  for (const call of ['cusparseCreateDnMat', 'cusparseSpMM_bufferSize', 'cusparseSpMM_preprocess']) {
    const library = new FakeLibrary()
    const [first] = libraryRoutines(spmm, library.device).routines
    library.failing.set(call, 3)
    const compiled = await first!.compile()
    const error = await failure(() => compiled.bind(...flatInputs(inputs)))
    expect([error[0]!.code, error[0]!.message]).toEqual([
      'device/library',
      `${call} of cuSPARSE 12.5.7 returned status 3`,
    ])
    expect([library.live.size, library.driver.held]).toEqual([0, 0])
  }
  const library = new FakeLibrary()
  const [first] = libraryRoutines(spmm, library.device).routines
  const prepared = await (await first!.compile()).bind(...flatInputs(inputs))
  library.failing.set('cusparseSpMM', 7)
  expect(await codeOf(() => prepared.run())).toBe('device/library')
  library.failing.clear()
  const { commands } = prepared
  prepared.free()
  expect(await codeOf(() => library.device.run(commands))).toBe('device/released-module')
  const other = await (await first!.compile()).bind(...flatInputs(inputs))
  expect(await codeOf(() => new FakeLibrary().device.run(other.commands))).toBe('device/foreign-module')
})

test('tuned together with schedules: the winner is reported as a routine, and recorded', async () => {
  const device = simulated(new FakeLibrary().device)
  const records = await openRecords(folder.at('r.db'))
  const space = await spmm.space('gpu_space').bind('cuda', ...flatInputs(inputs))
  const seen: (string | undefined)[] = []
  const options = { space, inputs, device, trials: 2, seconds: 20, records }
  const result = await tune(spmm, { ...options, onProgress: (p) => seen.push(p.library?.name) })
  // Kernels of the fake write nothing: they differ from the reference.
  expect(result.best?.routine?.library).toBe('cuSPARSE')
  expect(result.bestSchedule).toBeNull()
  expect(new Set(seen)).toEqual(new Set([result.best!.name]))
  expect(result.libraries.trials.map((t) => [t.routine.variant, t.outcome.status])).toEqual(
    ['DEFAULT', 'CSR_ALG1', 'CSR_ALG2', 'CSR_ALG3'].map((v) => [v, 'measured']),
  )
  // Stored dense, it is another library's, which is not there.
  expect(result.libraries.absent.map((a) => a.library)).toEqual(['cuBLAS'])
  const text = tuneText(spmm, 'fake', space.name, result)
  expect(text).toContain('cuSPARSE 12.5.7: SpMM')
  expect(text).toContain('is the fastest: a routine of a library (libraryRoutines), not a schedule')
  expect(tuneReport(result)).toContain('cuSPARSE 12.5.7')
  const kept = records.query({ studies: [result.study!] }).map((t) => Object.values(t.point)[0])
  expect(kept).toEqual(expect.arrayContaining(result.libraries.trials.map((t) => t.name)))
  const without = await tune(spmm, { ...options, libraries: false })
  expect([without.best, without.libraries.trials]).toEqual([null, []])
  records.close()
})
