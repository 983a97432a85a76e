/** How good rankings are of which the model predicts a part (`ranked`), beside one of which it predicts all. */
import type { Kernel } from '../../src/node.ts'
import { costPrior } from '../../src/search/cost-model.ts'
import { pointKey } from '../../src/search/points.ts'
import { ranked } from '../../src/search/ranked.ts'
import type { Predict } from '../../src/search/ranking/origin.ts'
import type { KernelSpace, Point } from '../../src/search/types.ts'
import { table } from '../support.ts'

export interface DrawnCase {
  readonly predict: Predict
  readonly space: KernelSpace<Kernel>
  readonly points: readonly Point[]
}

const cpuSeconds = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

/** Points that are compared with the best: those that would be measured. */
const FIRST = 16

export interface Estimated {
  readonly seconds: number
  readonly cpu: number
  readonly points: number
  readonly predicted: number
  /** Of the expected time of the fastest, and of the first ones (geometric mean), what a ranking of all has. */
  readonly fastest: number
  readonly first: number
  /** Factor by which estimates are off, and the share of those that are off by more than two deviations. */
  readonly off: number
  readonly outside: number
}

/** With some predictions, before all others are made to judge it. */
export function estimating(
  { predict, space, points }: DrawnCase,
  predicted: number,
  threads: number,
): Estimated {
  const all = [...new Map(points.map((p) => [pointKey(p), p])).values()]
  const [start, before] = [performance.now(), cpuSeconds()]
  const found = ranked(space, predict, all, { predicted, threads })
  const [seconds, ofCpu] = [(performance.now() - start) / 1000, cpuSeconds() - before]
  const costs = costPrior(space, predict)(found.map((r) => r.point))
  const best = [...costs].sort((a, b) => a - b)
  const mean = (of: readonly number[]): number => of.reduce((a, b) => a + Math.log(b), 0) / of.length
  const errors = found.flatMap(({ milliseconds, deviation }, k) =>
    deviation > 0 && Number.isFinite(costs[k]) ? [{ by: Math.log(milliseconds / costs[k]!), deviation }] : [],
  )
  return {
    seconds,
    cpu: ofCpu,
    points: all.length,
    predicted: found.filter((r) => r.deviation === 0).length,
    fastest: best[0]! / costs[0]!,
    first: Math.exp(mean(best.slice(0, FIRST)) - mean(costs.slice(0, FIRST))),
    off: Math.exp(Math.sqrt(errors.reduce((sum, e) => sum + e.by ** 2, 0) / Math.max(1, errors.length))),
    outside: errors.filter((e) => Math.abs(e.by) > 2 * e.deviation).length / Math.max(1, errors.length),
  }
}

export const estimatesTable = (
  rows: readonly (Estimated & { readonly matrix: string; readonly threads: string })[],
): string =>
  table(
    [
      'matrix',
      'threads',
      'seconds',
      'of CPU',
      'points',
      'predicted',
      'fastest',
      'first 16',
      'off by',
      'outside',
    ],
    rows.map((r) => [
      r.matrix,
      r.threads,
      r.seconds,
      r.cpu,
      String(r.points),
      String(r.predicted),
      r.fastest.toFixed(4),
      r.first.toFixed(4),
      r.off,
      r.outside,
    ]),
  )
