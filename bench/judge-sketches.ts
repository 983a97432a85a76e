/**
 * What kernels without a schedule run as on a GPU, judged on times of the points of their sketches' spaces that `sketches
 * --as-declared --times` kept: the guess as the rules are now, and the form that the cost model chooses on the data, relative
 * to the best schedule by hand. A form that was not measured has no figure. Needs no device.
 *
 * ```
 * node dist/bench/judge-sketches.js [--measured FILE.jsonl.gz] [--device cuda|webgpu] [--data FOLDER]
 * ```
 * `--data`: of the files that the times are of; members of families need none.
 */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { type Kernel, load, type TraceStep } from '../src/node.ts'
import { useCostModel } from '../src/search.ts'
import { geometricMean } from './gpu/statistics.ts'
import { linesIn } from './model/records.ts'
import { JUDGED, memberSets, tensorsFor } from './sketches/judged.ts'
import { option, packageFile, table, together } from './support.ts'
import { readData } from './verify-all/data.ts'

/** A line of `--times`. */
interface PointTime {
  readonly kernel: string
  readonly data: string
  readonly params: Readonly<Record<string, number>>
  readonly name: string
  readonly ms: number
  readonly steps: readonly TraceStep[]
}

const device = option('device') ?? 'cuda'
if (device !== 'cuda' && device !== 'webgpu') throw new Error(`--device is cuda or webgpu, not ${device}`)
const folder = option('data')
const files = folder === undefined ? [] : await readData(folder)
const path = option('measured') ?? packageFile('bench/model/measured/h100-sketches.jsonl.gz')
const bytes = readFileSync(path)
const times = linesIn<PointTime>((path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString())
const PLAIN = 'no schedule'
/** What `sketches` calls points of the space; all others are schedules by hand. */
const isPoint = ({ name }: PointTime): boolean => /^(guess|form \d+|near \d+|chosen|\[.*)$/.test(name)

const WAYS = ['parallel()', 'guess', 'chosen', 'best point'] as const
const found = new Map<string, number[]>(WAYS.map((way) => [way, []]))
const rows: (string | number)[][] = []
for (const [name, list] of together(times, (t) => `${t.kernel} ${t.data}`)) {
  const { kernel: called, data, params } = list[0]!
  const of = JUDGED.find((j) => j.kernel === called)
  const sets = [...files.filter((d) => d.name === data), ...memberSets(data)]
  const set = of && sets.find((d) => tensorsFor(of, d))
  const tensors = of?.order === 0 ? {} : set && tensorsFor(of, set)
  if (!of || !tensors) continue
  const kernel = (await load(packageFile(`kernels/${of.file}.spt`))).kernel(called)
  const points = list.filter(isPoint)
  const timeOf = (k: Kernel): number | undefined => {
    const steps = JSON.stringify(k.toJSON())
    return points.find((p) => JSON.stringify(p.steps) === steps)?.ms
  }
  const hand = Math.min(...list.filter((t) => t.name !== PLAIN && !isPoint(t)).map((t) => t.ms))
  const start = performance.now()
  const chosen = kernel.automatic(device, params, tensors)
  const took = performance.now() - start
  useCostModel(device, null)
  const guess = kernel.automatic(device, params, tensors)
  useCostModel(device, undefined)
  const ms: Readonly<Record<(typeof WAYS)[number], number | undefined>> = {
    'parallel()': list.find((t) => t.name === PLAIN)?.ms,
    guess: timeOf(guess),
    chosen: timeOf(chosen),
    'best point': Math.min(...points.map((p) => p.ms)),
  }
  const figures = WAYS.map((way): number | null => {
    const own = ms[way]
    if (own !== undefined) found.get(way)!.push(own / hand)
    return own === undefined ? null : own / hand
  })
  rows.push([name, ...figures.map((f) => f ?? ''), took.toFixed(0)])
}
const all = WAYS.map((way) => found.get(way)!)
rows.push(['all (geometric mean)', ...all.map(geometricMean), ''])
rows.push(['worst', ...all.map((of) => Math.max(...of)), ''])
rows.push(['cases', ...all.map((of) => String(of.length)), ''])
console.log(table(['time / by hand', ...WAYS, 'ms to choose'], rows))
