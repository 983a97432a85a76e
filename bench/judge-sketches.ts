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
import type { Kernel } from '../src/node.ts'
import { useCostModel } from '../src/search.ts'
import { geometricMean } from './gpu/statistics.ts'
import { isPoint, measuredPoints, PLAIN, type PointTime, pointCases } from './model/sketch-points.ts'
import { option, packageFile, table } from './support.ts'
import { readData } from './verify-all/data.ts'

const device = option('device') ?? 'cuda'
if (device !== 'cuda' && device !== 'webgpu') throw new Error(`--device is cuda or webgpu, not ${device}`)
const folder = option('data')
const files = folder === undefined ? [] : await readData(folder)
const paths = option('measured')?.split(',') ?? measuredPoints(device).map(packageFile)

const WAYS = ['parallel()', 'guess', 'chosen', 'best point'] as const
const found = new Map<string, number[]>(WAYS.map((way) => [way, []]))
const rows: (string | number)[][] = []
/** The quotient of times that were taken in the same way: back to back where both were. */
const over = (a: PointTime | undefined, b: PointTime | undefined): number | undefined =>
  a && b && (a.back !== undefined && b.back !== undefined ? a.back / b.back : a.ms / b.ms)
const least = (of: readonly PointTime[]): PointTime | undefined =>
  of.reduce<PointTime | undefined>((a, b) => (a && (a.back ?? a.ms) <= (b.back ?? b.ms) ? a : b), undefined)

for (const path of paths)
  for (const { name, kernel, tensors, params, times } of await pointCases(path, files)) {
    const points = times.filter(isPoint)
    const timeOf = (k: Kernel): PointTime | undefined => {
      const steps = JSON.stringify(k.toJSON())
      return least(points.filter((p) => JSON.stringify(p.steps) === steps))
    }
    const start = performance.now()
    const chosen = kernel.autoSchedule(device, params, tensors)
    const took = performance.now() - start
    useCostModel(device, null)
    const guess = kernel.autoSchedule(device, params, tensors)
    useCostModel(device, undefined)
    const hand = least(times.filter((t) => t.name !== PLAIN && !isPoint(t)))
    const own: Readonly<Record<(typeof WAYS)[number], PointTime | undefined>> = {
      'parallel()': times.find((t) => t.name === PLAIN),
      guess: timeOf(guess),
      chosen: timeOf(chosen),
      'best point': least(points),
    }
    const figures = WAYS.map((way) => {
      const figure = over(own[way], hand)
      if (figure !== undefined) found.get(way)!.push(figure)
      return figure ?? ''
    })
    rows.push([name, ...figures, took.toFixed(0)])
  }
const all = WAYS.map((way) => found.get(way)!)
rows.push(['all (geometric mean)', ...all.map(geometricMean), ''])
rows.push(['worst', ...all.map((of) => Math.max(...of)), ''])
rows.push(['cases', ...all.map((of) => String(of.length)), ''])
console.log(table(['time / by hand', ...WAYS, 'ms to choose'], rows))
