/** Final comparison: the fastest points, the default schedule, the unscheduled kernel, and dense storage. */

import { confirmationText, tiedWithFastest } from '../../search/tune/finals/final-text.ts'
import { allOperations } from '../../search/tune/finals/last-comparison.ts'
import type { Finalist, TuneResult } from '../../search/tune/index.ts'
import type { Timing } from '../../search/types.ts'
import { intervals } from '../chart/index.ts'
import { brief } from '../numbers.ts'
import { table } from '../table.ts'
import { paragraph, scrollable } from './page.ts'

/** Ratio of the slowest to the fastest time from which the axis is logarithmic. */
const MIN_LOG_RATIO = 8

export const capitalize = (text: string): string => `${text[0]!.toUpperCase()}${text.slice(1)}`

/** Name of a kernel of the final comparison, for use in a sentence. */
export function finalName({ name, schedule, point }: Pick<Finalist, 'name' | 'schedule' | 'point'>): string {
  if (name === 'default') return `the default schedule${schedule ? ` (${schedule})` : ''}`
  if (name === 'unscheduled') return 'the unscheduled kernel'
  const rank = /^point (\d+)$/.exec(name)?.[1]
  return point ? `${rank === '1' ? 'the best' : `number ${rank}`} of the search` : name
}

export const timedFinals = (
  finals: readonly Finalist[],
): readonly (Finalist & { readonly timing: Timing })[] =>
  finals.flatMap((f) => (f.outcome.status === 'measured' ? [{ ...f, timing: f.outcome.timing }] : []))

const MEGA = 1e6
/** Factor from bytes or operations per millisecond to billions per second. */
const PER_SECOND = 1e-6

export function comparisonSection({ finalists, confirmation }: TuneResult): readonly string[] {
  const sorted = timedFinals(finalists).toSorted((a, b) => a.timing.median - b.timing.median)
  const fastest = sorted[0]?.timing.median ?? 1
  const tied = new Set([...tiedWithFastest(finalists, confirmation)].map((f) => f.name))
  const rows = [...sorted, ...finalists.filter((f) => f.outcome.status !== 'measured')].map((f: Finalist) => {
    const timing = f.outcome.status === 'measured' ? f.outcome.timing : null
    const work = f.explanation?.total
    const operations = work && allOperations(work.operations)
    return {
      kernel: finalName(f),
      ms: timing?.median,
      from: timing?.interval?.[0],
      to: timing?.interval?.[1],
      samples: timing?.samples.length,
      '× the fastest': timing && timing.median / fastest,
      ...(tied.size > 0 && { distinguishable: timing ? (tied.has(f.name) ? 'no' : '') : undefined }),
      ...(finalists.some((x) => x.explanation) && {
        'MB (compulsory)': work && work.bytes.compulsory / MEGA,
        MFLOP: operations === undefined ? undefined : operations / MEGA,
        'GB/s': work && timing && (PER_SECOND * work.bytes.compulsory) / timing.median,
        'GFLOP/s':
          operations === undefined || !timing ? undefined : (PER_SECOND * operations) / timing.median,
      }),
      ...(sorted.length < finalists.length && { outcome: timing ? 'measured' : outcomeText(f) }),
    }
  })
  return [
    ...(sorted.length > 0 ? [intervalChart(sorted, fastest)] : []),
    scrollable(table(rows).html()),
    ...(confirmation ? [paragraph(capitalize(`${confirmationText(confirmation)}.`))] : []),
    paragraph(
      'Measured in turns after the search. Bytes are compulsory traffic (each array once); operations are floating-point operations.',
      'note',
    ),
  ]
}

function intervalChart(timed: ReturnType<typeof timedFinals>, fastest: number): string {
  const medians = timed.map((f) => f.timing.median)
  return intervals(
    timed.map(({ timing, ...f }) => ({
      kernel: finalName(f),
      ms: timing.median,
      from: timing.interval?.[0] ?? timing.median,
      to: timing.interval?.[1] ?? timing.median,
      text: `${brief(timing.median)} ms${timing.median > fastest ? `, ${brief(timing.median / fastest)} × the fastest` : ''}${timing.interval ? '' : ', one sample'}`,
    })),
    {
      x: 'ms',
      from: 'from',
      to: 'to',
      y: 'kernel',
      text: 'text',
      log:
        Math.max(...medians) > MIN_LOG_RATIO * Math.min(...medians) &&
        timed.every((f) => (f.timing.interval?.[0] ?? f.timing.median) > 0),
      labels: { x: 'milliseconds' },
      title: 'Median times with 95 % confidence intervals',
      width: 900,
    },
  ).html()
}

function outcomeText({ outcome }: Finalist): string {
  if (outcome.status === 'measured') return ''
  if (outcome.status === 'bounded') return `given up: at most ${brief(outcome.atMost)} ms`
  return 'code' in outcome ? `${outcome.status}: ${outcome.code}` : 'differs from the reference'
}
