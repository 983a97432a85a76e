/** What `spt tune` tells: of a search that goes on, and of what it found. */
import type { Kernel } from '../../api/kernel.ts'
import { scheduleText, typescriptText } from '../../search/text.ts'
import type { Final, TuneProgress, TuneResult } from '../../search/tune/index.ts'
import type { Outcome } from '../../search/types.ts'

export const ms = (x: number): string => `${Number(x.toPrecision(4))} ms`
/** `3 a/code, 1 b/code`. */
export const byFrequency = (found: Readonly<Record<string, number>>): string =>
  Object.entries(found)
    .sort(([, a], [, b]) => b - a)
    .map(([code, n]) => `${n} ${code}`)
    .join(', ')

/** One line. */
export function progressLine({ done, best, rejectedByCode, failed, left, known }: TuneProgress): string {
  const rejected = Object.values(rejectedByCode).reduce((a, b) => a + b, 0)
  const fastest = best?.outcome.status === 'measured' ? ms(best.outcome.timing.median) : 'none'
  return [
    `${done} done`,
    ...(known > 0 ? [`${known} known`] : []),
    `best ${fastest}`,
    `${rejected} rejected`,
    `${failed} failed`,
    ...(left === undefined ? [] : [`${left} left`]),
  ].join(', ')
}

const timeOf = (o: Outcome): string =>
  o.status === 'measured'
    ? `${ms(o.timing.median)}  (${ms(o.timing.interval[0])} to ${ms(o.timing.interval[1])})`
    : o.status === 'wrong'
      ? 'differs from the reference'
      : o.code

const nameOf = ({ name, schedule }: Final): string => (schedule ? `${name}: ${schedule}` : name)

/** What came of it, for a reader. */
export function tuneText(kernel: Kernel, device: string, space: string, r: TuneResult): string {
  const width = Math.max(...r.finals.map((f) => nameOf(f).length))
  const rejected = byFrequency(r.rejectedByCode)
  const lines = [
    `kernel    ${kernel.name} on ${device}`,
    `space     ${space}${r.left === undefined ? '' : `, ${r.left} points left`}`,
    `trials    ${r.trials.length}${r.known > 0 ? `, ${r.known} of them known` : ''}; ended by ${r.stoppedBy} after ${r.seconds.toFixed(1)} s`,
    ...(rejected ? [`rejected  ${rejected}`] : []),
    ...(r.failed > 0 ? [`failed    ${r.failed}`] : []),
    ...(r.wrong.length > 0 ? [`wrong     ${r.wrong.length}: bugs of the compiler`] : []),
    ...(r.sampled ? ['compared  a sample of the results'] : []),
    ...(r.study ? [`study     ${r.study.slice(0, 12)}`] : []),
    '',
    ...r.finals.map((f) => `${nameOf(f).padEnd(width)}  ${timeOf(f.outcome)}`),
  ]
  if (!r.best) return `${lines.join('\n')}\n\nNothing could be measured.\n`
  return `${lines.join('\n')}\n\n// ${nameOf(r.best)}\n${winner(r.best.kernel)}\n// TypeScript\n${typescriptText(r.best.kernel)}\n`
}

/** The schedule of the fastest as the language writes it. */
export const winner = (kernel: Kernel): string => scheduleText(kernel, 'tuned')

/** The same as data. */
export function tuneJson(kernel: Kernel, device: string, space: string, r: TuneResult): string {
  const { trials, finals, best, standard, ...rest } = r
  const final = (f: Final): object => ({
    name: f.name,
    schedule: f.schedule ?? null,
    point: f.point,
    steps: f.kernel.trace,
    outcome: f.outcome,
  })
  const all = {
    kernel: kernel.name,
    device,
    space,
    ...rest,
    best: best && { ...final(best), text: winner(best.kernel), trace: best.kernel.toJSON() },
    standard: final(standard),
    finals: finals.map(final),
    trials,
  }
  return `${JSON.stringify(all, null, 2)}\n`
}
