/** Importance of decisions for measured times: permutation importance of a random forest (Breiman, 2001). */
import { Random } from '../../run/bind/sources/random-tensors.ts'
import { Columns, Forest } from '../strategies/forest.ts'
import type { Trial } from '../types.ts'
import { shuffled } from './shuffled.ts'

export interface Importance {
  readonly decision: string
  /** In [0, 1]; all of them add up to 1, unless nothing matters. */
  readonly share: number
}

/** Orders of the values of a decision. */
const SHUFFLES = 8

/** Decisions by descending share. Points that were not measured are ignored. @param seed of the forest and the permutations */
export function decisionImportance(trials: readonly Trial[], seed = 1): readonly Importance[] {
  const measured = trials.flatMap(({ point, outcome }) =>
    outcome.status === 'measured' && outcome.timing.median > 0
      ? [{ point, log: Math.log(outcome.timing.median) }]
      : [],
  )
  if (measured.length === 0) return []
  const generator = new Random(seed)
  const random = (): number => generator.next()
  const columns = new Columns()
  for (const m of measured) columns.row(m.point)
  const rows = measured.map((m) => columns.row(m.point))
  const logs = measured.map((m) => m.log)
  const forest = Forest.fit(rows, logs, random, (c) => columns.isNominal(c))
  const error = (of: readonly (readonly number[])[]): number =>
    of.reduce((sum, row, k) => sum + (forest.predict(row).mean - logs[k]!) ** 2, 0)
  const usual = error(rows)
  const names = [...new Set(measured.flatMap((m) => Object.keys(m.point)))]
  const losses = names.map((name) => {
    const places = [...measured.keys()].filter((k) => name in measured[k]!.point)
    let loss = 0
    for (let n = 0; n < SHUFFLES; n++) {
      const exchanged = [...rows]
      for (const [j, from] of shuffled(places, random).entries()) {
        const value = measured[from]!.point[name]!
        exchanged[places[j]!] = columns.row({ ...measured[places[j]!]!.point, [name]: value })
      }
      loss += error(exchanged)
    }
    return Math.max(0, loss / SHUFFLES - usual)
  })
  const all = losses.reduce((a, b) => a + b, 0)
  return names
    .map((decision, k) => ({ decision, share: all > 0 ? losses[k]! / all : 0 }))
    .sort((a, b) => b.share - a.share)
}

/** Ranks of values from 0 on; equal values share the mean of theirs. */
function ranks(values: readonly number[]): readonly number[] {
  const order = [...values.keys()].sort((a, b) => values[a]! - values[b]!)
  const out = new Array<number>(values.length)
  for (let from = 0; from < order.length; ) {
    let to = from + 1
    while (to < order.length && values[order[to]!] === values[order[from]!]) to++
    for (const k of order.slice(from, to)) out[k] = (from + to - 1) / 2
    from = to
  }
  return out
}

/**
 * Spearman's rank correlation of two lists of equal length, in [−1, 1]: Pearson's correlation of their ranks. It is 0
 * if one list has only equal values.
 */
export function rankCorrelation(a: readonly number[], b: readonly number[]): number {
  const [x, y] = [ranks(a), ranks(b)]
  const middle = (a.length - 1) / 2
  let [cross, ofX, ofY] = [0, 0, 0]
  for (const [k, r] of x.entries()) {
    const [dx, dy] = [r - middle, y[k]! - middle]
    cross += dx * dy
    ofX += dx * dx
    ofY += dy * dy
  }
  return ofX === 0 || ofY === 0 ? 0 : cross / Math.sqrt(ofX * ofY)
}
