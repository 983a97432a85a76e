/**
 * Emitted JavaScript against loops written by hand, and (the sparse-dense product) against ml-sparse-matrix:
 * `npm run build && node dist/bench/products.js [--data PATH] [--d 64] [--repeats 21] [--schedules cpu,none]
 * [--kernels spmm,spmv,sddmm] [--library] [--json PATH]`. Values are small integers, so that all results are equal.
 */

import { basename } from 'node:path'
import { type Binding, devices, load, readTensor, type ValueArray } from '../src/node.ts'
import type { CoordTensor, Tensor } from '../src/storage/tensor.ts'
import { contest, duel, type Result, timed } from './contest.ts'
import { type LibraryFigure, mlSparseMatrix } from './library.ts'
import * as peers from './peers.ts'
import { count, isMain, option, packageFile, table, writeJson } from './support.ts'

export interface ProductFigure {
  readonly kernel: string
  readonly data: string
  readonly d: number
  readonly ours: readonly Result[]
  readonly peers: readonly Result[]
  /** The fastest peer, and the best schedule's time over its time. */
  readonly peer: string
  readonly ratio: number
  /** The product with ml-sparse-matrix, where it was asked for. */
  readonly library?: LibraryFigure
}

export interface Options {
  readonly data: string
  readonly d: number
  readonly repeats: number
  readonly schedules: readonly string[]
  readonly library: boolean
}

interface Problem {
  readonly A: peers.Csr
  readonly tensor: CoordTensor
}

const small = (e: number): number => ((e * 7919) % 13) - 6

/** The matrix of a file, with small integer values. */
export async function problem(path: string): Promise<Problem> {
  const t: Tensor = await readTensor(path)
  if (t.kind !== 'coords' || t.shape.length !== 2) throw new Error(`${path} is no sparse matrix`)
  const [i, j] = t.coords as [Int32Array, Int32Array]
  const [rows, columns] = t.shape as [number, number]
  const order = Array.from(i.keys()).sort((a, b) => i[a]! - i[b]! || j[a]! - j[b]!)
  const indptr = new Int32Array(rows + 1)
  for (const row of i) indptr[row + 1]!++
  for (let r = 0; r < rows; r++) indptr[r + 1]! += indptr[r]!
  const indices = Int32Array.from(order, (e) => j[e]!)
  const values = Float32Array.from(order, (_, p) => (p % 5) + 1)
  const tensor: CoordTensor = {
    kind: 'coords',
    shape: [rows, columns],
    coords: [Int32Array.from(order, (e) => i[e]!), indices],
    values,
    dtype: 'f32',
  }
  return { A: { rows, columns, indptr, indices, values }, tensor }
}

/** The kernel under each schedule it has of those asked for, with data. */
async function prepare(
  file: string,
  kernel: string,
  schedules: readonly string[],
  tensors: Readonly<Record<string, Tensor | ValueArray>>,
  params: Readonly<Record<string, number>>,
): Promise<Map<string, Binding>> {
  const program = await load(packageFile(`kernels/${file}`))
  const device = await devices.cpu()
  const out = new Map<string, Binding>()
  for (const s of schedules) {
    const plain = program.kernel(kernel)
    if (s !== 'none' && !plain.schedules.includes(s)) continue
    const compiled = await (s === 'none'
      ? plain.build(device, { auto: false })
      : plain.schedule(s).build(device))
    out.set(s, await compiled.bind({ ...tensors, ...params }))
  }
  return out
}

/** Times all; every result has to equal the first peer's. */
async function compete(
  kernel: string,
  o: Options,
  ours: ReadonlyMap<string, Binding>,
  output: string,
  expected: Float32Array,
  others: Readonly<Record<string, () => void>>,
): Promise<ProductFigure> {
  const entries: Record<string, () => number | Promise<number>> = {}
  for (const [schedule, prepared] of ours) {
    await prepared.run()
    same(await prepared.executable.values(output), expected, `${kernel}, schedule ${schedule}`)
    entries[`ours ${schedule}`] = async () => (await prepared.time(1))[0]!
  }
  const first = expected.slice()
  for (const [name, run] of Object.entries(others)) {
    expected.fill(Number.NaN)
    run()
    same(expected, first, name)
    entries[name] = timed(run)
  }
  const results = await contest(entries, o.repeats)
  const mine = results.filter((r) => r.name.startsWith('ours '))
  const theirs = results.filter((r) => !r.name.startsWith('ours '))
  const us = fastest(mine)
  const peer = fastest(theirs)
  const ratio = await duel(entries[us.name]!, entries[peer.name]!, o.repeats)
  return { kernel, data: basename(o.data), d: o.d, ours: mine, peers: theirs, peer: peer.name, ratio }
}

