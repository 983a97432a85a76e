/** Pruned layers with our kernels on the CPU, and loops in the libraries' place. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { checkSchedules } from '../../bench/gpu/asked.ts'
import { widen } from '../../bench/gpu/blocks.ts'
import { fieldOf, parseCandidate } from '../../bench/gpu/candidates.ts'
import type { Case } from '../../bench/gpu/case.ts'
import { checkProduct } from '../../bench/gpu/contestants.ts'
import { PRECISION } from '../../bench/gpu/expected.ts'
import { Formats } from '../../bench/gpu/formats.ts'
import { layerField } from '../../bench/gpu/layer-contestants.ts'
import { OurDevice, type OurRun } from '../../bench/gpu/ours.ts'
import { Activations, bindLayer, ExpectedLayer, Layer } from '../../bench/gpu/pruned-layers.ts'
import type { LayersAsked, Session } from '../../bench/gpu/session.ts'
import { tileWise } from '../../bench/gpu/suites/tile-wise.ts'
import { breakEven } from '../../bench/gpu/suites/tile-wise-break-even.ts'
import type { CsrMemory, Dense } from '../../bench/peers/cusparse.ts'
import { toF16 } from '../../src/ir/values/half.ts'
import { devices } from '../../src/node.ts'
import { tileElementWise, tileWise as tiles } from '../../src/prune.ts'
import { Folder } from '../cli/support.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { HostBlas } from './host-blas.ts'
import { HostStream } from './host-stream.ts'

const folder = new Folder()
afterAll(() => folder.remove())

const TW = 'tile-wise.spt:pruned_linear_f16.cpu'
const SINGLE = 'tile-element-wise.spt:pruned_linear_f16.tew_cpu'
const OWN = 'tile-wise.spt:pruned_linear_f16.auto'
const HALVED = 'tile-vector-wise.spt:pruned_linear_f16.tvw_cpu'
const BLOCKS = 'block-sparse-f16.spt:block_spmm_f16.cpu(64)'

/** Takes as long as there are weights left, in units of `unit` of them all. */
class Weighed extends OurDevice {
  unit = 1

  override async prepare(...args: Parameters<OurDevice['prepare']>): Promise<OurRun> {
    const run = await super.prepare(...args)
    const first = args[2]
    const of = first.shape.reduce((n, x) => n * x, 1)
    const event = (first.values?.length ?? of) / of / this.unit
    run.measure = async () => ({ event, flushed: event, backToBack: null, repeats: 1 })
    return run
  }
}

/** Rows of single elements, in f16. */
const hostSparse = (stream: HostStream, off: number) => ({
  upload: (A: { readonly indptr: Int32Array; readonly indices: Int32Array }, bits: Uint16Array) => ({
    type: 'f16',
    indptr: stream.upload(A.indptr),
    indices: stream.upload(A.indices),
    values: stream.upload(bits),
  }),
  release: (A: CsrMemory) => stream.free(A.indptr, A.indices, A.values),
  spmm: (A: CsrMemory, B: Dense, C: Dense) => ({
    facts: { 'preprocessing ms': 1, workspace: 0 },
    enqueue: () => {
      const [indptr, indices] = [stream.ints(A.indptr), stream.ints(A.indices)]
      const [a, b] = [A.values, B.memory].map((x) => widen(new Uint16Array(stream.bytes(x).buffer)))
      const out = new Uint16Array(stream.bytes(C.memory).buffer)
      for (let r = 0; r < C.rows; r++)
        for (let f = 0; f < C.columns; f++) {
          let sum = off
          for (let e = indptr[r]!; e < indptr[r + 1]!; e++) sum += a![e]! * b![indices[e]! * C.columns + f]!
          out[r * C.columns + f] = toF16(sum)
        }
    },
    free() {},
  }),
})

interface Run {
  readonly cases: readonly Case[]
  readonly said: readonly string[]
}

