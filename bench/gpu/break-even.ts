/** From which share of zeros on something that leaves them out is as fast as what does not. */
import { table } from '../support.ts'
import { best, type Case, type Entry } from './case.ts'
import { percent } from './pruned-layers.ts'
import { time } from './statistics.ts'
import { comparable, type Times } from './timing.ts'

/** One pattern: the share of zeros, and times of both. */
export interface Point {
  readonly zeros: number
  readonly own: number
  readonly dense: number
}

/**
 * Between the two neighbours where it changes, on the line between them; 0 where it is faster at every point, nothing where it is
 * slower at the last one.
 */
export function breakEven(points: readonly Point[]): number | undefined {
  const sorted = points.toSorted((a, b) => b.zeros - a.zeros)
  const slow = sorted.findIndex((p) => p.own > p.dense)
  if (slow === 0 || sorted.length === 0) return undefined
  if (slow < 0) return 0
  const [fast, next] = [sorted[slow - 1]!, sorted[slow]!]
  const [gain, loss] = [fast.dense - fast.own, next.own - next.dense]
  return fast.zeros - ((fast.zeros - next.zeros) * gain) / (gain + loss)
}

/** Of what looks for zeros the fastest, apart from the standard choice, which may look for none; that one where it is alone. */
function ownOf(c: Case): Times | undefined {
  const own = c.entries
    .filter((e) => e.side === 'ours')
    .flatMap((e) => (e.times === null ? [] : [{ name: e.name, times: e.times }]))
    .sort((a, b) => a.times.event - b.times.event)
  return (own.find((e) => e.name !== c.standard) ?? own[0])?.times
}

/** The same for each of these peers, of cases at a share of zeros in percent. */
export const breakEvenTexts = (cases: readonly Case[], peers: readonly string[]): readonly string[] =>
  peers.map((peer) =>
    breakEvenText(
      cases,
      (c) => Number.parseFloat(c.at) / 100,
      (e) => e.name.startsWith(peer),
    ),
  )

/** A line for each suite. `zerosOf`: the share that a case has. `isDense`: entries of the peers it is compared with. */
export function breakEvenText(
  cases: readonly Case[],
  zerosOf: (c: Case) => number,
  isDense: (e: Entry) => boolean = () => true,
): string {
  const suites = [...new Set(cases.map((c) => c.suite))]
  const rows = suites.flatMap((suite): string[][] => {
    const points = cases
      .filter((c) => c.suite === suite)
      .flatMap((c): (Point & { readonly name: string })[] => {
        const peer = best({ ...c, entries: c.entries.filter(isDense) }, 'peer')
        const own = ownOf(c)
        if (!peer || !own) return []
        const [a, b] = comparable(own, peer.times)
        return [{ zeros: zerosOf(c), own: a, dense: b, name: peer.name }]
      })
    if (points.length === 0) return []
    const found = breakEven(points)
    const from = points.length === 1 ? '-' : found === undefined ? 'never' : percent(found)
    return [[suite, from, points[0]!.name, points.map((p) => time(p.dense)).join(', ')]]
  })
  if (rows.length === 0) return ''
  return `\n== faster than dense from so many zeros on ==\n${table(['', 'from', 'dense', 'µs'], rows)}`
}