const fastest = (results: readonly Result[]): Result =>
  results.reduce((a, b) => (b.median < a.median ? b : a))

function same(got: ValueArray, want: Float32Array, what: string): void {
  if (got.length !== want.length) throw new Error(`${what}: ${got.length} values, not ${want.length}`)
  for (let k = 0; k < want.length; k++)
    if (got[k] !== want[k]) throw new Error(`${what}: element ${k} is ${got[k]}, not ${want[k]}`)
}

export async function spmmFigure(o: Options): Promise<ProductFigure> {
  const { A, tensor } = await problem(o.data)
  const { d } = o
  const B = Float32Array.from({ length: A.columns * d }, (_, e) => small(e))
  const C = new Float32Array(A.rows * d)
  peers.spmmPlain(A, B, C, d)
  const ours = await prepare('spmm.spt', 'spmm', o.schedules, { A: tensor, B }, { d })
  const figure = await compete('spmm', o, ours, 'C', C, {
    'plain loop': () => peers.spmmPlain(A, B, C, d),
    'features unrolled by 4': () => peers.spmmUnrolled(A, B, C, d),
    '4 local sums': () => peers.spmmLocals4(A, B, C, d),
    '8 local sums': () => peers.spmmLocals8(A, B, C, d),
  })
  return o.library ? { ...figure, library: mlSparseMatrix(A, B, d, C) } : figure
}

export async function spmvFigure(o: Options): Promise<ProductFigure> {
  const { A, tensor } = await problem(o.data)
  const x = Float32Array.from({ length: A.columns }, (_, e) => small(e))
  const y = new Float32Array(A.rows)
  peers.spmv(A, x, y)
  const ours = await prepare('spmv.spt', 'spmv', o.schedules, { A: tensor, x }, {})
  return compete('spmv', o, ours, 'y', y, { 'local sum': () => peers.spmv(A, x, y) })
}

export async function sddmmFigure(o: Options): Promise<ProductFigure> {
  const { A, tensor } = await problem(o.data)
  const { d } = o
  const X = Float32Array.from({ length: A.rows * d }, (_, e) => small(e))
  const Y = Float32Array.from({ length: A.columns * d }, (_, e) => small(e + 3))
  const C = new Float32Array(A.values.length)
  peers.sddmm(A, X, Y, C, d)
  const ours = await prepare('sddmm.spt', 'sddmm', o.schedules, { A: tensor, X, Y }, { d })
  return compete('sddmm', o, ours, 'C', C, {
    'local sum': () => peers.sddmm(A, X, Y, C, d),
    '4 local sums': () => peers.sddmmUnrolled(A, X, Y, C, d),
  })
}

const FIGURES = { spmm: spmmFigure, spmv: spmvFigure, sddmm: sddmmFigure } as const

export const productOptions = (): Options => ({
  data: option('data') ?? packageFile('data/cora.mtx'),
  d: count('d', 64),
  repeats: count('repeats', 21),
  schedules: (option('schedules') ?? 'cpu').split(','),
  library: process.argv.includes('--library'),
})

export const productTable = (figures: readonly ProductFigure[]): string =>
  table(
    ['kernel', 'what', 'median ms', 'best ms'],
    figures.flatMap((f) => [
      ...[...f.ours, ...f.peers].map((r) => [f.kernel, r.name, r.median, r.best]),
      ...(f.library ? [[f.kernel, f.library.name, f.library.median, f.library.best]] : []),
    ]),
  )

if (isMain(import.meta.url)) {
  const o = productOptions()
  const figures: ProductFigure[] = []
  for (const k of (option('kernels') ?? 'spmm,spmv,sddmm').split(','))
    figures.push(await FIGURES[k as keyof typeof FIGURES](o))
  console.log(`${o.data}, d = ${o.d}, median of ${o.repeats} interleaved runs\n`)
  console.log(productTable(figures))
  for (const f of figures)
    console.log(`${f.kernel}: ${f.ratio.toFixed(2)} × the time of ${f.peer}, the fastest loop by hand`)
  writeJson(figures)
}