async function run(
  work: (s: Session) => Promise<void>,
  sizes: readonly string[],
  asked: Partial<LayersAsked> = {},
  {
    unit = 1,
    off = 0,
    schedules = [OWN, TW, SINGLE, HALVED, BLOCKS, 'transpose.spt:transpose_f16.auto'],
  } = {},
): Promise<Run> {
  const stream = new HostStream()
  // Nothing here is so large that it takes 256 MiB to flush a cache.
  const cpu = await devices.cpu()
  const device = new Weighed(Object.assign(cpu, { limits: { ...cpu.limits, maxBufferBytes: 2 ** 20 } }))
  device.unit = unit
  const done: Case[] = []
  const said: string[] = []
  const session = {
    cuda: async () => device,
    webgpu: async () => device,
    stream: async () => stream,
    cublas: async () => new HostBlas(stream, 1 + off),
    cusparse: async () => hostSparse(stream, off),
    options: {
      schedules,
      quick: false,
      matrices: sizes,
      layers: { sparsities: [0.75], breakEven: false, on: 'cuda', ...asked },
    },
    cases: done,
    ceilings: undefined,
    culprits: new Map(),
    late: () => false,
    has: () => false,
    say: (text: string) => void said.push(text),
    done: async (c: Case) => void done.push(c),
  } as unknown as Session
  await work(session)
  expect(stream.live.size).toBe(0)
  await device.close()
  return { cases: done, said }
}

const outcomes = (c: Case): string[] => c.entries.map((e) => `${e.name} ${e.result} ${e.note}`.trim())
const DENSE = ['cuBLAS, W X ok', 'cuBLAS, X Wᵀ ok']
const CSR = ['DEFAULT', 'ALG1', 'ALG2', 'ALG3'].map((a) => `cuSPARSE CSR ${a}`)

