/** The suite `tile-wise` at a glance: everyone's time at each size, and how often that is in dense cuBLAS's. */
import { table } from '../support.ts'
import { best, type Case, type Side } from './case.ts'
import { geometricMean, time } from './statistics.ts'
import { comparable, type Times } from './timing.ts'

/** Suites in which peers are shown against the dense product, and not ours. */
const OF_PEERS = ['tile-wise-ceiling', 'tile-wise-2of4', 'tile-wise-csr']
const DENSE = 'tile-wise-tw'

/** Columns are sizes; a row for each suite and sparsity that has been measured at one of them. */
export function overview(cases: readonly Case[], sizes: readonly string[]): string {
  const mine = cases.filter((c) => sizes.includes(c.data) && c.suite.startsWith('tile-wise-'))
  const dense = (at: string, size: string): Times | undefined => {
    const c = mine.find((x) => x.suite === DENSE && x.at === at && x.data === size)
    return c && best(c, 'peer')?.times
  }
  const rows: string[][] = []
  for (const at of new Set(mine.filter((c) => c.suite === DENSE).map((c) => c.at))) {
    const cells = sizes.map((size) => time(dense(at, size)?.event ?? null))
    rows.push([at, 'dense cuBLAS', ...cells, '', '', ''])
    for (const suite of new Set(mine.map((c) => c.suite))) {
      const side: Side = OF_PEERS.includes(suite) ? 'peer' : 'ours'
      const found = sizes.map((size) => {
        const c = mine.find((x) => x.suite === suite && x.at === at && x.data === size)
        const [own, other] = [c && best(c, side)?.times, dense(at, size)]
        if (!own || !other) return undefined
        const [a, b] = comparable(own, other)
        return { own, ratio: b / a, cold: other.flushed / own.flushed }
      })
      const known = found.filter((f) => f !== undefined)
      if (known.length === 0) continue
      rows.push([
        at,
        `${suite}${side === 'peer' ? ' (peer)' : ''}`,
        ...found.map((f) => (f ? `${time(f.own.event)} (${f.ratio.toFixed(2)})` : '-')),
        geometricMean(known.map((f) => f.ratio)).toFixed(2),
        Math.min(...known.map((f) => f.ratio)).toFixed(2),
        geometricMean(known.map((f) => f.cold)).toFixed(2),
      ])
    }
  }
  if (rows.length === 0) return ''
  const head = ['sparsity', '', ...sizes.map((size) => `${size}: µs`), 'mean', 'worst', 'cold']
  return `\n== tile-wise: µs, and times faster than dense cuBLAS ==\n${table(head, rows)}`
}
