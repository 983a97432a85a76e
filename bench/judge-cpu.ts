/**
 * The cost model on cpu, judged on schedules that were measured there: of each case some points of the kernel's space for cpu,
 * and what runs unasked, interleaved. Appends lines of JSON to `--out` and goes on where it stopped; `--judge` measures nothing.
 *
 * ```
 * node dist/bench/judge-cpu.js --out times.jsonl [--data FOLDER] [--matrices road:4000:1,cora.mtx] [--minutes 5] [--share K/N]
 * node dist/bench/judge-cpu.js --judge times.jsonl [--data FOLDER] [--model FILE.json]
 * ```
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { devices, type Kernel, load } from '../src/node.ts'
import { Random } from '../src/run/bind/random-tensors.ts'
import { termsOn } from '../src/search/model/prediction.ts'
import { statisticsOf } from '../src/search/model/statistics.ts'
import type { Structure } from '../src/search/model/structure.ts'
import { standardOf } from '../src/search/tune/standard.ts'
import { costModel, measureRounds, sketches } from '../src/search.ts'
import { FAMILIES } from './families.ts'
import { inputs as inputsOf, structured } from './gpu/declared.ts'
import { type Csr, describe, sources } from './gpu/matrix.ts'
import { judgement, type Timing } from './model/processor.ts'
import { count, option, table } from './support.ts'

/** Kernels with the sizes besides those of the matrix. */
const SUITES: readonly (readonly [kernel: string, widths: readonly number[]])[] = [
  ['spmm', [8, 32, 128]],
  ['spmv', [1]],
  ['sddmm', [16, 64]],
  ['softmax', [1]],
]
const MATRICES = [
  ...Object.keys(FAMILIES).map((f) => `${f}:4000:1`),
  ...[
    'cora.mtx',
    'citeseer.mtx.gz',
    'pubmed.mtx.gz',
    'ca-condmat.mtx.gz',
    'bcsstk16.npz',
    'radixnet-1024.npz',
  ],
]
/** Of each space. */
const POINTS = count('points', 18)
/** Elements times width: what takes longer says nothing else, and takes long. */
const MOST = 4e7

const random = (text: string): Random =>
  new Random([...text].reduce((h, c) => (Math.imul(h, 31) + c.charCodeAt(0)) | 0, 7) >>> 0)

interface Scheduled {
  readonly name: string
  readonly kernel: Kernel
}

async function schedulesOf(kernel: Kernel, A: Csr, width: number): Promise<Scheduled[]> {
  const { source } = kernel
  const [first] = inputsOf(source)
  const tensors = { [first!.name]: structured(source, [A.rows, A.columns], A, null, 'f32') }
  const params = source.params.some((p) => p.name === 'd') ? { d: width } : {}
  const cpu = await devices.cpu()
  const out = new Map<string, Kernel>()
  const standard = await standardOf(kernel, cpu, { tensors, params })
  out.set(`unasked: ${standard.schedule}`, standard.kernel)
  // The same points for all matrices, where they are points there.
  const draw = random(`${kernel.name} ${width}`)
  const spaces = [
    await kernel.space('cpu_space').on(cpu, { tensors, params }),
    sketches(kernel, { device: 'cpu', formats: {} }),
  ]
  for (const [s, space] of spaces.entries())
    for (let tries = 0, taken = 0; tries < 200 && taken < POINTS; tries++) {
      const point: Record<string, number | string> = {}
      for (let open = space.next(point); open; open = space.next(point))
        point[open.name] = open.values[draw.below(open.values.length)]!
      const name = `${s === 0 ? '' : 'sketch '}${JSON.stringify(point)}`
      if (out.has(name)) continue
      try {
        out.set(name, space.kernel(point))
        taken++
      } catch {
        // Refused: one that is not legal is none.
      }
    }
  return [...out].map(([name, kernel]) => ({ name, kernel }))
}

async function measuredCase(kernel: Kernel, A: Csr, width: number): Promise<Timing[]> {
  const { source } = kernel
  const [first] = inputsOf(source)
  const tensors = { [first!.name]: structured(source, [A.rows, A.columns], A, null, 'f32') }
  const params: Record<string, number> = { m: A.rows, n: A.columns }
  if (source.params.some((p) => p.name === 'd')) params.d = width
  const cpu = await devices.cpu()
  const statistics = statisticsOf(A)
  const structures = new Map<string, Structure>()
  const ready = []
  for (const { name, kernel: scheduled } of await schedulesOf(kernel, A, width))
    try {
      const terms = termsOn(scheduled.compilation, { tensors, params, statistics, structures })
      const compiled = await scheduled.compileAsIs(cpu)
      const prepared = await compiled.prepare({ tensors, params, seed: 1 })
      ready.push({ name, terms, compiled, prepared })
    } catch (e) {
      console.log(`  ${name}: ${e instanceof Error ? e.message.split('\n')[0] : e}`)
    }
  const { outcomes } = await measureRounds(
    cpu,
    ready.map((r) => r.prepared),
    { rounds: 15, seconds: Number(option('seconds') ?? 4), warmups: 3, sampleMs: 0.3 },
  )
  for (const r of ready) {
    r.prepared.free()
    r.compiled.release()
  }
  return ready.flatMap(({ name, terms }, k) => {
    const o = outcomes[k]!
    if (o.status !== 'measured') return []
    const { median: milliseconds } = o.timing
    return [{ kernel: kernel.name, data: A.name, width, name, milliseconds, terms }]
  })
}

const read = (path: string): Timing[] =>
  existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter((l) => l.endsWith('}'))
        .map((l) => JSON.parse(l) as Timing)
    : []

async function collect(out: string): Promise<void> {
  const keyOf = (t: Pick<Timing, 'kernel' | 'data' | 'width'>): string => `${t.kernel} ${t.data} ${t.width}`
  const done = new Set(read(out).map(keyOf))
  const end = performance.now() + 60_000 * Number(option('minutes') ?? 10)
  const [share = 0, shares = 1] = (option('share') ?? '0/1').split('/').map(Number)
  const names = (option('matrices')?.split(',') ?? MATRICES).filter((_, k) => k % shares === share)
  const kernels = new Map<string, Kernel>()
  for (const [name] of SUITES) kernels.set(name, (await load(`sparsetile/kernels/${name}.spt`)).kernel(name))
  for (const source of sources(option('data') ?? 'data', names, false).found) {
    if (performance.now() > end) break
    const A = await source.read()
    console.log(describe(A))
    for (const [name, widths] of SUITES)
      for (const width of widths) {
        if (performance.now() > end || done.has(keyOf({ kernel: name, data: A.name, width }))) continue
        if (A.indices.length * width > MOST) continue
        const times = await measuredCase(kernels.get(name)!, A, width)
        appendFileSync(out, times.map((t) => `${JSON.stringify(t)}\n`).join(''))
      }
  }
}

const [judged, out] = [option('judge'), option('out')]
if (out !== undefined) await collect(out)
if (judged !== undefined) {
  const given = option('model')
  const model = given === undefined ? costModel('cpu') : JSON.parse(readFileSync(given, 'utf8'))
  if (!model) throw new Error('there is no model for cpu')
  console.log(
    table(
      ['kernel', 'cases', 'chosen', 'worst', 'unasked', 'worst', 'Spearman'],
      judgement(read(judged), model),
    ),
  )
}