test('every pattern has a kernel and a mask, and compared results are correct', async () => {
  const { cases, said } = await run(tileWise, ['160x48x24', '48x160x24'])
  const one = cases.filter((c) => c.data === '160 × 48, M = 24')
  expect(one.map((c) => [c.suite, c.at, ...outcomes(c)])).toEqual([
    ['tile-wise-tw', '75 %', ...DENSE, `${OWN} ok`, `${TW} ok`],
    ['tile-wise-tew', '75 %', ...DENSE, `${OWN} ok`, `${TW} ok`, `${SINGLE} ok`],
    ['tile-wise-tvw', '75 %', ...DENSE, `${OWN} ok`, `${TW} ok`, `${HALVED} ok`],
    ['tile-wise-bw', '75 %', ...DENSE, `${BLOCKS} ok`],
    ['tile-wise-dense', '75 %', ...DENSE, `${OWN} ok`, `${TW} ok`],
    ['tile-wise-ceiling', '75 %', 'cuBLAS, 16 inputs ok', `${OWN} ok`, `${TW} ok`],
    ['tile-wise-csr', '75 %', ...CSR.map((n) => `${n} ok`), `${OWN} ok`, `${TW} ok`],
  ])
  // Everyone is measured, not only the fastest.
  expect(cases.every((c) => c.suite === 'tile-wise-ffn' || c.entries.every((e) => e.times !== null))).toBe(
    true,
  )
  expect(cases.at(-1)).toMatchObject({ suite: 'tile-wise-ffn', data: '48 → 160 → 48, M = 24', at: '75 %' })
  expect(outcomes(cases.at(-1)!)).toEqual(
    [OWN, TW].map((c) => `${c} twice, between transpose.spt:transpose_f16.auto ok`),
  )
  expect(said.at(-1)).toMatch(/75 % +tile-wise-tw +\S+ \(/)
})

test('candidates exist, and requested ones replace those with their name, otherwise of their file', async () => {
  const fields = Object.keys(JSON.parse(readFileSync('bench/candidates.json', 'utf8'))).filter((f) =>
    f.startsWith('tile-wise-'),
  )
  const texts = fields.flatMap((f) => fieldOf(f, []).candidates.map((c) => c.text))
  expect(texts.length).toBeGreaterThan(20)
  await checkSchedules(texts, ['tile-wise'], ['tile-wise'])
  const names = (suite: string, ...asked: string[]): string[] =>
    layerField(suite, asked).candidates.map((c) => c.text)
  const wide = 'tile-wise.spt:pruned_linear_f16.wgmma(128,64,5)'
  const rows = ['tile-wise-tw', 'tile-wise-tew', 'tile-wise-bw', 'tile-wise-dense']
  const usual = rows.map((r) => names(r))
  expect(rows.map((r) => names(r, wide))).toEqual([[wide], ...usual.slice(1)])
  expect(rows.map((r) => names(r, TW))).toEqual([[TW], [TW], usual[2], [TW]])
  const own = 'mine.spt:pruned_linear_f16.mine'
  expect(rows.map((r) => names(r, own))).toEqual([[own], [own], usual[2], [own]])
})

test('errors of libraries are detected; an impossible sparsity is reported', async () => {
  const { cases, said } = await run(tileWise, ['64x32x16'], { sparsities: [0.25] }, { off: 0.05 })
  const peers = cases.flatMap((c) => c.entries.filter((e) => e.side === 'peer'))
  expect(peers.length).toBeGreaterThan(0)
  expect(new Set(peers.map((e) => e.result))).toEqual(new Set(['wrong']))
  expect(said.some((t) => t.includes('is left out: prune/'))).toBe(true)
})

property([fc.double({ min: 0.15, max: 0.85, noNaN: true })], { numRuns: runs(1) })(
  'the break-even sparsity is found to 2 %, and the dispatch is compared with the dense product',
  async (unit) => {
    // The library takes 1, tiles as much of 1 / unit as is left of them.
    const layer = new Layer({ outputs: 300, inputs: 64, columns: 4 }, 3)
    const both = [OWN, TW]
    const { cases, said } = await run((s) => breakEven(s, [layer]), [], {}, { unit, schedules: both })
    const [, at] = /faster than dense cuBLAS from (\S+) % on/.exec(said.join('\n')) ?? []
    // A mask is below its sparsity by less than a column of a tile.
    expect(Math.abs(Number(at) / 100 - (1 - unit))).toBeLessThan(0.02 + 0.02)
    expect(said.join('\n')).toMatch(/what is chosen takes \S+ of dense cuBLAS's time at worst \(0 %\), more/)
    expect(cases.length).toBeGreaterThan(5)
  },
)

test('on WebGPU tiles are compared with our dense product', async () => {
  const asked = ['tile-wise.spt:pruned_linear.auto', 'gemm.spt:gemm.auto']
  const { cases } = await run(tileWise, ['96x40x20'], { on: 'webgpu' }, { schedules: asked })
  expect(cases.map((c) => [c.suite, ...c.entries.map((e) => `${e.side} ${e.name} ${e.result}`)])).toEqual([
    ['tile-wise-webgpu', `peer dense ${asked[1]} ok`, `ours ${asked[0]} ok`],
  ])
})

test('a format with a set parameter gets the elements in tiles, and the remainder the others', async () => {
  const path = folder.file(
    'tew.spt',
    `import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/tile-wise.spt"
format tew(g, m: set) over (j, k) {
  part tiles = tile_wise(g, 1) where (held(m))
  part rest = csr
}
schedule pruned_linear_f16.tew(g = 8) {
  W as tew(g, kept)
}`,
  )
  const device = new OurDevice(await devices.cpu())
  const layer = new Layer({ outputs: 30, inputs: 24, columns: 5 }, 7)
  const X = new Activations(layer.size, 8)
  const kept = await layer.pruned(tileElementWise({ granularity: 8, delta: 0.1 }), 0.5)
  const [rows, columns] = kept.held()
  expect([rows.length, columns.length]).toEqual([rows.length, rows.length])
  expect(kept.bits.length - rows.length).toBeGreaterThan(60)
  const formats = new Formats()
  const candidate = parseCandidate(`${path}:pruned_linear_f16.tew`)
  const run = await bindLayer(device, candidate, formats, kept, X.bits, layer.bias)
  expect(await checkProduct(run, new ExpectedLayer(kept, X, layer).of(true))).toMatchObject({ problem: '' })
  const { parts } = await run.built.parts!.download()
  expect(parts.map((p) => p.values?.length)).toEqual([expect.any(Number), kept.bits.length - rows.length])
  run.free()
  await formats.free()
  await device.close()
})

test('a missing or superfluous bias is detected', async () => {
  const layer = new Layer({ outputs: 20, inputs: 12, columns: 8 }, 5)
  const X = new Activations(layer.size, 6)
  const kept = await layer.pruned(tiles({ granularity: 4 }), 0.5)
  const expected = new ExpectedLayer(kept, X, layer)
  const Y = new Float32Array(20 * 8)
  for (let r = 0; r < 20; r++)
    for (let e = kept.csr.indptr[r]!; e < kept.csr.indptr[r + 1]!; e++)
      for (let f = 0; f < 8; f++)
        Y[r * 8 + f]! += kept.csr.values[e]! * X.values[kept.csr.indices[e]! * 8 + f]!
  const biased = Y.map((y, at) => y + layer.bias[Math.floor(at / 8)]!)
  const right = (isBiased: boolean, values: Float32Array): boolean =>
    expected.of(isBiased).check(values, PRECISION.f16).ok
  expect([right(false, Y), right(true, biased), right(true, Y), right(false, biased)]).toEqual([
    true,
    true,
    false,
    false,
  ])
})
